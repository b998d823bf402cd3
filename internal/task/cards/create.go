package cards

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"cairn/internal/task"
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
	ch := changes{"title": r.Title, "status": "todo", "priority": cmp.Or(r.Priority, defaultPriority), "assignee": cmp.Or(r.Assignee, s.o.Assignee),
		"tags": r.Tags, "depends_on": r.DependsOn}
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
	if ch["depends_on"], err = s.dependencies(folder, ch["depends_on"].([]string), nil); err != nil {
		return nil, err
	}
	// The fraction orders cards created within the same second.
	now := s.o.Now().UTC().Truncate(time.Microsecond)
	var edits []markdown.FieldEdit
	for _, key := range []string{"title", "status", "priority", "assignee", "tags", "depends_on"} {
		if list, ok := ch[key].([]string); ch[key] != "" && (!ok || len(list) > 0) {
			edits = append(edits, markdown.FieldEdit{Key: key, Value: ch[key]})
		}
	}
	head, err := markdown.NewFrontMatter(append(edits, markdown.FieldEdit{Key: "created", Value: now})...)
	if err != nil {
		return nil, task.Invalid("%s", err)
	}
	text := fmt.Appendf(head, "\n# %s\n\n## Description\n\n<!-- What is to be done, and how to tell that it is done. -->\n", ch["title"])
	m := Metadata{Title: ch["title"].(string), Status: "todo", Priority: ch["priority"].(string), Assignee: orNull(ch["assignee"].(string)),
		Tags: append([]string{}, ch["tags"].([]string)...), DependsOn: append([]string{}, ch["depends_on"].([]string)...), Created: now.Format(time.RFC3339)}
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

// dependencies returns the IDs of the cards that a request names, each once. It returns an
// error if one has no card, except for old dependencies.
func (s *Store) dependencies(folder string, names, old []string) ([]string, error) {
	ids := slices.Clone(names)
	for i, id := range ids {
		if _, ok := s.own(folder, id); ok {
			continue
		}
		b, err := s.Board()
		if err != nil {
			return nil, err
		}
		if c, ok := b.Card(id); ok {
			id = c.ID
		} else if !slices.Contains(old, id) && !slices.ContainsFunc(b.Unusable, func(p task.Problem) bool { return p.ID == id }) {
			return nil, &task.Error{Number: task.CodeNotFound, Message: "Dependency Not Found", Data: map[string]any{
				"kind": "DependencyNotFound", "id": id, "path": path.Join(folder, id+".md"), "suggestion": "Create task " + id + " first, or leave it out of depends_on"}}
		}
		ids[i] = id
	}
	return unique(ids), nil
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
