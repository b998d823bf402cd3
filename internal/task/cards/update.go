package cards

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"cairn/internal/task"
	"cairn/internal/text/markdown"
)

// UpdateRequest holds the arguments of update_task. The keys of Updates are status,
// assignee, priority and notes, and beyond the specification tags, depends_on and title. An
// empty or null assignee or notes removes the key.
type UpdateRequest struct {
	ID      string                     `json:"id" schema:"pattern=^[a-z0-9]{6}$"`
	Updates map[string]json.RawMessage `json:"updates" schema:"min=1"`
}

// UpdateAnswer is the answer of update_task.
type UpdateAnswer struct {
	ID        string  `json:"id"`
	Title     string  `json:"title"`
	Status    string  `json:"status"`
	Assignee  *string `json:"assignee"`
	Priority  string  `json:"priority"`
	UpdatedAt string  `json:"updated_at"` // RFC 3339
	// UpdatedFields lists the keys of the request whose values changed, in the order of
	// the schema. If there are none, the file was not written.
	UpdatedFields []string `json:"updated_fields"`
}

// Update implements update_task.
func (s *Store) Update(ctx context.Context, r UpdateRequest) (*UpdateAnswer, error) {
	if err := checkID("id", r.ID); err != nil {
		return nil, err
	}
	ch, err := checkUpdates(r.Updates)
	if err != nil {
		return nil, err
	}
	if depends, ok := ch.lists["depends_on"]; ok {
		ch.lists["depends_on"] = s.resolveAll(depends)
	}
	card, fields, err := s.change(ctx, r.ID, ch)
	if err != nil {
		return nil, err
	}
	at := card.Updated
	if at.IsZero() {
		at = card.ModTime.UTC()
	}
	return &UpdateAnswer{ID: card.ID, Title: card.Title, Status: card.Status.CardWord(), Assignee: orNull(card.Assignee),
		Priority: card.Priority, UpdatedAt: at.Format(time.RFC3339), UpdatedFields: fields}, nil
}

// change writes changes to a card. It returns the card and the keys of the request that
// changed.
func (s *Store) change(ctx context.Context, id string, ch changes) (card *Card, fields []string, err error) {
	if c, ok := s.taskOf(id); ok {
		return s.changeTask(ctx, c, ch)
	}
	card, err = s.edit(ctx, id, func(c *Card, old []byte) (text []byte, err error) {
		var edits []markdown.FieldEdit
		if edits, fields = ch.edits(c); len(edits) == 0 {
			return old, nil
		}
		if err := s.checkGraph(path.Dir(c.Path), c, ch, fields); err != nil {
			return nil, err
		}
		if len(fields) > 0 {
			edits = append(edits, markdown.FieldEdit{Key: "updated", Value: s.now().UTC().Truncate(time.Second)})
		}
		if text, err = markdown.EditFrontMatter(old, edits...); err != nil {
			return nil, &task.Error{Number: task.CodeValidation, Message: "Validation Error", Err: err, Data: map[string]any{"path": c.Path, "detail": err.Error(), "suggestion": "Write the front matter as one \"key: value\" a line"}}
		}
		return text, nil
	})
	return card, fields, err
}

// read returns the card with a text, or an error if the text is no card.
func (s *Store) read(p string, text []byte) (*Card, error) {
	info, err := s.files.Stat(p)
	if err != nil {
		return nil, err
	}
	card, broken := parse(strings.TrimSuffix(path.Base(p), ".md"), p, text, info)
	if broken != nil {
		return nil, &task.Error{Number: task.CodeValidation, Message: "Validation Error", Data: map[string]any{"path": p, "detail": broken.Message, "suggestion": broken.Fix}}
	}
	return card, nil
}

// notFound returns the error for an unknown ID, with a suggestion.
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
	return &task.Error{Number: task.CodeNotFound, Message: "Task Not Found", Data: data}
}

