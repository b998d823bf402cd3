package retriever

import (
	"fmt"
	"path"
	"slices"
	"strings"
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
	type description struct{ text, from string } // from is the document that contains the text
	known := map[string]description{}            // by folder
	for i := range results {
		dir := results[i].Path
		for range maxAncestors {
			dir = path.Dir(dir)
			d, seen := known[dir]
			if !seen {
				var err error
				if d.text, d.from, err = r.describe(reader, dir); err != nil {
					return nil, fmt.Errorf("describing the folders of the results: %w", err)
				}
				known[dir] = d
			}
			if d.text == "" {
				continue
			}
			if d.from != results[i].Path && !slices.ContainsFunc(found, func(f Folder) bool { return f.Path == dir }) {
				found = append(found, Folder{dir, d.text})
			}
			break
		}
		if len(found) == maxFolders {
			break
		}
	}
	return found, nil
}

// describe returns the description of a folder, "" if it has none, and the document that
// contains it.
func (r *Retriever) describe(reader *docs.Reader, dir string) (text, from string, err error) {
	if text := r.options.Contexts[dir]; text != "" || dir == "." {
		return oneLine(strings.Fields(printed(text)), maxContext), "", nil
	}
	if reader.Remote() { // a README would add a call to every search
		return "", "", nil
	}
	for _, name := range readmes {
		from = path.Join(dir, name)
		doc, err := reader.Document(from)
		if err != nil {
			return "", "", err
		}
		if doc == nil {
			continue
		}
		content := reader.Text(from)
		for _, s := range doc.Sections {
			if s.Start < 0 || s.OwnEnd > len(content) || s.Start > s.OwnEnd {
				continue
			}
			own := strings.TrimPrefix(markdown.Plain(from, "", content[s.Start:s.OwnEnd]), s.Heading)
			if text = firstSentence(own); text != "" {
				return text, from, nil
			}
		}
	}
	return "", "", nil
}

// leastWords is the least number of words in a line that describes a folder. Lines of
// badges or of links to translations have fewer.
const leastWords = 4

// firstSentence returns the first sentence of a text, or "" if there is none.
func firstSentence(text string) string {
	for line := range strings.Lines(text) {
		list := strings.Fields(printed(line))
		if len(list) < leastWords {
			continue
		}
		for i := leastWords - 1; i < len(list)-1; i++ {
			if w := list[i]; strings.HasSuffix(w, ".") && w != "e.g." && w != "i.e." {
				list = list[:i+1]
				break
			}
		}
		return oneLine(list, maxContext)
	}
	return ""
}

// oneLine joins words with spaces and shortens the result to most runes.
func oneLine(words []string, most int) string {
	text := strings.Join(words, " ")
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	cut := string([]rune(text)[:most-1])
	if i := strings.LastIndexByte(cut, ' '); i > 0 {
		cut = cut[:i]
	}
	return cut + "…"
}
