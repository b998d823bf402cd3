package cards

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"cairn/internal/markdown"
	"cairn/internal/task"
)

// UpdateRequest is what update_task takes. Updates holds the keys status,
// assignee, priority and notes, and beyond the specification tags, depends_on
// and title; any other is refused. An empty or null assignee or notes removes it.
type UpdateRequest struct {
	ID      string                     `json:"id"`
	Updates map[string]json.RawMessage `json:"updates"`
}

// UpdateAnswer is what update_task returns.
type UpdateAnswer struct {
	ID        string  `json:"id"`
	Title     string  `json:"title"`
	Status    string  `json:"status"`
	Assignee  *string `json:"assignee"`
	Priority  string  `json:"priority"`
	UpdatedAt string  `json:"updated_at"` // RFC 3339
	// UpdatedFields are the keys given whose values changed, in the order of
	// the schema. When there is none the file was not touched.
	UpdatedFields []string `json:"updated_fields"`
}

// updateKeys in the order of the schema, extensions last.
var updateKeys = []string{"status", "assignee", "priority", "notes", "tags", "depends_on", "title"}

// changes is a checked update; nil fields are not asked for.
type changes struct {
	status                           *task.Status
	assignee, priority, notes, title *string
	tags, depends                    *[]string
}

// Update answers update_task.
func (s *Store) Update(ctx context.Context, r UpdateRequest) (*UpdateAnswer, error) {
	if err := checkID("id", r.ID); err != nil {
		return nil, err
	}
	ch, err := checkUpdates(r.Updates)
	if err != nil {
		return nil, err
	}
	folder, err := s.cardsFolder()
	if err != nil {
		return nil, err
	}
	p := path.Join(folder, r.ID+".md")
	w, err := s.files.Lock(ctx)
	if err != nil {
		return nil, fileError(p, err)
	}
	defer w.Unlock()
	content, stamp, err := s.files.Read(p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, s.notFound(r.ID)
	}
	if err != nil {
		return nil, fileError(p, err)
	}
	info, err := s.files.Stat(p)
	if err != nil {
		return nil, fileError(p, err)
	}
	card, broken := parse(r.ID, p, content, info)
	if broken != nil {
		return nil, &Error{Code: CodeValidation, Message: "Validation Error", Data: map[string]any{"path": p, "detail": broken.Message, "suggestion": broken.Fix}}
	}
	now := s.now().UTC().Truncate(time.Second)
	edits, fields := ch.edits(card)
	if len(fields) > 0 {
		if err := s.checkGraph(folder, card, ch, fields); err != nil {
			return nil, err
		}
		edits = append(edits, markdown.FieldEdit{Key: "updated", Value: now})
		text, err := markdown.EditFrontMatter(content, edits...)
		if err != nil {
			return nil, &Error{Code: CodeValidation, Message: "Validation Error", Err: err, Data: map[string]any{"path": p, "detail": err.Error(), "suggestion": "Write the front matter as one \"key: value\" a line"}}
		}
		if err := w.Replace(p, text, stamp); err != nil {
			return nil, fileError(p, err)
		}
		if card, broken = parse(r.ID, p, text, info); broken != nil {
			return nil, fmt.Errorf("card %s cannot be read back: %s", p, broken.Message) // unreachable: the edit was verified
		}
	}
	at := card.Updated
	if at.IsZero() {
		at = card.ModTime.UTC()
	}
	return &UpdateAnswer{ID: r.ID, Title: card.Title, Status: card.Status.CardWord(), Assignee: orNull(card.Assignee),
		Priority: card.Priority, UpdatedAt: at.Format(time.RFC3339), UpdatedFields: fields}, nil
}

// notFound says that there is no card of that id, and which are near.
func (s *Store) notFound(id string) error {
	p, err := s.Path(id)
	if err != nil {
		return err
	}
	data := map[string]any{"id": id, "path": p}
	if b, err := s.Board(); err == nil {
		if near := markdown.Nearest(slices.Sorted(maps.Keys(b.byID)), id, 1); len(near) > 0 {
			data["suggestion"] = fmt.Sprintf("Did you mean '%s'?", near[0])
		} else {
			data["suggestion"] = "list_tasks shows the ids there are"
		}
	}
	return &Error{Code: CodeNotFound, Message: "Task Not Found", Data: data}
}

