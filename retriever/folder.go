package retriever

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/store/docs"
	"cairn/internal/text/markdown"
)

// Folder describes a folder that contains results.
type Folder struct {
	Path    string `json:"path"`
	Context string `json:"context"`
}

const (
	// maxFolders is the most folders that an answer describes.
	maxFolders = 5
	// maxContext is the longest description, in runes.
	maxContext = 160
	// maxAncestors is the most folders above a result to look for a description.
	maxAncestors = 6
)

// readmes are the names of the document whose first sentence describes its folder.
var readmes = []string{"README.md", "readme.md", "index.md", "_index.md"}

// folders returns, for each result, the description of the nearest folder above it that
// has one, without repetitions. Descriptions come from Options.Contexts or the first
// sentence of a README. The README of the root is not used, because clients know it, and
// none is read from a remote store.
func (r *Retriever) folders(reader *docs.Reader, results []Result) ([]Folder, error) {
	var found []Folder
	seen := map[string]*described{} // by folder
	for i := range results {
		if len(found) == maxFolders {
			break
		}
		for _, dir := range ancestors(results[i].Path) {
			d := seen[dir]
			if d == nil {
				d = &described{}
				seen[dir] = d
				if err := r.describe(reader, dir, d); err != nil {
					return nil, fmt.Errorf("describing the folders of the results: %w", err)
				}
			}
			if d.text == "" {
				continue
			}
			if !d.listed && d.from != results[i].Path {
				d.listed = true
				found = append(found, Folder{dir, d.text})
			}
			break
		}
	}
	return found, nil
}

// described is the description of a folder; text is empty if it has none.
type described struct {
	text, from string // from is the document that contains text
	listed     bool   // in the answer
}

// ancestors returns the folders above a document, nearest first.
func ancestors(document string) []string {
	var chain []string
	for dir := path.Dir(document); len(chain) < maxAncestors; dir = path.Dir(dir) {
		chain = append(chain, dir)
		if dir == "." {
			break
		}
	}
	return chain
}

// describe sets d to the description of a folder.
func (r *Retriever) describe(reader *docs.Reader, dir string, d *described) error {
	if text := r.options.Contexts[dir]; text != "" || dir == "." {
		d.text = oneLine(words(text))
		return nil
	}
	if reader.Remote() { // a README would add a call to every search
		return nil
	}
	for _, name := range readmes {
		p := path.Join(dir, name)
		doc, err := reader.Document(p)
		if err != nil {
			return err
		}
		if doc == nil {
			continue
		}
		content := reader.Text(p)
		for _, s := range doc.Sections {
			if s.Start < 0 || s.OwnEnd > len(content) || s.Start > s.OwnEnd {
				continue
			}
			own := strings.TrimPrefix(markdown.Plain(p, "", content[s.Start:s.OwnEnd]), s.Heading)
			if d.text = firstSentence(own); d.text != "" {
				d.from = p
				return nil
			}
		}
	}
	return nil
}

// leastWords is the least number of words in a line that describes a folder. Lines of
// badges or of links to translations have fewer.
const leastWords = 4

// firstSentence returns the first sentence of a text, or "" if there is none.
func firstSentence(text string) string {
	for line := range strings.Lines(text) {
		list := words(line)
		if len(list) < leastWords {
			continue
		}
		for i := leastWords - 1; i < len(list)-1; i++ {
			if w := list[i]; strings.HasSuffix(w, ".") && w != "e.g." && w != "i.e." {
				list = list[:i+1]
				break
			}
		}
		return oneLine(list)
	}
	return ""
}

// words splits a text at white space and control characters.
func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}

// oneLine joins words with spaces and shortens the result to maxContext runes.
func oneLine(words []string) string {
	text := strings.Join(words, " ")
	if utf8.RuneCountInString(text) <= maxContext {
		return text
	}
	cut := string([]rune(text)[:maxContext-1])
	if i := strings.LastIndexByte(cut, ' '); i > 0 {
		cut = cut[:i]
	}
	return cut + "…"
}
