package archtest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// unclear matches phrases that leave out the actor or that a reader has to read
// twice. Name the actor and use the field's verb instead.
var unclear = regexp.MustCompile(`(?i)\b(anew|whoever|nobody|beside|who asks|for who|is told|are told|is said|are said|does without|do without|done without|lies (in|on|below) (the|a|its|that))\b`)

// TestPlainEnglish looks for unclear phrases in comments and in the manual.
func TestPlainEnglish(t *testing.T) {
	root := "../../.."
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		if d.IsDir() {
			if strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "testdata" || rel == "examples" || rel == "benchmarks/runs" {
				return fs.SkipDir
			}
			return nil
		}
		for _, line := range prose(t, path) {
			if sentence := longest(line.text); strings.HasSuffix(path, ".go") && len(strings.Fields(sentence)) > maxWords {
				t.Errorf("%s:%d: a sentence of %d words, want at most %d: %.80s…", rel, line.number, len(strings.Fields(sentence)), maxWords, sentence)
			}
			if found := unclear.FindString(line.text); found != "" && !strings.Contains(path, "english_test.go") {
				t.Errorf("%s:%d: %q in %.160q", rel, line.number, found, line.text)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !unclear.MatchString("the index is made anew") || unclear.MatchString("the client rebuilds the index besides") {
		t.Error("the pattern does not tell unclear from clear")
	}
}

// maxWords is the maximum length of a sentence in a comment.
const maxWords = 40

// sentenceEnd matches the end of a sentence.
var sentenceEnd = regexp.MustCompile(`[.!?]["')]*( |$)`)

// longest returns the sentence of text with the most words.
func longest(text string) (found string) {
	for part := range strings.Lines(text) {
		for _, s := range sentenceEnd.Split(part, -1) {
			if len(strings.Fields(s)) > len(strings.Fields(found)) {
				found = s
			}
		}
	}
	return found
}

func TestLongest(t *testing.T) {
	if got, want := longest("It is one. It is two, v1.2 that is! So\nin the next paragraph it goes on and on"), "in the next paragraph it goes on and on"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// paragraphs joins the lines of each paragraph and item of a comment, and omits what is
// preformatted.
func paragraphs(comment string) string {
	var b strings.Builder
	for s := range strings.Lines(comment) {
		switch trimmed := strings.TrimSpace(s); {
		case trimmed == "" || strings.HasPrefix(s, "\t"):
			b.WriteByte('\n')
		case strings.HasPrefix(trimmed, "- "):
			b.WriteString("\n" + trimmed + " ")
		default:
			b.WriteString(trimmed + " ")
		}
	}
	return b.String()
}

type line struct {
	number int
	text   string
}

// prose returns the comments of a Go file, or the lines of a page of the manual.
func prose(t *testing.T, path string) (lines []line) {
	t.Helper()
	switch {
	case strings.HasSuffix(path, ".go"):
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range f.Comments {
			lines = append(lines, line{set.Position(group.Pos()).Line, paragraphs(group.Text())})
		}
	case strings.HasSuffix(path, ".md") && (strings.Contains(path, "docs"+string(filepath.Separator)) || filepath.Dir(path) == "../../.."):
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range strings.Split(string(text), "\n") {
			if !strings.HasPrefix(strings.TrimSpace(s), "|") { // tables, and what a command printed
				lines = append(lines, line{i + 1, s})
			}
		}
	}
	return lines
}