func checkUpdates(updates map[string]json.RawMessage) (ch changes, err error) {
	if len(updates) == 0 {
		return ch, invalid("updates is empty, want at least one of {%s}", strings.Join(updateKeys, ","))
	}
	for _, key := range slices.Sorted(maps.Keys(updates)) {
		if !slices.Contains(updateKeys, key) {
			return ch, invalid("unknown key %.50q in updates, want {%s}", key, strings.Join(updateKeys, ","))
		}
	}
	str := func(key string, null bool) (*string, error) {
		raw, ok := updates[key]
		if !ok {
			return nil, nil
		}
		var text *string
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, invalid("updates.%s is not a string", key)
		}
		if text == nil {
			if !null {
				return nil, invalid("updates.%s is null, want a string", key)
			}
			text = new(string)
		}
		return text, nil
	}
	list := func(key string, check func([]string) ([]string, error)) (*[]string, error) {
		raw, ok := updates[key]
		if !ok {
			return nil, nil
		}
		var texts []string
		if err := json.Unmarshal(raw, &texts); err != nil || bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
			return nil, invalid("updates.%s is not an array of strings", key)
		}
		texts, err := check(texts)
		return &texts, err
	}
	word, err := str("status", false)
	if err != nil {
		return ch, err
	}
	if word != nil {
		status, ok := task.CardStatus(*word)
		if !ok {
			return ch, invalid("updates.status %.50q, want {%s}", *word, strings.Join(statusWords, ","))
		}
		ch.status = &status
	}
	if ch.assignee, err = str("assignee", true); err != nil {
		return ch, err
	}
	if ch.assignee != nil {
		if *ch.assignee, err = checkAssignee(*ch.assignee); err != nil {
			return ch, err
		}
	}
	if ch.priority, err = str("priority", false); err != nil {
		return ch, err
	}
	if ch.priority != nil && !slices.Contains(priorities, *ch.priority) {
		return ch, invalid("updates.priority %.50q, want {%s}", *ch.priority, strings.Join(priorities, ","))
	}
	if ch.notes, err = str("notes", true); err != nil {
		return ch, err
	}
	if ch.notes != nil {
		if n := utf8.RuneCountInString(*ch.notes); n > maxNotes {
			return ch, invalid("updates.notes has %d characters, want at most %d", n, maxNotes)
		}
		*ch.notes = strings.TrimSpace(*ch.notes)
	}
	if ch.title, err = str("title", false); err != nil {
		return ch, err
	}
	if ch.title != nil {
		if *ch.title, err = checkTitle(*ch.title); err != nil {
			return ch, err
		}
	}
	if ch.tags, err = list("tags", checkTags); err != nil {
		return ch, err
	}
	ch.depends, err = list("depends_on", checkDepends)
	return ch, err
}

// edits lists the keys to write, and the keys of the request that they change.
func (ch changes) edits(c *Card) (edits []markdown.FieldEdit, fields []string) {
	fields = []string{}
	set := func(key string, value any) {
		edits, fields = append(edits, markdown.FieldEdit{Key: key, Value: value}), append(fields, key)
	}
	setText := func(key string, want *string, have string) {
		switch {
		case want == nil || *want == have:
		case *want == "":
			set(key, nil)
		default:
			set(key, *want)
		}
	}
	setList := func(key string, want *[]string, have []string) {
		if want != nil && !slices.Equal(*want, have) {
			set(key, *want)
		}
	}
	if ch.status != nil && ch.status.CardWord() != c.Status.CardWord() {
		set("status", ch.status.CardWord())
		// Whether an archived task was done decides if it still blocks others.
		if *ch.status == task.Archived {
			edits = append(edits, markdown.FieldEdit{Key: "archived_from", Value: c.Status.CardWord()})
		} else {
			edits = append(edits, markdown.FieldEdit{Key: "archived_from"})
		}
	}
	setText("assignee", ch.assignee, c.Assignee)
	setText("priority", ch.priority, c.Priority)
	setText("notes", ch.notes, c.Notes)
	setList("tags", ch.tags, c.Tags)
	setList("depends_on", ch.depends, c.DependsOn)
	setText("title", ch.title, c.Title)
	return edits, fields
}

// checkGraph refuses new dependencies that do not exist or close a cycle, and
// a start that dependencies forbid, before anything is written.
func (s *Store) checkGraph(folder string, c *Card, ch changes, fields []string) error {
	depends := c.DependsOn
	if slices.Contains(fields, "depends_on") {
		depends = *ch.depends
		for _, id := range depends {
			if id == c.ID {
				return circular([]string{id, id})
			}
			if !slices.Contains(c.DependsOn, id) { // an old one may dangle
				if err := s.exists(folder, id); err != nil {
					return err
				}
			}
		}
		if err := s.checkCycle(c.ID, depends); err != nil {
			return err
		}
	}
	if s.enforce && slices.Contains(fields, "status") && *ch.status == task.InProgress {
		return s.checkStart(c.ID, depends)
	}
	return nil
}

// checkCycle refuses dependencies of a card from which a way leads back to it.
func (s *Store) checkCycle(id string, depends []string) error {
	b, err := s.Board()
	if err != nil {
		return err
	}
	// Breadth first from each, the shortest way back. What one of them did not
	// lead back from, the next does not either.
	from := map[string]string{}
	for _, d := range depends {
		if _, seen := from[d]; seen {
			continue
		}
		from[d] = id
		queue := []string{d}
		for k := 0; k < len(queue); k++ {
			c, ok := b.byID[queue[k]]
			if !ok {
				continue
			}
			for _, next := range c.DependsOn {
				if next == id {
					way := []string{id}
					for at := queue[k]; at != id; at = from[at] {
						way = append(way, at)
					}
					way = append(way, id)
					slices.Reverse(way)
					return circular(way)
				}
				if _, seen := from[next]; !seen {
					from[next] = queue[k]
					queue = append(queue, next)
				}
			}
		}
	}
	return nil
}

func (s *Store) checkStart(id string, depends []string) error {
	b, err := s.Board()
	if err != nil {
		return err
	}
	var waiting []string
	for _, d := range depends {
		if c, ok := b.byID[d]; !ok || !c.Done() {
			waiting = append(waiting, d)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	return &Error{Code: CodeValidation, Message: fmt.Sprintf("Task %s blocked by incomplete dependencies: %s", id, strings.Join(waiting, ", ")),
		Data: map[string]any{"kind": "INVALID_STATUS_TRANSITION", "id": id, "blocking_tasks": waiting, "suggestion": "Finish these first"}}
}