func checkUpdates(updates map[string]json.RawMessage) (changes, error) {
	var keys []string
	for _, f := range schema {
		keys = append(keys, f.key)
	}
	ch := changes{texts: map[string]string{}, lists: map[string][]string{}}
	if len(updates) == 0 {
		return ch, invalid("updates is empty, want at least one of {%s}", strings.Join(keys, ","))
	}
	for _, key := range slices.Sorted(maps.Keys(updates)) {
		if !slices.Contains(keys, key) {
			return ch, invalid("unknown key %.50q in updates, want {%s}", key, strings.Join(keys, ","))
		}
	}
	for _, f := range schema {
		raw, ok := updates[f.key]
		if !ok {
			continue
		}
		if f.element != nil {
			var list []string
			if json.Unmarshal(raw, &list) != nil || list == nil {
				return ch, invalid("updates.%s is not an array of strings", f.key)
			}
			ch.lists[f.key] = list
			continue
		}
		var text *string
		if json.Unmarshal(raw, &text) != nil {
			return ch, invalid("updates.%s is not a string", f.key)
		}
		if text == nil && !f.optional {
			return ch, invalid("updates.%s is null, want a string", f.key)
		}
		if text == nil {
			text = new(string)
		}
		ch.texts[f.key] = *text
	}
	return ch, ch.check("updates.")
}

// edits returns the edits of the front matter, and the keys of the request that change.
func (ch changes) edits(c *Card) (edits []markdown.FieldEdit, fields []string) {
	status := c.Status.CardWord()
	texts := map[string]string{"status": status, "assignee": c.Assignee, "priority": c.Priority, "notes": c.Notes, "title": c.Title}
	lists := map[string][]string{"tags": c.Tags, "depends_on": c.DependsOn}
	fields = []string{}
	set := func(key string, value any) {
		edits, fields = append(edits, markdown.FieldEdit{Key: key, Value: value}), append(fields, key)
	}
	for _, f := range schema {
		key := f.key
		if list, ok := ch.lists[key]; ok && !slices.Equal(list, lists[key]) {
			set(key, list)
		}
		switch text, ok := ch.texts[key]; {
		case !ok || text == texts[key]:
		case text == "":
			set(key, nil)
		default:
			set(key, text)
		}
	}
	if to, ok := ch.texts["status"]; ok && to != status {
		// Whether an archived task was done decides if it still blocks others.
		from := markdown.FieldEdit{Key: "archived_from"}
		if to == "archived" {
			from.Value = status
		}
		edits = append(edits, from)
	}
	if ch.ordinal != nil && *ch.ordinal != c.Ordinal {
		edits = append(edits, markdown.FieldEdit{Key: "ordinal", Value: int(*ch.ordinal)})
	}
	return edits, fields
}

// checkGraph returns an error if a new dependency does not exist or closes a cycle, or if
// dependencies forbid to start the card.
func (s *Store) checkGraph(folder string, c *Card, ch changes, fields []string) error {
	depends := c.DependsOn
	if slices.Contains(fields, "depends_on") {
		depends = ch.lists["depends_on"]
		for _, id := range depends {
			if id == c.ID {
				return circular([]string{id, id})
			}
			if !slices.Contains(c.DependsOn, id) { // an old one may be missing
				if err := s.exists(folder, id); err != nil {
					return err
				}
			}
		}
		if err := s.checkCycle(c.ID, depends); err != nil {
			return err
		}
	}
	if s.enforce && slices.Contains(fields, "status") && ch.texts["status"] == "active" {
		return s.checkStart(c.ID, depends)
	}
	return nil
}

// checkCycle returns an error if one of the dependencies of a card depends on the card.
func (s *Store) checkCycle(id string, depends []string) error {
	b, err := s.Board()
	if err != nil {
		return err
	}
	for _, d := range depends {
		if path := b.All().Graph.Path(d, id); path != nil {
			return circular(append([]string{id}, path...))
		}
	}
	return nil
}

func (s *Store) checkStart(id string, depends []string) error {
	b, err := s.Board()
	if err != nil {
		return err
	}
	waiting := task.Unfinished(depends, func(id string) (task.Task, bool) {
		c, ok := b.dependency(id)
		if !ok {
			return task.Task{}, false
		}
		return c.Task, true
	})
	if len(waiting) == 0 {
		return nil
	}
	return &task.Error{Number: task.CodeValidation, Message: task.BlockedMessage(id, waiting),
		Data: map[string]any{"kind": "INVALID_STATUS_TRANSITION", "id": id, "blocking_tasks": waiting, "suggestion": "Finish these first"}}
}
