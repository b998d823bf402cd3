package planrun

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"cairn/internal/base/atomicfile"
	"cairn/internal/base/home"
	"cairn/internal/toolbox/plancheck"
)

const (
	// maxOutput and maxArguments bound what the record has of one step in bytes.
	maxOutput    = 256 << 10
	maxArguments = 16 << 10
	maxError     = 2000
	maxRecord    = 64 << 20
	// maxRecords bounds the plans whose last runs are kept.
	maxRecords = 100
	// maxTasks bounds the tasks whose states are kept.
	maxTasks   = 64
	recordName = "steps.jsonl"
)

// Folder returns the folder of the records of a folder's plans.
func Folder(place home.Place) string { return filepath.Join(place.Records, "runs") }

// Record returns the path of the record of a plan below dir. Plans with the same calls,
// arguments and edges have the same record.
func Record(dir string, p *plancheck.Plan) string {
	text, _ := json.Marshal(p) // never fails: it was JSON
	return filepath.Join(dir, fmt.Sprintf("%x", sha256.Sum256(text))[:16], recordName)
}

// open creates the folder of the plan's record, and removes the oldest others.
func (o *Options) open(p *plancheck.Plan) (string, error) {
	dir := filepath.Dir(Record(o.Dir, p))
	if err := errors.Join(home.Private(o.Dir), home.Private(dir)); err != nil {
		return "", err
	}
	for _, name := range oldest(o.Dir, recordName, maxRecords) {
		if name != filepath.Base(dir) {
			_ = os.RemoveAll(filepath.Join(o.Dir, name)) // the next run tries again
		}
	}
	return dir, nil
}

// oldest returns the names in a folder that have the file inner, without the newest ones.
func oldest(dir, inner string, newest int) (names []string) {
	all, _ := os.ReadDir(dir) // without an answer nothing is old
	age := map[string]int64{}
	for _, e := range all {
		if info, err := os.Stat(filepath.Join(dir, e.Name(), inner)); err == nil {
			age[e.Name()] = info.ModTime().UnixNano()
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(age[b], age[a]) })
	return names[min(len(names), newest):]
}

// tasksName is the folder of the states of tasks, below that of the records.
const tasksName = "tasks"

// taskID matches the results of rand.Text.
var taskID = regexp.MustCompile(`^[A-Z2-7]{26}$`)

// KeepTask keeps the state of a task in which a plan runs, and removes the oldest others.
func KeepTask(dir, id string, state any) error {
	dir = filepath.Join(dir, tasksName)
	text, err := json.Marshal(state)
	if err = errors.Join(err, home.Private(dir)); err != nil {
		return err
	}
	for _, name := range oldest(dir, "", maxTasks) {
		_ = os.Remove(filepath.Join(dir, name)) // the next task tries again
	}
	return atomicfile.Write(filepath.Join(dir, id+".json"), text, 0o600)
}

// KeptTask reads the state of a task. It returns false if there is none.
func KeptTask(dir, id string, state any) (bool, error) {
	if !taskID.MatchString(id) {
		return false, nil
	}
	text, err := os.ReadFile(filepath.Join(dir, tasksName, id+".json"))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, state)
	}
	return err == nil, err
}

// read returns the last state of each step in a record, and whether the run ended. A torn
// line at the end was not acknowledged.
func read(path string) (steps map[string]Step, ended bool, err error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	steps, ended = map[string]Step{}, true
	lines := bufio.NewScanner(io.LimitReader(f, maxRecord))
	lines.Buffer(nil, 4*maxOutput)
	for lines.Scan() {
		var s Step
		if json.Unmarshal(lines.Bytes(), &s) == nil {
			if ended = s.ID == ""; !ended {
				steps[s.ID] = s
			}
		}
	}
	return steps, ended, lines.Err()
}

// begin opens the record and takes over the steps of the last run.
func (r *run) begin(dir string) error {
	path := filepath.Join(dir, recordName)
	before, ended, err := read(path)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if !ended && !r.o.Resume && !r.o.Restart {
		return errors.New("the last run of this plan did not end; resume it, or restart the plan")
	}
	var unsure []string
	for _, c := range r.plan.Calls {
		s := Step{ID: c.ID, Tool: c.Tool, State: Pending}
		if old, ok := before[c.ID]; ok && r.o.Resume && !slices.Contains(r.o.Repeat, c.ID) {
			switch old.State {
			case Done:
				s = old
			case Started, Lost:
				unsure = append(unsure, c.ID)
			}
		}
		r.steps[c.ID] = &s
	}
	for _, id := range r.o.Repeat {
		if r.steps[id] == nil {
			return fmt.Errorf("the plan has no step %q to repeat", id)
		}
	}
	if len(unsure) > 0 {
		return &UnsureError{unsure}
	}
	mode := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if !r.o.Resume {
		mode |= os.O_TRUNC
	}
	f, err := os.OpenFile(path, mode, 0o600)
	if err != nil {
		return err
	}
	r.file = f
	if _, err = f.WriteString("\n"); err == nil { // after a torn line
		err = atomicfile.SyncDir(dir)
	}
	if err != nil {
		f.Close()
	}
	return err
}

// write appends a step to the record, durably. It reports whether that succeeded.
func (r *run) write(s Step) bool {
	line, err := json.Marshal(s)
	if err == nil && len(line) > maxOutput {
		s.Output, s.Cut = nil, true
		line, err = json.Marshal(s)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		if _, err = r.file.Write(append(line, '\n')); err == nil {
			err = r.file.Sync()
		}
	}
	r.err = cmp.Or(r.err, err)
	return err == nil
}

// bounded returns arguments that are short enough for the record, else the first of them as
// a text.
func bounded(arguments json.RawMessage) json.RawMessage {
	if len(arguments) <= maxArguments {
		return arguments
	}
	text, _ := json.Marshal(string(bytes.ToValidUTF8(arguments[:maxArguments], nil)) + "…") // never fails: it is text
	return text
}
