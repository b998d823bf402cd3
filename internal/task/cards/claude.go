package cards

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/task"
	"cairn/internal/task/files"
	"cairn/internal/text/jsonedit"
	"cairn/internal/text/walk"
)

// The bounds of a task list of Claude Code.
const (
	maxTasks    = 10_000
	maxTaskSize = 1 << 20 // bytes of a file
)

// claudeStatus maps the statuses of cards to those of Claude Code.
var claudeStatus = map[string]string{"todo": "pending", "active": "in_progress", "done": "completed"}

// claudeTask holds the fields of a task file of Claude Code that a card shows.
type claudeTask struct {
	Subject     string            `json:"subject"`
	Description string            `json:"description"`
	Status      string            `json:"status"`
	Owner       string            `json:"owner"`
	BlockedBy   []json.RawMessage `json:"blockedBy"`
	Metadata    struct {
		Internal bool `json:"_internal"` // the client does not list it
	} `json:"metadata"`
}

// claudeID returns the ID of the card of the task n. No ID that NewID returns has a 0.
func claudeID(n uint64) string { return fmt.Sprintf("c0%04d", n) }

// checkTasks reads the task files that changed, and drops the board if there are any. The caller
// holds s.mu.
func (s *Store) checkTasks() {
	if s.o.Claude == "" {
		return
	}
	fresh := map[string]*entry{}
	if root, err := os.OpenRoot(s.o.Claude); err == nil { // else there are no tasks
		defer root.Close()
		files, _ := fs.ReadDir(root.FS(), ".") // what is read counts
		for _, file := range files[:min(len(files), maxTasks)] {
			number, isTask := strings.CutSuffix(file.Name(), ".json")
			n, err := strconv.ParseUint(number, 10, 32)
			name := claudeID(n) + ".md"
			if !isTask || err != nil || s.entries[name] != nil {
				continue
			}
			if e := s.loadTask(root, file.Name(), claudeID(n), s.tasks[name]); e != nil {
				fresh[name] = e
			}
		}
	}
	if !maps.Equal(s.tasks, fresh) {
		s.tasks, s.board = fresh, nil
	}
}

// loadTask returns the entry of a task file, which is old if the file is unchanged, and nil if it
// is not listed.
func (s *Store) loadTask(root *os.Root, file, id string, old *entry) *entry {
	info, err := root.Lstat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxTaskSize {
		return nil
	}
	e := &entry{version: versionOf(info)}
	if old != nil && !old.racy && old.version == e.version {
		return old
	}
	e.racy = files.Racy(cmp.Or(e.version.changeTime, e.version.modTime))
	p := filepath.Join(s.o.Claude, file)
	content, err := root.ReadFile(file)
	var t claudeTask
	if err == nil {
		err = json.Unmarshal(content, &t)
	}
	if err != nil {
		e.unusable = &task.Problem{Path: p, ID: id, Kind: task.Unreadable, Message: err.Error(), Fix: "repair the JSON in Claude Code", Error: true}
		return e
	}
	if t.Metadata.Internal {
		return nil
	}
	c := &Card{Path: p, Priority: defaultPriority, ModTime: info.ModTime(), Ordinal: math.Inf(1), claude: file, Body: t.Description}
	c.ID, c.Assignee = id, t.Owner
	c.Title = cmp.Or(strings.Join(strings.Fields(t.Subject), " "), id)
	c.Status, _ = task.Parse(t.Status)
	for _, raw := range t.BlockedBy {
		of := strings.Trim(string(raw), `"`)
		if n, err := strconv.ParseUint(of, 10, 32); err == nil {
			of = claudeID(n)
		}
		c.DependsOn = append(c.DependsOn, of)
	}
	e.card = c
	return e
}

// changeTask is change for a task of Claude Code. It keeps every byte of the file around the
// changed values.
func (s *Store) changeTask(ctx context.Context, c *Card, ch changes) (*Card, []string, error) {
	_, fields := ch.edits(c)
	if ch["ordinal"] != nil {
		return nil, nil, task.Invalid("%s is a task of Claude Code, which has no place by hand", c.ID)
	}
	values := map[string]any{}
	for _, key := range fields {
		switch text, _ := ch[key].(string); {
		case key == "status" && claudeStatus[text] != "":
			values["status"] = claudeStatus[text]
		case key == "title":
			values["subject"] = text
		case key == "assignee" && text == "":
			values["owner"] = nil
		case key == "assignee":
			values["owner"] = text
		default:
			return nil, nil, task.Invalid("%s is a task of Claude Code: only its title, its assignee and the statuses todo, active and done can be changed, not %s", c.ID, key)
		}
	}
	if len(values) == 0 {
		return c, fields, nil
	}
	check := func(c *Card) error { return cmp.Or(ch.checkClaim(c), s.checkGraph(c, ch, fields)) }
	if err := s.writeTask(ctx, c, values, check); err != nil {
		return nil, nil, FileError(c.Path, err)
	}
	_, now, err := s.named(c.ID)
	return now, fields, err
}

// writeTask sets values in the file of a task, unless check refuses its present state. The lock
// of its folder excludes other processes of cairn. Claude Code has its own lock, so a file that
// changes meanwhile is not written.
func (s *Store) writeTask(ctx context.Context, c *Card, values map[string]any, check func(*Card) error) error {
	tree, err := walk.Open(walk.Root{Dir: s.o.Claude})
	if err != nil {
		return err
	}
	defer tree.Close()
	_, err = files.New(tree, nil).Edit(ctx, c.claude, func(text []byte, _ files.Stamp) (_ []byte, err error) {
		_, now, err := s.named(c.ID)
		if err == nil {
			err = check(now)
		}
		if err != nil {
			return nil, err
		}
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if text, err = jsonedit.Set(text, key, values[key]); err != nil {
				return nil, task.Invalid("%s is unchanged, because %s", c.Path, err)
			}
		}
		return text, nil
	})
	return err
}
