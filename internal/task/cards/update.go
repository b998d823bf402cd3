package cards

import (
	"bytes"
	"cmp"
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

	"cairn/internal/task"
	"cairn/internal/task/files"
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
	c, err := s.file(id)
	if err != nil {
		return nil, nil, err
	}
	if c.claude != "" {
		return s.changeTask(ctx, c, ch)
	}
	card, err = s.edit(ctx, c, func(c *Card, old []byte) (text []byte, err error) {
		if depends, ok := ch["depends_on"].([]string); ok {
			if ch["depends_on"], err = s.dependencies(path.Dir(c.Path), depends, c.DependsOn); err != nil {
				return nil, err
			}
		}
		var edits []markdown.FieldEdit
		if edits, fields = ch.edits(c); len(edits) == 0 {
			return old, nil
		}
		if err := cmp.Or(ch.checkClaim(c), s.checkGraph(c, ch, fields)); err != nil {
			return nil, err
		}
		if len(fields) > 0 {
			edits = append(edits, markdown.FieldEdit{Key: "updated", Value: s.o.Now().UTC().Truncate(time.Second)})
		}
		if text, err = markdown.EditFrontMatter(old, edits...); err != nil {
			return nil, notACard(c.Path, err.Error(), "Write the front matter as one \"key: value\" a line")
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
		return nil, notACard(p, broken.Message, broken.Fix)
	}
	return card, nil
}

// file returns the card that a request names, to edit its file: with its path alone if the file
// has the name of the ID.
func (s *Store) file(id string) (*Card, error) {
	folder, err := s.cardsFolder()
	if err != nil {
		return nil, err
	}
	if p, ok := s.own(folder, id); ok {
		return &Card{Path: p}, nil
	}
	_, c, err := s.named(id)
	return c, err
}

// named returns the card that a request names, ignoring case. The error for an unknown ID has
// a suggestion.
func (s *Store) named(id string) (*Board, *Card, error) {
	b, err := s.Board()
	if err != nil {
		return nil, nil, err
	}
	if c, ok := b.Card(id); ok {
		return b, c, nil
	}
	if i := slices.IndexFunc(b.Unusable, func(p task.Problem) bool { return p.ID == id }); i >= 0 {
		return nil, nil, notACard(b.Unusable[i].Path, b.Unusable[i].Message, b.Unusable[i].Fix)
	}
	p, err := s.Path(id)
	if err != nil {
		return nil, nil, err
	}
	data := map[string]any{"id": id, "path": p, "suggestion": "List the task cards to see their ids"}
	if near := markdown.Nearest(slices.Sorted(maps.Keys(b.byID)), id, 1); len(near) > 0 {
		data["suggestion"] = fmt.Sprintf("Did you mean '%s'?", near[0])
	}
	return nil, nil, &task.Error{Number: task.CodeNotFound, Message: "Task Not Found", Data: data}
}

func checkUpdates(updates map[string]json.RawMessage) (changes, error) {
	var keys []string
	for _, f := range schema {
		keys = append(keys, f.key)
	}
	ch := changes{}
	if len(updates) == 0 {
		return ch, task.Invalid("updates is empty, want at least one of {%s}", strings.Join(keys, ","))
	}
	for _, key := range slices.Sorted(maps.Keys(updates)) {
		if !slices.Contains(keys, key) {
			return ch, task.Invalid("unknown key %.50q in updates, want {%s}", key, strings.Join(keys, ","))
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
				return ch, task.Invalid("updates.%s is not an array of strings", f.key)
			}
			ch[f.key] = list
			continue
		}
		var text string // stays empty for null
		if json.Unmarshal(raw, &text) != nil {
			return ch, task.Invalid("updates.%s is not a string", f.key)
		}
		if string(raw) == "null" && !f.optional {
			return ch, task.Invalid("updates.%s is null, want a string", f.key)
		}
		ch[f.key] = text
	}
	return ch, ch.check("updates.")
}

// edits returns the edits of the front matter, and the keys of the request that change.
func (ch changes) edits(c *Card) (edits []markdown.FieldEdit, fields []string) {
	fields = []string{}
	for _, f := range schema {
		v, ok := ch[f.key]
		if list, is := v.([]string); !ok || is && slices.Equal(list, f.of(c).([]string)) || !is && v == f.of(c) {
			continue
		}
		if v == "" {
			v = nil
		}
		edits, fields = append(edits, markdown.FieldEdit{Key: f.key, Value: v}), append(fields, f.key)
	}
	if slices.Contains(fields, "status") {
		// Whether an archived task was done decides if it still blocks others.
		from := markdown.FieldEdit{Key: "archived_from"}
		if ch["status"] == "archived" {
			from.Value = c.Status.CardWord()
		}
		edits = append(edits, from)
	}
	if at, ok := ch["ordinal"].(float64); ok && at != c.Ordinal {
		edits = append(edits, markdown.FieldEdit{Key: "ordinal", Value: int(at)})
	}
	return edits, fields
}

// checkClaim returns an error if a request makes a card active for an assignee, and the card is
// done, or active for another assignee. Of several agents that choose a card at the same time,
// one works on it.
func (ch changes) checkClaim(c *Card) error {
	who, _ := ch["assignee"].(string)
	word := c.Status.CardWord()
	if ch["status"] != "active" || who == "" || word == "todo" || word == "active" && (c.Assignee == "" || strings.EqualFold(c.Assignee, who)) {
		return nil
	}
	if word == "active" {
		word += " for " + c.Assignee
	}
	return &task.Error{Number: task.CodeValidation, Message: "Task " + c.ID + " is " + word, Data: map[string]any{"kind": "INVALID_STATUS_TRANSITION",
		"id": c.ID, "suggestion": "Choose another task, or change the status and the assignee in two requests"}}
}

// checkGraph returns an error if a new dependency closes a cycle, or if dependencies forbid to
// start the card.
func (s *Store) checkGraph(c *Card, ch changes, fields []string) error {
	linked, started := slices.Contains(fields, "depends_on"), s.o.EnforceStart && slices.Contains(fields, "status") && ch["status"] == "active"
	if !linked && !started {
		return nil
	}
	b, err := s.Board()
	if err != nil {
		return err
	}
	depends := b.All().ByID[c.ID].DependsOn
	if linked {
		depends = ch["depends_on"].([]string)
		for _, d := range depends {
			if d == c.ID {
				return circular([]string{d, d})
			}
			if chain := b.All().Graph.Path(d, c.ID); chain != nil {
				return circular(append([]string{c.ID}, chain...))
			}
		}
	}
	if !started {
		return nil
	}
	waiting := b.All().Unfinished(depends)
	if len(waiting) == 0 {
		return nil
	}
	return &task.Error{Number: task.CodeValidation, Message: task.BlockedMessage(c.ID, waiting),
		Data: map[string]any{"kind": "INVALID_STATUS_TRANSITION", "id": c.ID, "blocking_tasks": waiting, "suggestion": "Finish these first"}}
}

// edit replaces the text of a card by the result of change, which receives the card as it is
// on disk and its text. It returns the card as it is then. An error of change changes nothing.
func (s *Store) edit(ctx context.Context, c *Card, change func(c *Card, text []byte) ([]byte, error)) (card *Card, err error) {
	p := c.Path
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
	return card, FileError(p, err)
}

// EditBody replaces the text of a card below its front matter with the result of edit, and sets
// the time of the change. An error of edit changes nothing.
func (s *Store) EditBody(ctx context.Context, id string, edit func(body string) (string, error)) error {
	if err := checkID("id", id); err != nil {
		return err
	}
	c, err := s.file(id)
	if err != nil {
		return err
	}
	if c.claude != "" {
		return task.Invalid("%s is a task of Claude Code, whose text cannot be edited", c.ID)
	}
	_, err = s.edit(ctx, c, func(c *Card, old []byte) ([]byte, error) {
		end := markdown.ReadFrontMatter(old).End
		body, err := edit(string(old[end:]))
		if err != nil || body == string(old[end:]) {
			return old, err
		}
		text, err := markdown.EditFrontMatter(old[:end:end], markdown.FieldEdit{Key: "updated", Value: s.o.Now().UTC().Truncate(time.Second)})
		if err != nil {
			return nil, task.Invalid("the front matter of %s cannot be edited: %v", c.Path, err)
		}
		return append(text, body...), nil
	})
	return err
}

func notACard(path, detail, suggestion string) error {
	return &task.Error{Number: task.CodeValidation, Message: "Validation Error", Data: map[string]any{"path": path, "detail": detail, "suggestion": suggestion}}
}

func circular(path []string) error {
	return &task.Error{Number: task.CodeCycle, Message: "Cycle Detected", Data: map[string]any{
		"kind": "CircularDependency", "cycle_path": path, "suggestion": "Remove dependency " + path[1] + " from " + path[0]}}
}

// FileError adds a code to an error of reading or writing a file.
func FileError(path string, err error) error {
	if err == nil {
		return nil
	}
	if lock, ok := errors.AsType[*files.LockError](err); ok {
		return &task.Error{Number: task.CodeLock, Message: "Lock Error", Err: err, Data: map[string]any{
			"lock_file": lock.Path, "holder_pid": lock.PID, "suggestion": "Another process is writing; try again"}}
	}
	if errors.Is(err, files.ErrChanged) {
		return &task.Error{Number: task.CodeStale, Message: "Stale Cache", Err: err, Data: map[string]any{
			"path": path, "recovery": "The file changed while it was being updated; read it again and repeat the update"}}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return &task.Error{Number: task.CodeNotFound, Message: "Task Not Found", Err: err, Data: map[string]any{"path": path}}
	}
	return err
}
