package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/internal/folder/config"
	"cairn/internal/folder/workspace"
	"cairn/internal/task/cards"
)

// The processes of TestTenProcesses: servers that an agent talks to, and people
// who type commands.
const (
	mcpWriters     = 6
	commandWriters = 4
)

// writer creates and updates cards in one of the two ways. refused is the text of a
// refusal; err is any other failure.
type writer interface {
	create(title string, deps []string) (id, refused string, err error)
	update(id, key, value string) (refused string, err error)
	close() error
}

// mcpWriter is a session with a `cairn mcp` of its own.
type mcpWriter struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
	n   int
}

func startMCPWriter(cairn, root string) (*mcpWriter, error) {
	w := &mcpWriter{cmd: exec.Command(cairn, "mcp", "-C", root, "--no-index", "--no-record")}
	w.cmd.Stderr = os.Stderr
	in, err := w.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.in, w.out = in, bufio.NewScanner(out)
	w.out.Buffer(nil, 16<<20)
	return w, w.cmd.Start()
}

func (w *mcpWriter) call(tool string, args, result any) (refused string, err error) {
	params, err := json.Marshal(args)
	if err != nil {
		return "", err
	}
	w.n++
	if _, err := fmt.Fprintf(w.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", w.n, tool, params); err != nil {
		return "", err
	}
	if !w.out.Scan() {
		return "", fmt.Errorf("%s is not answered: %v", tool, w.out.Err())
	}
	var reply struct {
		ID     int
		Result json.RawMessage
		Error  *struct {
			Code    int
			Message string
		}
	}
	if err := json.Unmarshal(w.out.Bytes(), &reply); err != nil || reply.ID != w.n {
		return "", fmt.Errorf("%s %d is answered %.300q: %v", tool, w.n, w.out.Bytes(), err)
	}
	if reply.Error != nil {
		return fmt.Sprintf("%d %s", reply.Error.Code, reply.Error.Message), nil
	}
	return "", json.Unmarshal(reply.Result, result)
}

func (w *mcpWriter) create(title string, deps []string) (id, refused string, err error) {
	var made cards.CreateAnswer
	refused, err = w.call("create_task", cards.CreateRequest{Title: title, DependsOn: deps}, &made)
	return made.ID, refused, err
}

func (w *mcpWriter) update(id, key, value string) (string, error) {
	var done cards.UpdateAnswer
	return w.call("update_task", map[string]any{"id": id, "updates": map[string]any{key: fieldValue(key, value)}}, &done)
}

func (w *mcpWriter) close() error {
	return errors.Join(w.in.Close(), w.cmd.Wait())
}

// fieldValue is a value as update_task takes it: tags and dependencies are lists.
func fieldValue(key, value string) any {
	if key == "tags" || key == "depends_on" {
		return []string{value}
	}
	return value
}

// commandWriter runs `cairn card` once for each call.
type commandWriter struct{ cairn, root string }

