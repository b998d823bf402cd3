// Package bundle compiles the context of a task: the sections, symbols and commits that
// belong to a question or a card, in the order of reading and within a budget, each with
// the reason why it is there.
//
// Compile ranks files by a search, by the commits whose subjects resemble the question, and
// by what was changed together with the best of them. It takes the best sections of the best
// files until they match much less than the first, where two of source code may match less,
// and names further ones in More.
package bundle

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"cairn/internal/folder/history"
	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/text/invisible"
	"cairn/retriever"
)

// Request describes a task.
type Request struct {
	// Query is the question, 1 to retriever.MaxQuery runes.
	Query string `json:"query"`
	// Cards are the paths of the card of the task and of the cards that it depends on.
	Cards []string `json:"cards,omitempty"`
	// Context lists the documents and tools in use, as that of a retriever.Query.
	Context []string       `json:"context,omitempty"`
	Mode    retriever.Mode `json:"mode,omitempty"`
	Filter  store.Filter   `json:"filters,omitzero"`
	// Budget bounds the whole answer in tokens; 0 means DefaultBudget.
	Budget int `json:"budget,omitempty"`
	// AsText makes Budget the bound of Bundle.Text.
	AsText bool `json:"as_text,omitempty"`
}

// The bounds of a Request.
const (
	DefaultBudget = 4000
	MinBudget     = retriever.MinBudget
	MaxBudget     = retriever.MaxBudget
)

// Sources are what Compile reads.
type Sources struct {
	Search    *retriever.Retriever
	Documents *docs.Store
	History   *history.History // may be nil
	Count     func(text string) int
	// Containing returns the paths of the documents that can contain a text.
	Containing func(text string) []string
}

// Bundle is the context of a task.
type Bundle struct {
	// Items are in the order of reading: the cards, then the files, the best first, each
	// from its first line to its last.
	Items []Item `json:"items"`
	// Commits are the last commits that changed these files, and those that resemble the
	// question.
	Commits []Commit `json:"commits,omitempty"`
	// More lists the best places without an item.
	More []Place `json:"more,omitempty"`
	// Omitted is the number of places without an item, those of More included.
	Omitted int `json:"omitted,omitempty"`
	// Tokens is the size of the answer.
	Tokens int `json:"tokens"`
	// Notes say what the index lacked.
	Notes []string `json:"notes,omitempty"`
}

// Place is a section of a document and the reason why it belongs to the task.
type Place struct {
	Path   string          `json:"path"`
	Lines  retriever.Lines `json:"lines"`
	Anchor string          `json:"anchor,omitempty"`
	Why    string          `json:"why"`
}

// Item is a place with its text.
type Item struct {
	Place
	// Mark is that of the receipt of the lines: see package receipt. A document with masked
	// secrets, and one that is not text, have none; Hash is that of the section then.
	Mark string `json:"mark,omitempty"`
	Hash string `json:"hash,omitempty"`
	// Part is set if Text is not that of all Lines: "signature" or "passage".
	Part  string           `json:"part,omitempty"`
	Text  string           `json:"text"`
	Flags []invisible.Flag `json:"flags,omitempty"`
}

// Commit is a commit and the reason why it belongs to the task.
type Commit struct {
	history.Commit
	Why string `json:"why"`
}

func (p *Place) String() string {
	at := fmt.Sprintf("%s:%d-%d", p.Path, p.Lines.Start, p.Lines.End)
	if p.Anchor != "" {
		at += " #" + p.Anchor
	}
	return at
}

// write writes an entry of a bundle: an *Item, a *Commit or a *Place.
func write(b *strings.Builder, entry any) {
	switch e := entry.(type) {
	case *Item:
		at := e.Place.String()
		if mark := cmp.Or(e.Mark, e.Hash); mark != "" {
			at += " @" + mark
		}
		if at += "  " + e.Why; e.Part != "" {
			at += ", " + e.Part + " only"
		}
		retriever.WriteSection(b, at+retriever.Flagged(e.Flags), e.Text)
	case *Commit:
		retriever.WriteSection(b, fmt.Sprintf("commit %.8s %s %s  %s", e.Hash, e.Time.Format("2006-01-02"), e.Subject, e.Why), "")
	case *Place:
		retriever.WriteSection(b, "more "+e.String()+"  "+e.Why, "")
	}
}

// Text returns the bundle as text for a model, in the form of retriever.Answer.Text.
func (b *Bundle) Text() string {
	var s strings.Builder
	for _, note := range b.Notes {
		fmt.Fprintf(&s, "note: %s\n", note)
	}
	for i := range b.Items {
		write(&s, &b.Items[i])
	}
	for i := range b.Commits {
		write(&s, &b.Commits[i])
	}
	for i := range b.More {
		write(&s, &b.More[i])
	}
	if n := b.Omitted - len(b.More); n > 0 {
		fmt.Fprintf(&s, "@@ %d further places were left out\n", n)
	}
	if s.Len() == 0 {
		return "nothing found"
	}
	return strings.TrimSuffix(s.String(), "\n")
}

// rendered returns the form of v that the budget counts.
func (r *Request) rendered(v any) string {
	if b, ok := v.(*Bundle); ok && r.AsText {
		return b.Text()
	}
	if r.AsText {
		var b strings.Builder
		write(&b, v)
		return b.String()
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("marshalling %T: %v", v, err)) // unreachable: all values of answers can be marshalled
	}
	return string(text) + ","
}
