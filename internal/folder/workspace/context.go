package workspace

import (
	"strings"
	"unicode/utf8"

	"cairn/internal/folder/bundle"
	"cairn/internal/task/cards"
	"cairn/internal/text/markdown"
	"cairn/retriever"
)

// ContextRequest returns the request for the context of a card: its title and text are the
// question.
func (t *Tasks) ContextRequest(id string) (r bundle.Request, err error) {
	answer, err := t.Cards.Dependencies(cards.DependenciesRequest{ID: id})
	if err != nil {
		return r, err
	}
	board, err := t.Cards.Board()
	if err != nil {
		return r, err
	}
	card, ok := board.Card(answer.TaskID)
	if !ok { // it was removed meanwhile
		_, err := t.Cards.Dependencies(cards.DependenciesRequest{ID: id})
		return r, err
	}
	text, err := t.Text(card.Path)
	if err != nil {
		return r, err
	}
	r.Query = strings.TrimSpace(card.Title + "\n" + markdown.Plain(card.Path, "", text[markdown.ReadFrontMatter(text).End:]))
	if runes := utf8.RuneCountInString(r.Query); runes > retriever.MaxQuery {
		r.Query = string([]rune(r.Query)[:retriever.MaxQuery])
	}
	r.Cards = []string{card.Path}
	for _, dep := range answer.Tasks {
		if c, ok := board.Card(dep.ID); ok {
			r.Cards = append(r.Cards, c.Path)
		}
	}
	return r, nil
}
