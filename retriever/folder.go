package retriever

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/markdown"
	"cairn/internal/store/docs"
)

// Folder says what a folder of results is for.
type Folder struct {
	Path    string `json:"path"`
	Context string `json:"context"`
}

const (
	// maxFolders bounds the folders that an answer describes.
	maxFolders = 5
	// maxContext is the longest description in runes.
	maxContext = 160
	// maxAncestors bounds the folders above a result that are looked at.
	maxAncestors = 6
)

// readmes are the names of the document whose first sentence describes its folder.
var readmes = []string{"README.md", "readme.md", "index.md", "_index.md"}

// folders describes the folders of the results, each by the nearest one above it that
// has a description: of Options.Contexts, or the first sentence of its README, which is
// not read from a remote store. The root is described by Options.Contexts alone, because
// clients know it.
func (r *Retriever) folders(reader *docs.Reader, results []Result) ([]Folder, error) {
	var found []Folder
	looked := map[string]*described{} // by folder
	for i := range results {
		if len(found) == maxFolders {
			break
		}
		for _, dir := range ancestors(results[i].Path) {
			d := looked[dir]
			if d == nil {
				d = &described{}
				looked[dir] = d
				if err := r.describe(reader, dir, d); err != nil {
					return nil, fmt.Errorf("reading what the folders of the results are for: %w", err)
				}
			}
			if d.text == "" {
				continue
			}
			if !d.told && d.from != results[i].Path {
				d.told = true
				found = append(found, Folder{dir, d.text})
			}
			break
		}
	}
	return found, nil
}

// described is what is known of a folder.
type described struct {
	text, from string // from is the document that the text is of
	told       bool
}

// ancestors returns the folders above a document, the nearest first.
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

// describe looks for the description of a folder.
func (r *Retriever) describe(reader *docs.Reader, dir string, d *described) error {
	if text := r.options.Contexts[dir]; text != "" || dir == "." {
		d.text = oneLine(words(text))
		return nil
	}
	if reader.Remote() { // which would cost every search a call
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

// leastWords is the least number of words of a line that describes something: badges and
// links to other languages have fewer.
const leastWords = 4

// firstSentence returns the first sentence of a text, "" for a text without one.
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

// words splits a text at blanks and control characters.
func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}

// oneLine joins words, at most maxContext runes of them.
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
