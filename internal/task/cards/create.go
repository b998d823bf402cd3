package cards

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"cairn/internal/text/markdown"
)

// CreateRequest holds the arguments of create_task.
type CreateRequest struct {
	Title     string   `json:"title" schema:"min=1,max=200"`
	Tags      []string `json:"tags,omitempty"`
	Priority  string   `json:"priority,omitempty" schema:"enum=low|medium|high|critical,default=medium"` // default medium
	Assignee  string   `json:"assignee,omitempty"`
	DependsOn []string `json:"depends_on,omitempty" schema:"items.pattern=^[a-z0-9]{6}$" jsonschema:"Tasks to be done first"`
}

// CreateAnswer is the answer of create_task.
type CreateAnswer struct {
	ID       string   `json:"id"`
	Path     string   `json:"path"`
	Metadata Metadata `json:"metadata"`
}

// Metadata is a new card's front matter.
type Metadata struct {
	Title     string   `json:"title"`
	Status    string   `json:"status"`
	Priority  string   `json:"priority"`
	Assignee  *string  `json:"assignee"`
	Tags      []string `json:"tags"`
	DependsOn []string `json:"depends_on"`
	Created   string   `json:"created"` // RFC 3339
}

// Create implements create_task. It checks the whole request before it writes the file.
func (s *Store) Create(ctx context.Context, r CreateRequest) (*CreateAnswer, error) {
	ch := changes{
		texts: map[string]string{"title": r.Title, "priority": cmp.Or(r.Priority, defaultPriority), "assignee": cmp.Or(r.Assignee, s.assignee)},
		lists: map[string][]string{"tags": r.Tags, "depends_on": r.DependsOn},
	}
	if err := ch.check(""); err != nil {
		return nil, err
	}
	folder, err := s.cardsFolder()
	if err != nil {
		return nil, err
	}
	unlock, err := s.files.Lock(ctx)
	if err != nil {
		return nil, FileError(folder, err)
	}
	defer unlock()
	depends := s.resolveAll(ch.lists["depends_on"])
	for _, id := range depends {
		if err := s.exists(folder, id); err != nil {
			return nil, err
		}
	}
	// The fraction orders cards created within the same second.
	now := s.now().UTC().Truncate(time.Microsecond)
	m := Metadata{Title: ch.texts["title"], Status: "todo", Priority: ch.texts["priority"], Assignee: orNull(ch.texts["assignee"]),
		Tags: orEmpty(ch.lists["tags"]), DependsOn: orEmpty(depends), Created: now.Format(time.RFC3339)}
	text, err := newCard(m, now)
	if err != nil {
		return nil, invalid("%s", err)
	}
	for {
		id := NewID()
		p := path.Join(folder, id+".md")
		err := s.files.Create(p, text)
		if errors.Is(err, fs.ErrExist) {
			continue // a collision among a billion IDs is rare
		}
		if err != nil {
			return nil, FileError(p, err)
		}
		return &CreateAnswer{id, p, m}, nil
	}
}

// exists returns an error if a dependency has no card.
func (s *Store) exists(folder, id string) error {
	p := path.Join(folder, id+".md")
	info, err := s.files.Stat(p)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && info.Mode().IsRegular() {
		return nil
	}
	if _, ok := s.taskOf(id); ok {
		return nil
	}
	return dependencyNotFound(id, p)
}

func newCard(m Metadata, created time.Time) ([]byte, error) {
	edits := []markdown.FieldEdit{{Key: "title", Value: m.Title}, {Key: "status", Value: m.Status}, {Key: "priority", Value: m.Priority}}
	if m.Assignee != nil {
		edits = append(edits, markdown.FieldEdit{Key: "assignee", Value: *m.Assignee})
	}
	if len(m.Tags) > 0 {
		edits = append(edits, markdown.FieldEdit{Key: "tags", Value: m.Tags})
	}
	if len(m.DependsOn) > 0 {
		edits = append(edits, markdown.FieldEdit{Key: "depends_on", Value: m.DependsOn})
	}
	head, err := markdown.NewFrontMatter(append(edits, markdown.FieldEdit{Key: "created", Value: created})...)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(head, "\n# %s\n\n## Description\n\n<!-- What is to be done, and how to tell that it is done. -->\n", m.Title), nil
}

// NewID returns a random ID. It begins with a letter, so that YAML does not read it as a
// number.
func NewID() string {
	for {
		if id := strings.ToLower(rand.Text()[:6]); id[0] >= 'a' {
			return id
		}
	}
}
