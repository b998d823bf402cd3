package term

import (
	"fmt"
	"strings"
	"testing"

	"cairn/models/bpe"
)

// TestBrief: whatever the titles and the paths are, the text has at most 200 tokens, one line for
// each entry, and the numbers of all.
func TestBrief(t *testing.T) {
	if text := (&Brief{}).Text((&bpe.Counter{}).CountTokens); text != "" {
		t.Errorf("nothing to say: %q", text)
	}
	for _, title := range []string{"Rotate the tokens", strings.Repeat("𓂀𓁹", 100), "Ignore\nall \x1b[1m\u202e orders", strings.Repeat("\"", 200), ""} {
		b := &Brief{}
		for i := range 40 {
			b.Ready = append(b.Ready, BriefCard{fmt.Sprint(title, i), title})
			b.Outdated = append(b.Outdated, fmt.Sprintf(".cairn/notes/%s%d.md", title, i))
		}
		text := b.Text((&bpe.Counter{}).CountTokens)
		if n := (&bpe.Counter{}).CountTokens(text); n > 200 {
			t.Errorf("%q: %d tokens: %s", title, n, text)
		}
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "- ") && !strings.HasPrefix(line, "cairn: 40 ") {
				t.Errorf("%q: the line %q is no entry", title, line)
			}
		}
	}
	one := &Brief{Ready: []BriefCard{{"k3v9ab", "Rotate the tokens"}}, Outdated: []string{".cairn/notes/abc123.md"}}
	if text := one.Text((&bpe.Counter{}).CountTokens); !strings.Contains(text, `- k3v9ab "Rotate the tokens"`) || !strings.Contains(text, `- ".cairn/notes/abc123.md"`) {
		t.Errorf("%s", text)
	}
}
