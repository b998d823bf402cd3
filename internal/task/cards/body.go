package cards

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"time"

	"cairn/internal/task/files"
	"cairn/internal/text/markdown"
)

// EditBody replaces the text of a card below its front matter with the result of edit, and sets
// the time of the change. An error of edit changes nothing.
func (s *Store) EditBody(ctx context.Context, id string, edit func(body string) (string, error)) error {
	if err := checkID("id", id); err != nil {
		return err
	}
	folder, err := s.cardsFolder()
	if err != nil {
		return err
	}
	id = s.resolve(id)
	p := path.Join(folder, id+".md")
	_, err = s.files.Edit(ctx, p, func(old []byte, _ files.Stamp) ([]byte, error) {
		if _, err := s.read(p, old); err != nil {
			return nil, err
		}
		end := markdown.ReadFrontMatter(old).End
		body, err := edit(string(old[end:]))
		if err != nil || body == string(old[end:]) {
			return old, err
		}
		text, err := markdown.EditFrontMatter(old[:end:end], markdown.FieldEdit{Key: "updated", Value: s.now().UTC().Truncate(time.Second)})
		if err != nil {
			return nil, invalid("the front matter of %s cannot be edited: %v", p, err)
		}
		text = append(text, body...)
		_, err = s.read(p, text)
		return text, err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return s.notFound(id)
	}
	return fileError(p, err)
}
