// Package notes keeps what agents and people have found out: Markdown files in .cairn/notes,
// each with receipts of the lines that it rests on. People edit the files by hand. The text
// of a note is data: nothing here follows it. Searches find notes as they find documents,
// and say which ones rest on lines that changed.
package notes

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"cairn/internal/task"
	"cairn/internal/task/cards"
	"cairn/internal/task/files"
	"cairn/internal/text/invisible"
	"cairn/internal/text/markdown"
	"cairn/internal/text/receipt"
	"cairn/internal/text/secret"
)

// Folder is the workspace path of the notes.
const Folder = ".cairn/notes"

// The bounds of notes.
const (
	MaxText     = 4000 // runes
	MaxReceipts = 8    // of a note
	MaxNotes    = 5000 // of a folder
	PerSession  = 100  // writes
	maxTags     = 20
	maxLine     = 200 // runes of a title, a tag or a name
)

// Options configures New.
type Options struct {
	// Source reads the documents that a note may cite, without masking.
	Source receipt.Source
	// Masks are the secrets that a note must not keep; nil masks nothing.
	Masks *secret.Masks
	// By is the author of notes that name none.
	By string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Store writes the notes of a workspace. It is safe for concurrent use by any number of
// processes.
type Store struct {
	files *files.Tree
	o     Options

	mu     sync.Mutex
	writes map[string]int // by session
}

// New returns the Store of the notes below the main root of tree.
func New(tree *files.Tree, o Options) *Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Store{files: tree, o: o, writes: map[string]int{}}
}

// Request asks for a new note, or for a change of one.
type Request struct {
	Text  string   `json:"text,omitempty" schema:"max=4000" jsonschema:"What was found out, in Markdown; omit it to confirm a note"`
	Title string   `json:"title,omitempty" schema:"max=200" jsonschema:"Default: the first line"`
	Tags  []string `json:"tags,omitempty" schema:"max=20"`
	// RestsOn lists places or receipts.
	RestsOn []string `json:"rests_on,omitempty" schema:"max=8" jsonschema:"Lines that show it: docs/a.md#anchor, docs/a.md:3-9, or with the mark of read_doc docs/a.md:3-9@s5mXq0aFjT2kz1Bc"`
	By      string   `json:"by,omitempty" schema:"max=200" jsonschema:"Your name"`
	// Answer is for workspace.Tasks.Remember, which fills the other fields.
	Answer string `json:"answer,omitempty" schema:"max=100" jsonschema:"task_id of a question whose answer to keep, with what it cites"`
	// ID names the note to confirm, to correct or to drop.
	ID   string `json:"id,omitempty" schema:"pattern=^[a-z0-9]{6}$" jsonschema:"Note to correct with text, or to confirm without"`
	Drop bool   `json:"drop,omitempty" schema:"default=false" jsonschema:"Remove the note"`
}

// Answer describes a note that was written.
type Answer struct {
	ID       string   `json:"id"`
	Path     string   `json:"path"`
	Receipts []string `json:"receipts"`         // short forms
	Masked   int      `json:"masked,omitempty"` // secrets in the text
	Dropped  bool     `json:"dropped,omitempty"`
}

// Text returns the answer in one line, with the lines that the note rests on.
func (a *Answer) Text() string {
	if a.Dropped {
		return "dropped " + a.Path
	}
	line := a.ID + " " + a.Path
	for _, r := range a.Receipts {
		line += "\nrests on " + r
	}
	if a.Masked > 0 {
		line += fmt.Sprintf("\nmasked secrets: %d", a.Masked)
	}
	return line
}

// Remember writes, corrects, confirms or drops a note. session names the caller, whose
// writes are bounded. It checks the whole request before it writes a file.
func (s *Store) Remember(ctx context.Context, session string, r Request) (*Answer, error) {
	masked, err := s.check(&r)
	if err != nil {
		return nil, err
	}
	if err := s.count(session); err != nil {
		return nil, err
	}
	cited, err := s.cite(ctx, r.RestsOn)
	if err != nil {
		return nil, err
	}
	a := &Answer{ID: r.ID, Path: path.Join(Folder, r.ID+".md"), Receipts: []string{}, Masked: masked}
	switch {
	case r.ID == "" || r.Drop:
		var unlock func()
		if unlock, err = s.files.Lock(ctx); err != nil {
			break
		}
		defer unlock()
		if a.Dropped = r.Drop; r.Drop {
			err = s.files.Remove(a.Path)
		} else {
			err = s.create(r, cited, a)
		}
	default:
		_, err = s.files.Edit(ctx, a.Path, func(old []byte, _ files.Stamp) ([]byte, error) {
			text, err := s.edit(ctx, r, old, cited)
			for _, c := range receipt.In(text, MaxReceipts) {
				a.Receipts = append(a.Receipts, c.Receipt.String())
			}
			return text, err
		})
	}
	if err != nil {
		return nil, fileError(a, err)
	}
	return a, nil
}

func fileError(a *Answer, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &task.Error{Number: task.CodeNotFound, Message: "Note Not Found", Err: err, Data: map[string]any{
			"path": a.Path, "suggestion": "read_context with the filter kind notes finds notes"}}
	}
	return cards.FileError(a.Path, err)
}

