package retriever

import (
	"context"
	"strings"
	"testing"

	"cairn/internal/store"
)

// TestCards: a card made from a guide ranks below the guide, its empty sections are not
// indexed, and a filter selects cards.
func TestCards(t *testing.T) {
	const card = ".cairn/cards/abc123.md"
	f := open(t, map[string]string{
		card:       "---\ntitle: Rotate the gateway token\nstatus: todo\n---\n\n# Rotate the gateway token\n\n## Description\n\n<!-- What is to be done. -->\n",
		"guide.md": "# Gateway\n\n## Tokens\n\nTo rotate the token of the gateway, stop the gateway, then rotate the token with a command. Tokens are rotated each month.\n",
		"main.md":  "# Other\n\nOther text about the weather and the sea.\n",
	}, nil)
	for query, want := range map[string]string{
		"rotate the gateway token": "guide.md", "card to rotate the gateway token": card, "description": "",
	} {
		answer, err := f.Search(context.Background(), Query{Text: query, Mode: Keyword})
		must(t, err)
		got := ""
		if len(answer.Results) > 0 {
			got = answer.Results[0].Path
		}
		if got != want {
			t.Errorf("%q: first %q, want %q", query, got, want)
		}
	}
	for kind, want := range map[store.Kind]string{store.Cards: card, store.Docs: "guide.md"} {
		answer, err := f.Search(context.Background(), Query{Text: "rotate the token", Filter: store.Filter{Kind: kind}})
		must(t, err)
		if len(answer.Results) == 0 || answer.Results[0].Path != want {
			t.Errorf("kind %s: %+v, want %s", kind, answer.Results, want)
		}
		for _, r := range answer.Results {
			if strings.HasPrefix(r.Path, ".cairn/") != (kind == store.Cards) {
				t.Errorf("kind %s: %s", kind, r.Path)
			}
		}
	}
}
