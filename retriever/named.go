package retriever

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/text/outline"
)

// fileLine matches the name of a file with a line, as compilers, stack traces, patches and links
// write them: a.go:12, a.ts(12,3), "a.py", line 12, a.md#L12.
var fileLine = regexp.MustCompile("([^\\s\"'`()<>{},;:|=#]*\\pL[^\\s\"'`()<>{},;:|=#]*)(?::line |[:(]|#L|[\"']?,? (?:on )?line |\\s+@@ -\\S+ \\+)(\\d+)")

// mostLines is the most lines of files that a query can name.
const mostLines = 32

// addNamed makes the chunks at the lines of files that the query names definitions, and adds
// those that no leg found. A query that is only a path names the first line.
func (s *search) addNamed(cs *[]candidate) error {
	text := strings.ReplaceAll(strings.Trim(s.Query.Text, " \n`"), `\`, "/")
	if !strings.ContainsAny(text, " \n") && strings.ContainsAny(text, "./") {
		text += ":1"
	}
	if len(s.parsed.Excluded)+len(s.parsed.Dashed) > 0 {
		return nil
	}
	named := fileLine.FindAllStringSubmatch(text, mostLines)
	if named == nil {
		s.markNamed(*cs, text)
		return nil
	}
	return s.sources.Documents.View(func(r *docs.Reader) error {
		var files []string
		err := r.Files(s.Filter.PathPrefix, func(f docs.File) bool { files = append(files, f.Path); return true })
		for _, m := range named {
			line, _ := strconv.Atoi(m[2]) // too large a number is past the end
			for _, file := range meant(files, strings.TrimPrefix(s.relative(m[1]), "./")) {
				doc, e := r.Document(file)
				if err = cmp.Or(err, e); doc != nil && s.Filter.Match(file, doc.Labels) {
					*cs = define(*cs, doc, r.Text(file), line)
				}
			}
		}
		return err
	})
}

// markNamed makes the best candidate of each file that the query names without a line a
// definition. The name has a folder or is that of source code: "README.md" and "package.json"
// are also words of questions about other files.
func (s *search) markNamed(cs []candidate, text string) {
	best, scores := map[string]*candidate{}, map[string]float64{} // by path
	for i := range cs {
		c, score := &cs[i], cs[i].Score
		if c.anchor == "" && outline.IsSource(c.path) {
			score *= headWeight
		}
		if best[c.path] == nil || scores[c.path] < score {
			best[c.path], scores[c.path] = c, score
		}
	}
	paths := slices.Collect(maps.Keys(best))
	const around = "`\"'()[]<>,;:!?"
	for word := range strings.FieldsSeq(text) {
		name := strings.TrimRight(strings.TrimLeft(word, around), around+".")
		if strings.Contains(name, "/") || outline.IsSource(name) {
			for _, file := range meant(paths, strings.TrimPrefix(s.relative(name), "./")) {
				best[file].role = definition
			}
		}
	}
}

// maxNamed is the most files of one name: more are no evidence for any of them.
const maxNamed = 4

// meant returns the files that a name in a query means: their path ends with the name, or the
// name with their path, which another machine has in another folder. Those with the longest
// common end are meant, or only the one with that path.
func meant(files []string, name string) (found []string) {
	best := 1
	for _, file := range files {
		fit, below := 0, file[strings.IndexByte(file, '/')+1:]
		switch {
		case file == name:
			fit = len(name) + 1
		case strings.HasSuffix(file, "/"+name):
			fit = len(name)
		case strings.HasSuffix(name, "/"+file) && (below != file || strings.Count(name, "/") <= 2): // many folders have a setup.py
			fit = len(file)
		case strings.HasSuffix(name, "/"+below) && strings.Contains(below, "/"): // src/a/b.py is installed as a/b.py
			fit = len(below)
		}
		if fit > best {
			best, found = fit, nil
		}
		if fit == best && len(found) <= maxNamed {
			found = append(found, file)
		}
	}
	if len(found) > maxNamed {
		return nil
	}
	return found
}

// define makes the chunk with a line of doc a definition; of several sections, that of the
// innermost.
func define(cs []candidate, doc *store.Document, text []byte, line int) []candidate {
	at := candidate{path: doc.Path, Explanation: Explanation{role: definition, named: line, Fusion: "linear"}}
	for i := range doc.Sections {
		s := &doc.Sections[i]
		for k, c := range s.Chunks {
			if line <= s.EndLine && (i+k == 0 || passage(s, c, text).Start <= line) {
				at.chunk, at.anchor, at.number = store.ChunkID(doc.Path, s.Anchor, k), s.Anchor, k
			}
		}
	}
	if i := slices.IndexFunc(cs, func(c candidate) bool { return c.chunk == at.chunk }); i >= 0 {
		cs[i].role, cs[i].named = definition, line
	} else if at.chunk != "" {
		at.Chunk = at.chunk
		cs = append(cs, at)
	}
	return cs
}
