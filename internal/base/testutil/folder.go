package testutil

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// words lists the words of generated documents: common words, identifiers, and words of
// scripts whose runes have two to four bytes.
var words = strings.Fields(`the a of index server token budget query section heading cache vector keyword
	chunk document folder graph task workflow agent release version network policy container cluster node
	restart deploy error timeout retry queue worker handler request response header payload schema field
	MaxTokens read_context v1.2.3 docs/setup.md --limit=10 café naïve größe 検索 索引を作る 文書。 漢字 поиск 🚀`)

// Markdown returns a document of about size bytes that resembles real ones. It can have
// front matter, nested headings (also setext and repeated ones), paragraphs, lists, tables,
// fenced code with blank lines and '#', very long words, and headings without text.
func Markdown(r *rand.Rand, size int) string {
	var b strings.Builder
	if r.IntN(4) == 0 {
		fmt.Fprintf(&b, "---\ntitle: %s\ntags: [%s, %s]\npriority: high\n---\n\n", Sentence(r, 3), word(r), word(r))
	}
	if r.IntN(3) == 0 {
		b.WriteString(Sentence(r, 8) + ".\n\n")
	}
	for b.Len() < size {
		switch r.IntN(12) {
		case 0, 1, 2:
			fmt.Fprintf(&b, "%s %s\n\n", strings.Repeat("#", 1+r.IntN(4)), Sentence(r, 1+r.IntN(5)))
		case 3:
			fmt.Fprintf(&b, "%s\n-----\n\n", Sentence(r, 2))
		case 4:
			for range 1 + r.IntN(12) {
				fmt.Fprintf(&b, "- %s\n", Sentence(r, 1+r.IntN(30)))
			}
			b.WriteString("\n")
		case 5:
			b.WriteString("```go\n")
			for range 1 + r.IntN(20) {
				fmt.Fprintf(&b, "# %s\n\n\t%s\n", Sentence(r, 3), Sentence(r, 6))
			}
			b.WriteString("```\n")
		case 6:
			b.WriteString("| name | text |\n|---|---|\n")
			for range 1 + r.IntN(15) {
				fmt.Fprintf(&b, "| %s | %s |\n", word(r), Sentence(r, 5))
			}
			b.WriteString("\n")
		case 7:
			b.WriteString(strings.Repeat(word(r), 1+r.IntN(200)) + "\n\n")
		default:
			for range 1 + r.IntN(8) {
				fmt.Fprintf(&b, "%s. ", Sentence(r, 3+r.IntN(25)))
			}
			b.WriteString("\n\n")
		}
	}
	return b.String()
}

func word(r *rand.Rand) string { return words[r.IntN(len(words))] }

// Sentence returns n words of generated documents, for queries.
func Sentence(r *rand.Rand, n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = word(r)
	}
	return strings.Join(out, " ")
}

// WriteFolder writes n generated documents of 100 to 6000 bytes below dir, in
// nested folders. The same seed gives the same files.
func WriteFolder(dir string, n int, seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range n {
		name := filepath.Join(dir, fmt.Sprintf("part%d", i%5), fmt.Sprintf("doc%03d.md", i))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(Markdown(r, 100+r.IntN(5900))), 0o644); err != nil {
			return err
		}
	}
	return nil
}
