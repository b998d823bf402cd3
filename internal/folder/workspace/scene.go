package workspace

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"cairn/internal/folder/bundle"
	"cairn/internal/folder/config"
	"cairn/internal/task"
	"cairn/internal/task/cards"
	"cairn/internal/task/scene"
	"cairn/internal/text/markdown"
	"cairn/models/bpe"
	"cairn/retriever"
)

// Scene collects the documents of the current work: the active cards, the documents that they
// refer to, and the named documents, up to limit tokens. It masks secrets as cfg requires.
func (t *Tasks) Scene(ctx context.Context, cfg config.Config, documents []string, limit int) (*scene.Scene, error) {
	masks, err := cfg.Security.Masks()
	if err != nil {
		return nil, err
	}
	paths, err := t.Paths(ctx, false, nil)
	if err != nil {
		return nil, err
	}
	board, err := t.Cards.Board()
	if err != nil {
		return nil, err
	}
	r := scene.Request{
		Paths: paths, Working: documents, Read: t.dated,
		TokenLimit: limit, Count: (&bpe.Counter{}).CountTokens, Masks: masks, Now: time.Now(),
	}
	for _, d := range documents {
		if !slices.Contains(paths, d) {
			return nil, fmt.Errorf("%s is not a document of this folder; `cairn open` finds documents", d)
		}
	}
	for _, c := range board.Cards {
		if c.Status == task.InProgress {
			r.Cards = append(r.Cards, c.Path)
		}
	}
	for _, p := range paths {
		if dir := path.Dir(p); dir == ".cairn/docs" || dir == ".cuedeck/docs" {
			r.Global = append(r.Global, p)
		}
	}
	return scene.Build(r), nil
}

// dated returns the text of a file and the time of its last change.
func (t *Tasks) dated(path string) (text []byte, at time.Time, err error) {
	info, err := t.Stat(path)
	if err == nil {
		at = info.ModTime()
		text, err = t.Text(path)
	}
	return text, at, err
}

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
	if runes := []rune(r.Query); len(runes) > retriever.MaxQuery {
		r.Query = string(runes[:retriever.MaxQuery])
	}
	r.Cards = []string{card.Path}
	for _, dep := range answer.Tasks {
		if c, ok := board.Card(dep.ID); ok {
			r.Cards = append(r.Cards, c.Path)
		}
	}
	return r, nil
}
