package cards

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"cairn/internal/text/markdown"
)

// Limits of the fields of a card. The first three are from the specification.
const (
	maxTitle    = 200 // runes
	maxAssignee = 50
	maxNotes    = 500
	maxTag      = 100
	maxTags     = 100
	maxDepends  = 1000
)

// Statuses are the statuses of cards.
var Statuses = []string{"todo", "active", "done", "archived"}

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
	r.Assignee = cmp.Or(r.Assignee, s.assignee)
	if err := checkCreate(&r); err != nil {
		return nil, err
	}
	folder, err := s.cardsFolder()
	if err != nil {
		return nil, err
	}
	unlock, err := s.files.Lock(ctx)
	if err != nil {
		return nil, fileError(folder, err)
	}
	defer unlock()
	r.DependsOn = s.resolveAll(r.DependsOn)
	for _, id := range r.DependsOn {
		if err := s.exists(folder, id); err != nil {
			return nil, err
		}
	}
	// The fraction orders cards created within the same second.
	now := s.now().UTC().Truncate(time.Microsecond)
	text, err := newCard(r, now)
	if err != nil {
		return nil, invalid("%s", err)
	}
	for {
		id := newID(s.now(), r.Title)
		p := path.Join(folder, id+".md")
		err := s.files.Create(p, text)
		if errors.Is(err, fs.ErrExist) {
			continue // a collision among two billion IDs is rare
		}
		if err != nil {
			return nil, fileError(p, err)
		}
		return &CreateAnswer{ID: id, Path: p, Metadata: Metadata{
			Title: r.Title, Status: "todo", Priority: r.Priority, Assignee: orNull(r.Assignee),
			Tags: orEmpty(r.Tags), DependsOn: orEmpty(r.DependsOn), Created: now.Format(time.RFC3339)}}, nil
	}
}

// exists returns an error if a dependency has no card.
func (s *Store) exists(folder, id string) error {
	p := path.Join(folder, id+".md")
	info, err := s.files.Stat(p)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil || !info.Mode().IsRegular() {
		return dependencyNotFound(id, p)
	}
	return nil
}

func newCard(r CreateRequest, created time.Time) ([]byte, error) {
	edits := []markdown.FieldEdit{{Key: "title", Value: r.Title}, {Key: "status", Value: "todo"}, {Key: "priority", Value: r.Priority}}
	if r.Assignee != "" {
		edits = append(edits, markdown.FieldEdit{Key: "assignee", Value: r.Assignee})
	}
	if len(r.Tags) > 0 {
		edits = append(edits, markdown.FieldEdit{Key: "tags", Value: r.Tags})
	}
	if len(r.DependsOn) > 0 {
		edits = append(edits, markdown.FieldEdit{Key: "depends_on", Value: r.DependsOn})
	}
	head, err := markdown.NewFrontMatter(append(edits, markdown.FieldEdit{Key: "created", Value: created})...)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(head, "\n# %s\n\n## Description\n\n<!-- What is to be done, and how to tell that it is done. -->\n", r.Title), nil
}

var created atomic.Uint64

// newID generates an ID from the time, the title, the process and a counter. The last two
// distinguish cards with the same title created at the same time. The ID begins with a
// letter, so that YAML does not read it as a number.
func newID(now time.Time, title string) string {
	seed := binary.BigEndian.AppendUint64(nil, uint64(now.UnixNano()))
	seed = binary.BigEndian.AppendUint64(seed, uint64(os.Getpid()))
	seed = binary.BigEndian.AppendUint64(seed, created.Add(1))
	sum := sha256.Sum256(append(seed, title...))
	n := binary.BigEndian.Uint64(sum[:])
	const digits = "abcdefghijklmnopqrstuvwxyz0123456789"
	id := []byte{digits[n%26]}
	for n /= 26; len(id) < 6; n /= 36 {
		id = append(id, digits[n%36])
	}
	return string(id)
}

func checkCreate(r *CreateRequest) (err error) {
	if r.Title, err = checkTitle(r.Title); err != nil {
		return err
	}
	if r.Priority == "" {
		r.Priority = defaultPriority
	}
	if !slices.Contains(Priorities, r.Priority) {
		return invalid("priority %q, want {%s}", r.Priority, strings.Join(Priorities, ","))
	}
	if r.Assignee, err = checkAssignee(r.Assignee); err != nil {
		return err
	}
	if r.Tags, err = checkTags(r.Tags); err != nil {
		return err
	}
	r.DependsOn, err = checkDepends(r.DependsOn)
	return err
}

// checkText trims a text. It returns an error if the text is too long or not a single line.
func checkText(key, text string, limit int) (string, error) {
	text = strings.TrimSpace(text)
	switch n := utf8.RuneCountInString(text); {
	case !utf8.ValidString(text):
		return "", invalid("%s is not valid UTF-8", key)
	case n > limit:
		return "", invalid("%s has %d characters, want at most %d", key, n, limit)
	case strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }) >= 0:
		return "", invalid("%s holds a line break or control character", key)
	}
	return text, nil
}

func checkTitle(title string) (string, error) {
	title, err := checkText("title", title, maxTitle)
	if err == nil && title == "" {
		err = invalid("title is empty, want 1 to %d characters", maxTitle)
	}
	return title, err
}

func checkAssignee(name string) (string, error) { return checkText("assignee", name, maxAssignee) }

func checkTags(tags []string) ([]string, error) {
	if len(tags) > maxTags {
		return nil, invalid("%d tags, want at most %d", len(tags), maxTags)
	}
	out := make([]string, 0, len(tags))
	for _, t := range tags {
		t, err := checkText("tag", t, maxTag)
		if err != nil {
			return nil, err
		}
		if t == "" {
			return nil, invalid("a tag is empty")
		}
		out = append(out, t)
	}
	return unique(out), nil
}

func checkDepends(ids []string) ([]string, error) {
	if len(ids) > maxDepends {
		return nil, invalid("%d dependencies, want at most %d", len(ids), maxDepends)
	}
	for _, id := range ids {
		if err := checkID("depends_on", id); err != nil {
			return nil, err
		}
	}
	return unique(slices.Clone(ids)), nil
}

// checkID returns an error if id cannot be an ID. It accepts the names of cards that people
// create, although the published pattern is narrower.
func checkID(key, id string) error {
	if len(id) > 100 || !stemPattern.MatchString(id) || strings.Contains(id, "..") {
		return invalid("%s %.100q, want six of a-z and 0-9", key, id)
	}
	return nil
}