func (w commandWriter) run(result any, args ...string) (refused string, err error) {
	cmd := exec.Command(w.cairn, append([]string{"card", "-C", w.root, "--json"}, args...)...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 && complaint.Len() > 0 && out.Len() == 0 {
		return strings.TrimSpace(complaint.String()), nil
	}
	if err != nil {
		return "", fmt.Errorf("%v: %w: %s", args, err, complaint.Bytes())
	}
	return "", json.Unmarshal(out.Bytes(), result)
}

func (w commandWriter) create(title string, deps []string) (id, refused string, err error) {
	var made cards.CreateAnswer
	refused, err = w.run(&made, "new", title, "--depends-on", strings.Join(deps, ","))
	return made.ID, refused, err
}

func (w commandWriter) update(id, key, value string) (string, error) {
	flag := map[string]string{"tags": "tag", "depends_on": "depends-on"}[key]
	if flag == "" {
		flag = key
	}
	var done cards.UpdateAnswer
	return w.run(&done, "edit", id, "--"+flag, value)
}

func (commandWriter) close() error { return nil }

// book records the answers to one writer. No other writer changes its field of the shared
// card, so the field must have the value of the last answer.
type book struct {
	made    map[string]string // id → title
	deps    map[string]string // id → its dependency
	last    string            // the field of the shared card
	own     string            // the notes of its own card
	updates int
	refused map[string]int
}

const (
	sharedCard = "shared"
	poison     = "must-not-be-written"
)

// write creates and updates cards until the time is over.
func (b *book) write(w writer, name, field string, until time.Time) error {
	own, refused, err := w.create(name, nil)
	if err != nil || refused != "" {
		return fmt.Errorf("%s: creating its own card: %s, %v", name, refused, err)
	}
	b.made[own] = name
	note := func(refused string) bool {
		if refused != "" {
			b.refused[refused]++
		}
		return refused != ""
	}
	for i := 0; time.Now().Before(until); i++ {
		title := fmt.Sprintf("%s card %d", name, i)
		id, refused, err := w.create(title, []string{own})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if !note(refused) {
			if b.made[id] != "" {
				return fmt.Errorf("%s: id %s is given out twice", name, id)
			}
			b.made[id], b.deps[id] = title, own
		}
		value := fmt.Sprintf("%s-%d", name, i)
		if field == "priority" {
			value = []string{"low", "medium", "high", "critical"}[i%4]
		} else if field == "status" {
			value = []string{"todo", "active"}[i%2]
		}
		if refused, err = w.update(sharedCard, field, value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		} else if !note(refused) {
			b.last = value
			b.updates++
		}
		if refused, err = w.update(own, "notes", value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		} else if !note(refused) {
			b.own = value
			b.updates++
		}
		if i%4 != 0 {
			continue
		}
		// These updates must be refused: a dependency that does not exist, and a cycle.
		if _, refused, err = w.create(poison, []string{"zzzzz9"}); err != nil || !strings.Contains(refused, "Dependency Not Found") {
			return fmt.Errorf("%s: an unknown dependency is answered %q, %v", name, refused, err)
		}
		note("a dependency that does not exist")
		if id == "" {
			continue
		}
		if refused, err = w.update(own, "depends_on", id); err != nil || !strings.Contains(refused, "Cycle Detected") {
			return fmt.Errorf("%s: a circle is answered %q, %v", name, refused, err)
		}
		note("a circle")
	}
	return nil
}

// TestTenProcesses runs ten processes that create and update the cards of one folder
// concurrently, for 3 s or the time in CAIRN_PROCESSES, such as 30s. No acknowledged write is
// lost, no card is torn, no id is assigned twice, and no refused write is stored.
func TestTenProcesses(t *testing.T) {
	length := 3 * time.Second
	if text := os.Getenv("CAIRN_PROCESSES"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	cairn, root := binary(t), t.TempDir()
	folder := filepath.Join(root, ".cairn", "cards")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	const kept = "# kept by hand\nx-own: [1, 2]  # so is this\n"
	const body = "\nWritten by hand.\n"
	if err := os.WriteFile(filepath.Join(folder, sharedCard+".md"), []byte("---\ntitle: Shared\n"+kept+"---\n"+body), 0o644); err != nil {
		t.Fatal(err)
	}
	fields := []string{"status", "assignee", "priority", "notes", "tags", "title"}
	books := make([]*book, mcpWriters+commandWriters)
	until := time.Now().Add(length)
	var all sync.WaitGroup
	for i := range books {
		books[i] = &book{made: map[string]string{}, deps: map[string]string{}, refused: map[string]int{}}
		var w writer = commandWriter{cairn, root}
		if i < mcpWriters {
			m, err := startMCPWriter(cairn, root)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = m.cmd.Process.Kill() }) // has no effect on one that ended
			w = m
		}
		// No field of the shared card has two writers; further writers do not change the card.
		field := "notes"
		if i < len(fields) {
			field = fields[i]
		}
		all.Go(func() {
			name := fmt.Sprintf("writer%d", i)
			var err error
			if i < len(fields) {
				err = books[i].write(w, name, field, until)
			} else {
				err = books[i].write(aside{w}, name, field, until)
			}
			if err = errors.Join(err, w.close()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}

	tasks, err := workspace.OpenTasks(config.Selection{Root: root}, config.Default(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tasks.Close()
	board, err := tasks.Cards.Board()
	if err != nil {
		t.Fatal(err)
	}
	shared, ok := board.Card(sharedCard)
	if !ok {
		t.Fatal("the shared card is gone")
	}
	have := map[string]string{"status": shared.Status.CardWord(), "assignee": shared.Assignee, "priority": shared.Priority,
		"notes": shared.Notes, "tags": strings.Join(shared.Tags, ","), "title": shared.Title}
	made, updates, refusals := 0, 0, map[string]int{}
	owner := map[string]int{}
	for i, b := range books {
		made, updates = made+len(b.made), updates+b.updates
		for what, n := range b.refused {
			refusals[what] += n
		}
		if i < len(fields) && b.last != "" && have[fields[i]] != b.last {
			t.Errorf("%s of the shared card is %q, acknowledged last was %q", fields[i], have[fields[i]], b.last)
		}
		for id, title := range b.made {
			if other, twice := owner[id]; twice {
				t.Errorf("id %s was given to writers %d and %d", id, other, i)
			}
			owner[id] = i
			c, ok := board.Card(id)
			if !ok {
				t.Errorf("card %s %q is lost", id, title)
				continue
			}
			if c.Title != title || strings.Join(c.DependsOn, ",") != b.deps[id] || len(c.Problems) > 0 {
				t.Errorf("card %s is %q after %v with problems %v, want %q after %q", id, c.Title, c.DependsOn, c.Problems, title, b.deps[id])
			}
			if title == fmt.Sprintf("writer%d", i) && c.Notes != b.own {
				t.Errorf("the notes of %s's card are %q, acknowledged last was %q", title, c.Notes, b.own)
			}
		}
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != made+1 || len(board.Cards) != made+1 {
		t.Errorf("%d files and %d cards for %d that were made", len(files), len(board.Cards), made+1)
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(folder, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		end := "\n<!-- What is to be done, and how to tell that it is done. -->\n"
		if f.Name() == sharedCard+".md" {
			end = "---\n" + body
			if !bytes.Contains(text, []byte(kept)) {
				t.Errorf("the shared card has lost what was written by hand:\n%s", text)
			}
		}
		if !bytes.HasPrefix(text, []byte("---\ntitle: ")) || !bytes.HasSuffix(text, []byte(end)) || bytes.Contains(text, []byte(poison)) {
			t.Errorf("%s is torn, or holds what was refused:\n%s", f.Name(), text)
		}
	}
	if made <= len(books) || updates == 0 {
		t.Errorf("%d cards and %d updates in %s", made, updates, length)
	}
	t.Logf("%d processes, %s: %d cards made, %d updates acknowledged, refused and reported: %v", len(books), length, made, updates, refusals)
}

// aside marks a writer that does not change the shared card.
type aside struct{ writer }

func (a aside) update(id, key, value string) (string, error) {
	if id == sharedCard {
		return "", nil
	}
	return a.writer.update(id, key, value)
}
