package cards

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"

	"cairn/internal/task/files"
	"cairn/internal/text/markdown"
)

// edit replaces the text of the card with an ID by the result of change, which receives the
// card and its text. It returns the card as it is then. An error of change changes nothing.
func (s *Store) edit(ctx context.Context, id string, change func(c *Card, text []byte) ([]byte, error)) (card *Card, err error) {
	p, err := s.Path(id)
	if err != nil {
		return nil, err
	}
	_, err = s.files.Edit(ctx, p, func(old []byte, _ files.Stamp) (text []byte, err error) {
		if card, err = s.read(p, old); err != nil {
			return nil, err
		}
		if text, err = change(card, old); err != nil || bytes.Equal(text, old) {
			return old, err
		}
		card, err = s.read(p, text)
		return text, err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, s.notFound(strings.TrimSuffix(path.Base(p), ".md"))
	}
	return card, FileError(p, err)
}

// EditBody replaces the text of a card below its front matter with the result of edit, and sets
// the time of the change. An error of edit changes nothing.
func (s *Store) EditBody(ctx context.Context, id string, edit func(body string) (string, error)) error {
	if err := checkID("id", id); err != nil {
		return err
	}
	_, err := s.edit(ctx, id, func(c *Card, old []byte) ([]byte, error) {
		end := markdown.ReadFrontMatter(old).End
		body, err := edit(string(old[end:]))
		if err != nil || body == string(old[end:]) {
			return old, err
		}
		text, err := markdown.EditFrontMatter(old[:end:end], markdown.FieldEdit{Key: "updated", Value: s.now().UTC().Truncate(time.Second)})
		if err != nil {
			return nil, invalid("the front matter of %s cannot be edited: %v", c.Path, err)
		}
		return append(text, body...), nil
	})
	return err
}
