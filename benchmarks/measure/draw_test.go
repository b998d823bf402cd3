package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cairn/internal/text/outline"
)

// perPackage is the number of questions to draw from a package.
const perPackage = 10

// TestDrawQuestions prints questions in the form of benchmarks/code/questions.tsv: from each
// package, the first sentences of ten comments, chosen by their hash.
//
//	benchmarks/code/fetch.sh SOURCES fresh-packages.tsv
//	CAIRN_CODE_DRAW=SOURCES go test ./benchmarks/measure -run DrawQuestions -v
func TestDrawQuestions(t *testing.T) {
	sources := os.Getenv("CAIRN_CODE_DRAW")
	if sources == "" {
		t.Skip("needs CAIRN_CODE_DRAW, a folder with one folder a package")
	}
	packs, err := os.ReadDir(sources)
	if err != nil {
		t.Fatal(err)
	}
	for _, pack := range packs {
		qs, err := draw(filepath.Join(sources, pack.Name()), pack.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range qs {
			fmt.Printf("%s\tsentence\t%s\t%s\t%s\n", q.pack, q.path, q.symbol, q.text)
		}
	}
}

// TestSentenceOf: a question is the first sentence of a comment without the symbol's name.
func TestSentenceOf(t *testing.T) {
	for _, c := range []struct{ file, comment, name, want string }{
		{"a.go", "// Push adds a value onto the top\n// of the stack. It is fast.\n", "Push", "adds a value onto the top of the stack"},
		{"A.java", "/**\n * Returns the {@link Option} that was <em>added last</em>.\n * @return it\n */\n", "latest", "Returns the Option that was added last"},
		{"a.rs", "/// Remove the entry for the key.\n///\n/// Computes in O(1).\n#[inline]\n", "remove", "Remove the entry for the key"},
		{"a.py", `"""Join two paths into one."""`, "join", "Join two paths into one"},
		{"a.go", "// F is fast.\n", "F", ""},
	} {
		if got := sentenceOf(c.file, c.comment, c.name); got != c.want {
			t.Errorf("%q of %q, want %q", got, c.comment, c.want)
		}
	}
}

func draw(dir, pack string) (qs []question, err error) {
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !outline.IsSource(name) || outline.IsTest(name) || strings.Contains(name, "example") {
			return err
		}
		src, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		src = bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n"))
		known := map[string]int{}
		for _, s := range symbolsOf(name, withoutComments(name, src)) {
			known[s.name]++
		}
		outlined, _ := outline.Outline(name, src)
		for i, full := range symbolsOf(name, src) {
			s := outlined[i]
			comment := string(src[s.Start:s.Decl])
			if from, to := docstring(name, src, s); from < to {
				comment = string(src[from:to])
			}
			if text := sentenceOf(name, comment, s.Name); text != "" && known[full.name] == 1 && !s.Local {
				qs = append(qs, question{pack, "sentence", name, full.name, text})
			}
		}
		return nil
	})
	hash := func(q question) string { h := sha256.Sum256([]byte(q.path + q.text)); return string(h[:]) }
	slices.SortFunc(qs, func(a, b question) int { return cmp.Compare(hash(a), hash(b)) })
	said := map[string]int{}
	for _, q := range qs {
		said[q.text]++
	}
	qs = slices.DeleteFunc(qs, func(q question) bool { return said[q.text] > 1 })
	return qs[:min(perPackage, len(qs))], err
}

var (
	marks  = regexp.MustCompile("^\\s*(?:///?!?|/\\*\\*?|\\*/|\\*|#|\"\"\"|r\"\"\")?\\s?")
	markup = regexp.MustCompile(`\{@\w+\s+([^}]*)\}|</?\w+[^>]*>|\*/$|"""$`)
	ends   = regexp.MustCompile(`[.:]($|\s)`)
)

// sentenceOf returns the first sentence of a comment in a source file, without the name
// of the symbol and the full stop. It returns "" unless that has 5 to 40 words.
func sentenceOf(file, comment, name string) string {
	var words []string
	for line := range strings.Lines(comment) {
		line = strings.TrimSpace(marks.ReplaceAllString(line, ""))
		line = strings.TrimSpace(markup.ReplaceAllString(line, "$1"))
		if line == "" && len(words) > 0 || strings.HasPrefix(line, "@") || path.Ext(file) == ".rs" && strings.HasPrefix(line, "[") {
			break
		}
		end := ends.FindStringIndex(line)
		if end != nil {
			line = line[:end[0]]
		}
		for w := range strings.FieldsSeq(line) {
			if w != name && w != "`"+name+"`" {
				words = append(words, w)
			}
		}
		if end != nil {
			break
		}
	}
	if len(words) < 5 || len(words) > 40 {
		return ""
	}
	return strings.Join(words, " ")
}
