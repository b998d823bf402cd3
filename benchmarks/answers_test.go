package benchmarks

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"cairn/benchmarks/agent"
	"cairn/internal/text/markdown"
	"cairn/models/bpe"
)

// inView is how many consecutive letters of a section an answer must show, if the section
// has as many.
const inView = 250

// TestAnswersShowTheText measures how often one call of read_context shows the text of a
// right section, and how many tokens the answer has. CAIRN_PROGRAM names the program and
// CAIRN_MARKDOWN the folder with the tree rust-book; CAIRN_ARGUMENTS adds arguments to each
// call, and CAIRN_WORK keeps the indexes for later runs. See quality.md.
func TestAnswersShowTheText(t *testing.T) {
	program, trees := os.Getenv("CAIRN_PROGRAM"), os.Getenv("CAIRN_MARKDOWN")
	if program == "" || trees == "" {
		t.Skip("CAIRN_PROGRAM and CAIRN_MARKDOWN do not name the program and the trees")
	}
	if work := os.Getenv("CAIRN_WORK"); work != "" {
		t.Setenv("CAIRN_HOME", work)
	}
	arguments := map[string]any{}
	if text := os.Getenv("CAIRN_ARGUMENTS"); text != "" {
		if err := json.Unmarshal([]byte(text), &arguments); err != nil {
			t.Fatal(err)
		}
	}
	var tokens [2][]int // by half
	var shown [2]int
	var counter bpe.Counter
	for set, root := range map[string]string{"docs": filepath.Join("..", "docs"), "rust-book": filepath.Join(trees, "rust-book")} {
		c, _, err := agent.Start(program, "mcp", "-C", root)
		if err != nil {
			t.Fatal(err)
		}
		version := map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "test", "version": "1"}}
		if err := c.Call("initialize", version, nil); err != nil {
			t.Fatal(err)
		}
		call := func(tool string, arguments any) string {
			line, err := c.Line("tools/call", map[string]any{"name": tool, "arguments": arguments})
			if err != nil {
				t.Fatal(err)
			}
			var answer struct {
				Result struct {
					Content []struct{ Text string }
					IsError bool
				}
			}
			if err := json.Unmarshal(line, &answer); err != nil || answer.Result.IsError || len(answer.Result.Content) != 1 {
				t.Fatalf("%s: %v: %.300s", tool, err, line)
			}
			return answer.Result.Content[0].Text
		}
		for !strings.Contains(call("index", map[string]any{}), `"done":true`) {
		}
		n := 0
		err = readLines(filepath.Join("testdata", "answers", set+".jsonl"), func(line []byte) error {
			var q sectionQuestion
			if err := json.Unmarshal(line, &q); err != nil {
				return err
			}
			half := n % 2
			n++
			arguments["query"] = q.Question
			text := call("read_context", arguments)
			count := counter.CountTokens(text)
			tokens[half] = append(tokens[half], count)
			if q.isShown(t, root, text) {
				shown[half]++
			} else {
				t.Logf("half %d, %d tokens: %s: %s\n%s", half, count, q.Question, q.Places, firstLines(text))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	for half, name := range []string{"tuned on", "measured"} {
		n := len(tokens[half])
		slices.Sort(tokens[half])
		t.Logf("%s: %d questions, text shown %d, tokens median %d, most %d", name, n, shown[half], tokens[half][n/2], tokens[half][n-1])
	}
	all := slices.Concat(tokens[0], tokens[1])
	slices.Sort(all)
	t.Logf("all: text shown %d of %d, tokens median %d", shown[0]+shown[1], len(all), all[len(all)/2])
	if 20*(shown[0]+shown[1]) < 19*len(all) || all[len(all)/2] > 700 {
		t.Errorf("want the text in 95%% of the answers, and a median of at most 700 tokens")
	}
}

// isShown reports whether text has inView consecutive letters of a right section.
func (q sectionQuestion) isShown(t *testing.T, root, text string) bool {
	view := letters(strings.ReplaceAll(text, `\n`, " "))
	for _, p := range q.Places {
		path, anchor, _ := strings.Cut(p, "#")
		src, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		doc := markdown.Parse(path, src)
		n, ok := markdown.Resolve(doc, anchor)
		if !ok {
			t.Fatalf("%s has no section %s", path, anchor)
		}
		s := &doc.Sections[n]
		gold := letters(string(src[s.Start:s.OwnEnd]))
		for from := 0; from == 0 || from+inView <= len(gold); from++ {
			if strings.Contains(view, gold[from:min(len(gold), from+inView)]) {
				return true
			}
		}
	}
	return false
}

func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && unicode.IsLetter(r) {
			return r
		}
		return -1
	}, text)
}

func firstLines(text string) string {
	var heads []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, " #") && len(heads) < 12 && len(line) < 200 {
			heads = append(heads, "\t"+strings.TrimSpace(line))
		}
	}
	return strings.Join(heads, "\n")
}