// check masks the secrets of a request and checks its fields.
func (s *Store) check(r *Request) (masked int, err error) {
	if r.ID == "" && (r.Drop || strings.TrimSpace(r.Text) == "") {
		return 0, task.Invalid("give a text, or the id of a note")
	}
	if r.Drop && (r.Text != "" || len(r.RestsOn) > 0) {
		return 0, task.Invalid("drop takes only an id")
	}
	if r.ID != "" && !idPattern.MatchString(r.ID) {
		return 0, task.Invalid("id %.100q, want six of a-z and 0-9", r.ID)
	}
	if n := utf8.RuneCountInString(r.Text); n > MaxText {
		return 0, task.Invalid("text has %d characters, want at most %d", n, MaxText)
	}
	if len(r.RestsOn) > MaxReceipts || len(r.Tags) > maxTags {
		return 0, task.Invalid("%d places and %d tags, want at most %d and %d", len(r.RestsOn), len(r.Tags), MaxReceipts, maxTags)
	}
	r.Tags = slices.Clone(r.Tags)
	lines := []*string{&r.Title, &r.By}
	for i := range r.Tags {
		lines = append(lines, &r.Tags[i])
	}
	for _, l := range append(lines, &r.Text) {
		text, n := s.o.Masks.Mask([]byte(strings.TrimSpace(strings.ReplaceAll(*l, "\r\n", "\n"))))
		masked += n
		switch *l = string(text); {
		case !utf8.Valid(text):
			return 0, task.Invalid("the note is not valid UTF-8")
		case len(invisible.Find(*l)) > 0:
			return 0, task.Invalid("the note has text that people do not see: %s", invisible.Find(*l)[0].Kind)
		case l != &r.Text && (utf8.RuneCountInString(*l) > maxLine || strings.ContainsFunc(*l, unicode.IsControl)):
			return 0, task.Invalid("%.100q is not one line of at most %d characters", *l, maxLine)
		}
	}
	return masked, nil
}

var idPattern = regexp.MustCompile(`^[a-z0-9]{6}$`)

// count counts a write of a session.
func (s *Store) count(session string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.writes) > 4096 { // sessions end without notice
		clear(s.writes)
	}
	if s.writes[session] >= PerSession {
		return task.Invalid("this session has written %d notes; put what belongs together into one", PerSession)
	}
	s.writes[session]++
	return nil
}

// create writes a new note. The caller holds the lock.
func (s *Store) create(r Request, cited []receipt.Full, a *Answer) error {
	text, err := s.compose(r, cited)
	if err != nil {
		return err
	}
	top, rel, err := s.files.Dir(Folder)
	if err != nil {
		return err
	}
	names, err := os.ReadDir(filepath.Join(top, filepath.FromSlash(rel)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(names) >= MaxNotes {
		return task.Invalid("the folder has %d notes; drop some", len(names))
	}
	for {
		a.ID = cards.NewID()
		a.Path = path.Join(Folder, a.ID+".md")
		if err = s.files.Create(a.Path, text); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	for i := range cited {
		a.Receipts = append(a.Receipts, cited[i].Receipt.String())
	}
	return err
}

// compose returns the text of a new note.
func (s *Store) compose(r Request, cited []receipt.Full) ([]byte, error) {
	fields := []markdown.FieldEdit{{Key: "title", Value: titleOf(r)}}
	if len(r.Tags) > 0 {
		fields = append(fields, markdown.FieldEdit{Key: "tags", Value: r.Tags})
	}
	if by := cmp.Or(r.By, s.o.By); by != "" {
		fields = append(fields, markdown.FieldEdit{Key: "by", Value: by})
	}
	head, err := markdown.NewFrontMatter(append(fields, markdown.FieldEdit{Key: "created", Value: s.o.Now().UTC().Truncate(time.Second)})...)
	if err != nil {
		return nil, task.Invalid("%s", err)
	}
	return append(withReceipts(head, cited), body(r)...), nil
}

// titleOf returns the title of a request, by default the first line of its text.
func titleOf(r Request) string {
	first, _, _ := strings.Cut(r.Text, "\n")
	title := []rune(strings.TrimSpace(strings.TrimLeft(cmp.Or(r.Title, first), "# ")))
	return string(title[:min(len(title), 80)])
}

// body returns the text of a note below its front matter.
func body(r Request) string {
	if r.Title != "" && !strings.HasPrefix(r.Text, "# ") {
		return "\n# " + r.Title + "\n\n" + r.Text + "\n"
	}
	return "\n" + r.Text + "\n"
}

// withReceipts adds receipts to front matter, each in a line that is YAML and JSON.
func withReceipts(head []byte, cited []receipt.Full) []byte {
	if len(cited) == 0 {
		return head
	}
	end := bytes.LastIndexByte(bytes.TrimRight(head, "\r\n"), '\n') + 1 // of the last field
	lines := []byte("receipts:\n")
	for i := range cited {
		line, _ := json.Marshal(&cited[i]) // never fails: strings marshal
		lines = fmt.Appendf(lines, "- %s\n", line)
	}
	return slices.Concat(head[:end], lines, head[end:])
}
