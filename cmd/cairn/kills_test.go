package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/base/testutil"
	"cairn/internal/folder/config"
	"cairn/internal/folder/workspace"
	"cairn/internal/store/kv"
	"cairn/internal/store/qdrant/qdranttest"
	"cairn/internal/task/notes"
)

// killer runs commands in a folder and kills them at random moments.
type killer struct {
	t           *testing.T
	r           *rand.Rand
	cairn, root string
	took        map[string]time.Duration // by a complete run of a command
	kills       int
}

func newKiller(t *testing.T) *killer {
	return &killer{t: t, r: rand.New(rand.NewPCG(50, 50)), cairn: binary(t), root: t.TempDir(), took: map[string]time.Duration{}}
}

func (k *killer) command(args ...string) *exec.Cmd {
	return exec.Command(k.cairn, append(args, "-C", k.root)...)
}

// run runs a command to its end.
func (k *killer) run(args ...string) string {
	k.t.Helper()
	cmd := k.command(args...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	began := time.Now()
	if err := cmd.Run(); err != nil {
		k.t.Fatalf("after %d kills: cairn %v: %v\n%s", k.kills, args, err, complaint.String())
	}
	if k.took[args[0]] == 0 {
		k.took[args[0]] = time.Since(began)
	}
	return out.String()
}

// kill runs a command and kills it at a random moment of the time that it takes. killed is
// false if it ended before.
func (k *killer) kill(args ...string) (killed bool) {
	k.t.Helper()
	cmd := k.command(args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	moment := time.Duration(k.r.Int64N(int64(k.took[args[0]])))
	began := time.Now()
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	timer := time.AfterFunc(moment, func() { cmd.Process.Kill() })
	err := cmd.Wait()
	timer.Stop()
	if err == nil {
		k.took[args[0]] = (k.took[args[0]] + time.Since(began)) / 2
		return false
	}
	if cmd.ProcessState.Exited() {
		k.t.Fatalf("after %d kills: cairn %v: %v\n%s", k.kills, args, err, said.String())
	}
	k.kills++
	k.took[args[0]] = k.took[args[0]] * 65 / 64 // so that some end
	return true
}

// TestKilledCards kills `cairn mcp` while it creates and changes cards. Each acknowledged
// change is there afterwards, and each card is whole.
func TestKilledCards(t *testing.T) {
	k := newKiller(t)
	acknowledged := map[string]string{} // by card, the notes
	changes := 0
	for range testutil.Kills(t, 4) {
		w, err := startMCPWriter(k.cairn, k.root)
		if err != nil {
			t.Fatal(err)
		}
		after, pause := 1+k.r.IntN(20), time.Duration(k.r.IntN(3000))*time.Microsecond
		asked := map[string]string{} // what was not answered
		for n := 0; err == nil; n++ {
			if n == after {
				time.AfterFunc(pause, func() { w.cmd.Process.Kill() })
			}
			var id, refused string
			if n%4 == 0 {
				if id, refused, err = w.create(fmt.Sprintf("card %d", changes), nil); err == nil {
					acknowledged[id] = ""
				}
			} else {
				for id = range acknowledged { // any
					break
				}
				asked[id] = strings.Repeat(fmt.Sprintf("note %d ", changes), 30)
				if refused, err = w.update(id, "notes", asked[id]); err == nil {
					acknowledged[id] = asked[id]
					delete(asked, id)
				}
			}
			if refused != "" {
				t.Fatalf("after %d kills: refused: %s", k.kills, refused)
			}
			if err == nil {
				changes++
			}
		}
		w.close()
		k.kills++
		tasks, err := workspace.OpenTasks(config.Selection{Root: k.root}, config.Default(), nil)
		if err != nil {
			t.Fatal(err)
		}
		board, err := tasks.Cards.Board()
		if err != nil {
			t.Fatal(err)
		}
		for id, notes := range acknowledged {
			c, ok := board.Card(id)
			if !ok || strings.TrimSpace(c.Notes) != strings.TrimSpace(notes) && strings.TrimSpace(c.Notes) != strings.TrimSpace(asked[id]) {
				t.Errorf("after %d kills: card %s: there %v, notes %.40q, want %.40q or %.40q", k.kills, id, ok, c.Notes, notes, asked[id])
			}
			acknowledged[id] = c.Notes
		}
		for _, c := range board.Cards {
			if len(c.Problems) > 0 || c.Title == "" {
				t.Errorf("after %d kills: card %s: %q %v", k.kills, c.ID, c.Title, c.Problems)
			}
		}
		if extra := len(board.Cards) - len(acknowledged); extra < 0 || extra > 1+k.kills {
			t.Errorf("after %d kills: %d cards, %d acknowledged", k.kills, len(board.Cards), len(acknowledged))
		}
		if tasks.Close(); t.Failed() {
			t.FailNow()
		}
		if len(acknowledged) > 60 {
			clear(acknowledged)
			if err := os.RemoveAll(filepath.Join(k.root, ".cairn")); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d kills, %d acknowledged changes, 0 lost", k.kills, changes)
}

// TestKilledNotes kills `cairn mcp` while it writes, corrects and drops notes. Each
// acknowledged note is there afterwards with its text and its receipt, and no other is partial.
func TestKilledNotes(t *testing.T) {
	k := newKiller(t)
	if err := os.WriteFile(filepath.Join(k.root, "guide.md"), []byte("# Guide\n\nThe pool has 20 connections.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	acknowledged := map[string]string{} // by note, its text
	writes := 0
	for range testutil.Kills(t, 4) {
		w, err := startMCPWriter(k.cairn, k.root)
		if err != nil {
			t.Fatal(err)
		}
		after, pause := 1+k.r.IntN(20), time.Duration(k.r.IntN(3000))*time.Microsecond
		asked := notes.Request{} // what was not answered
		for n := 0; err == nil; n++ {
			if n == after {
				time.AfterFunc(pause, func() { w.cmd.Process.Kill() })
			}
			asked = notes.Request{Text: strings.Repeat(fmt.Sprintf("write %d ", writes), 30), RestsOn: []string{"guide.md:3"}}
			if n%2 == 1 {
				for asked.ID = range acknowledged { // any
					break
				}
			}
			if asked.ID != "" && n%5 == 0 {
				asked = notes.Request{ID: asked.ID, Drop: true}
			}
			var made notes.Answer
			var refused string
			if refused, err = w.call("remember", asked, &made); refused != "" {
				t.Fatalf("after %d kills: refused: %s", k.kills, refused)
			}
			if err != nil {
				break
			}
			if acknowledged[made.ID] = strings.TrimSpace(asked.Text); made.Dropped {
				delete(acknowledged, made.ID)
			}
			writes++
		}
		w.close()
		k.kills++
		found, err := filepath.Glob(filepath.Join(k.root, notes.Folder, "*.md"))
		if err != nil {
			t.Fatal(err)
		}
		now := map[string]string{}
		for _, name := range found {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			_, body, whole := strings.Cut(string(text), "\n---\n\n")
			if !whole || !strings.Contains(string(text), `- {"receipt":"guide.md:3-3@`) || !strings.HasSuffix(body, "\n") {
				t.Errorf("after %d kills: %s is partial: %q", k.kills, name, text)
			}
			now[strings.TrimSuffix(filepath.Base(name), ".md")] = strings.TrimSpace(body)
		}
		for id, text := range acknowledged {
			if got, ok := now[id]; got != text && (id != asked.ID || ok && got != strings.TrimSpace(asked.Text)) {
				t.Errorf("after %d kills: note %s: there %v, text %.40q, want %.40q", k.kills, id, ok, got, text)
			}
		}
		if extra := len(now) - len(acknowledged); extra > 1 || extra < -1 {
			t.Errorf("after %d kills: %d notes, %d acknowledged", k.kills, len(now), len(acknowledged))
		}
		if t.Failed() {
			t.FailNow()
		}
		if acknowledged = now; len(acknowledged) > 60 {
			clear(acknowledged)
			if err := os.RemoveAll(filepath.Join(k.root, notes.Folder)); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d kills, %d acknowledged writes of notes, 0 lost", k.kills, writes)
}

// recorded writes 40 cards and imports 60 tools, all with the given name.
func (k *killer) recorded(name string) {
	k.t.Helper()
	cards, tools := filepath.Join(k.root, ".cairn", "cards"), ""
	err := errors.Join(os.RemoveAll(cards), os.MkdirAll(cards, 0o755))
	for n := range 40 {
		text := fmt.Sprintf("---\ntitle: %s %d\n---\n%s", name, n, strings.Repeat(name+" ", 2000))
		err = errors.Join(err, os.WriteFile(filepath.Join(cards, fmt.Sprintf("%s%d.md", []string{name, "both"}[n%2], n)), []byte(text), 0o644))
	}
	for n := range 60 {
		tools += fmt.Sprintf(`{"server":"s","name":"%s%d","description":"%[1]s."}`+"\n", name, n)
	}
	list := filepath.Join(k.t.TempDir(), "tools")
	if err := errors.Join(err, os.WriteFile(list, []byte(tools), 0o600)); err != nil {
		k.t.Fatal(err)
	}
	k.run("tools", "import", "--source", "list", list)
}

// content returns the records and files in a backup, without those of cards that only the
// other backup has. It fails if the backup is not complete.
func content(t *testing.T, backup []byte, without string) (all []string) {
	t.Helper()
	damaged, err := kv.ReadLines(bytes.NewReader(backup), func(r struct {
		Bucket, File        string
		Key, Value, Content []byte
	}) error {
		if r.Bucket+r.File != "" && !strings.Contains(r.File, "/"+without) {
			text, err := json.Marshal(r)
			all = append(all, string(text))
			return err
		}
		return nil
	})
	if err != nil || damaged > 0 || len(all) == 0 {
		t.Fatalf("a backup of %d bytes with %d records and %d damaged lines: %v", len(backup), len(all), damaged, err)
	}
	return all
}

// TestKilledRestore kills `cairn restore`. The next command finds the folder as before or as
// in the backup: all records and all cards.
func TestKilledRestore(t *testing.T) {
	k := newKiller(t)
	want, file := map[string][]string{}, map[string]string{}
	for _, name := range []string{"old", "new"} {
		k.recorded(name)
		file[name] = filepath.Join(t.TempDir(), name)
		k.run("backup", file[name])
		backup, err := os.ReadFile(file[name])
		if err != nil {
			t.Fatal(err)
		}
		want[name] = content(t, backup, "none")
	}
	k.run("restore", file["new"], "--overwrite")
	other := map[string]string{"old": "new", "new": "old"}
	at, inside, done := "new", 0, 0
	for kills := testutil.Kills(t, 4); k.kills < kills; {
		next := other[at]
		killed := k.kill("restore", file[next], "--overwrite")
		pending := false
		if _, err := os.Stat(filepath.Join(testutil.Place(t, k.root).Records, "restore.cairn")); err == nil {
			pending = true
			inside++
		}
		first := [][]string{{"list"}, {"plan", "list"}, {"tools", "list"}, {"status"}}[k.r.IntN(4)]
		k.run(first...) // any command completes the restore
		now := []byte(k.run("backup", "-"))
		switch {
		case slices.Equal(content(t, now, at), want[next]):
			at, done = next, done+1
		case killed && !pending && slices.Equal(content(t, now, next), want[at]):
		default:
			t.Fatalf("after %d kills, pending %v, first %v: the folder is neither %s nor %s\n%s", k.kills, pending, first, at, next, cmp.Diff(want[next], content(t, now, at)))
		}
		for name := range want { // cards of both backups remain, as a restore removes none
			if cards, _ := filepath.Glob(filepath.Join(k.root, ".cairn/cards", name+"*.md")); name != at {
				for _, c := range cards {
					os.Remove(c)
				}
			}
		}
	}
	t.Logf("%d kills, %d after the first write; %d restores took effect, 0 by half", k.kills, inside, done)
}

// TestKilledBackup kills `cairn backup`. Its file is missing, the former one, or complete.
func TestKilledBackup(t *testing.T) {
	k := newKiller(t)
	k.recorded("old")
	file := filepath.Join(t.TempDir(), "backup")
	k.run("backup", file)
	made := 0
	for kills := testutil.Kills(t, 4); k.kills < kills; {
		k.kill("backup", file, "--force")
		backup, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		if all := content(t, backup, "none"); len(all) < 100 {
			t.Fatalf("after %d kills: %d records and files, want all", k.kills, len(all))
		}
		if made++; k.r.IntN(2) == 0 {
			os.Remove(file)
		}
	}
	t.Logf("%d kills, %d backups, all complete", k.kills, made)
}

// TestKilledCopy kills `cairn store copy` to a store. A reader of the store is refused or
// told that the index is incomplete, or finds what the folder's own index finds; a further
// copy completes the store.
func TestKilledCopy(t *testing.T) {
	k := newKiller(t)
	if err := testutil.WriteFolder(k.root, 80, 7); err != nil {
		t.Fatal(err)
	}
	k.run("index")
	type answer struct {
		Results []struct {
			Path  string
			Lines []int
		}
		Degraded []string
		Index    struct{ State string }
	}
	search := func(args ...string) (a answer, complaint string) {
		cmd := k.command(append([]string{"search", "--json", "section number 7"}, args...)...)
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err == nil {
			err = json.Unmarshal(out, &a)
		}
		if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
			t.Fatalf("%v: %s", err, out)
		}
		return a, said.String()
	}
	want, said := search()
	if len(want.Results) == 0 {
		t.Fatalf("no results: %s", said)
	}
	k.run("store", "copy", "--from", "flat", "--to", "qdrant://"+qdranttest.New(t, nil).Addr()+"/docs")
	var refused, incomplete, complete int
	for kills := testutil.Kills(t, 4); k.kills < kills; {
		store := "qdrant://" + qdranttest.New(t, nil).Addr() + "/docs"
		if !k.kill("store", "copy", "--from", "flat", "--to", store) {
			continue
		}
		same := func(a answer) bool { return fmt.Sprint(a.Results) == fmt.Sprint(want.Results) }
		switch got, said := search("--store", store); {
		case got.Results == nil && strings.Contains(said, "cairn: "):
			refused++
		case got.Index.State != "ready" || len(got.Degraded) > 0:
			incomplete++
		case same(got):
			complete++
		default:
			t.Fatalf("after %d kills: %s, state %s: %v\nwant %v", k.kills, said, got.Index.State, got.Results, want.Results)
		}
		if k.r.IntN(8) > 0 {
			continue // the next copy waits until the lease of the killed one expires
		}
		k.run("store", "copy", "--from", "flat", "--to", store)
		if got, said := search("--store", store); !same(got) || got.Index.State != "ready" {
			t.Fatalf("after %d kills and a complete copy: %s, %+v\nwant %+v", k.kills, said, got, want)
		}
	}
	t.Logf("%d kills: then %d searches of the store were refused, %d marked as incomplete, %d complete", k.kills, refused, incomplete, complete)
}
