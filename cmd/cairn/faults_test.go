package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"cairn/internal/base/home"
)

// faultKinds damage the bytes of a file, or replace the file. b is the content of the file
// and older its content before the last change, nil if it did not exist.
var faultKinds = map[string]func(r *rand.Rand, path string, b, older []byte) error{
	"1 bit": func(r *rand.Rand, path string, b, _ []byte) error {
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		return os.WriteFile(path, b, 0o600)
	},
	"16 bytes": func(r *rand.Rand, path string, b, _ []byte) error {
		at := r.IntN(max(1, len(b)-16))
		for i := range min(16, len(b)-at) {
			b[at+i] = byte(r.Uint32())
		}
		return os.WriteFile(path, b, 0o600)
	},
	"zeroed page": func(r *rand.Rand, path string, b, _ []byte) error {
		at := r.IntN((len(b)+4095)/4096) * 4096
		clear(b[at:min(len(b), at+4096)])
		return os.WriteFile(path, b, 0o600)
	},
	"cut":     func(r *rand.Rand, path string, b, _ []byte) error { return os.Truncate(path, int64(r.IntN(len(b)))) },
	"emptied": func(_ *rand.Rand, path string, _, _ []byte) error { return os.Truncate(path, 0) },
	"removed": func(_ *rand.Rand, path string, _, _ []byte) error { return os.Remove(path) },
	"a directory instead": func(_ *rand.Rand, path string, _, _ []byte) error {
		return errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "x"), 0o700))
	},
	"a dangling link instead": func(_ *rand.Rand, path string, _, _ []byte) error {
		return errors.Join(os.Remove(path), os.Symlink("nowhere", path))
	},
	"an older copy": func(_ *rand.Rand, path string, b, older []byte) error {
		if older == nil {
			return os.Remove(path) // as it was before the last change
		}
		return os.WriteFile(path, older, 0o600)
	},
}

// faultCommands are the commands that run over each fault. Those with true print the same
// text before and after it; the others print sizes or times.
var faultCommands = map[string]bool{
	"search --json rotate a token": true, "search --json --mode keyword quagga": true, "read access/roles.md": true,
	"export": true, "plan list": true, "list": true, "dag ready": true, "tools list": true, "tools search deploy": true,
	"token list": true, "config": true, "roots": true, "trust": true, "backup -": true,
	"status": false, "doctor": false, "verify": false, "verify --repair": false, "index": false,
}

// faulted is a folder with private files of every kind.
type faulted struct {
	t                  *testing.T
	cairn, root, place string   // place is CAIRN_HOME, with the user's configuration
	files              []string // below top
	top                string
	older, newer       map[string][]byte // the content of files by name, before and after the last change
	answers            map[string]string
}

func newFaulted(t *testing.T) *faulted {
	top := t.TempDir()
	f := &faulted{t: t, cairn: binary(t), top: top, root: filepath.Join(top, "folder"), place: filepath.Join(top, "home"), answers: map[string]string{}}
	further := filepath.Join(t.TempDir(), "further")
	lists := []string{filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")}
	err := errors.Join(os.CopyFS(f.root, handbook()), os.MkdirAll(further, 0o755),
		os.WriteFile(filepath.Join(further, "further.md"), []byte("# Further\n\nAbout a token.\n"), 0o644))
	for i, list := range lists {
		text := ""
		for n := range 20 {
			text += fmt.Sprintf(`{"server":"s%d","name":"tool%d","description":"Deploys the thing %[2]d."}`+"\n", i, n)
		}
		err = errors.Join(err, os.WriteFile(list, []byte(text), 0o600))
	}
	traces := filepath.Join(t.TempDir(), "traces")
	err = errors.Join(err, os.WriteFile(traces, []byte(`{"intent":"copy a file","calls":[{"tool":"s0:tool1"},{"tool":"s0:tool2"}]}`), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"init"}, {"config", "set", "core.token_limit", "7000"}, {"roots", "add", "further", further}, {"index"}, {"tools", "import", "--source", "a", lists[0]},
		{"tools", "learn", traces}, {"ask", "why do tokens rotate?"}, {"card", "new", "first"}, {"trust", f.root}, {"token", "new", "first"},
	} {
		f.must(args...)
	}
	f.older = f.content()
	text := []byte("# Roles\n\nThe quagga may rotate a token.\n")
	if err := os.WriteFile(filepath.Join(f.root, "access/roles.md"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other")
	if err := os.MkdirAll(other, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"index"}, {"config", "set", "core.token_limit", "7500"}, {"tools", "import", "--source", "b", lists[1]}, {"tools", "learn", traces},
		{"ask", "who may edit?"}, {"token", "new", "second"}, {"trust", other}, {"search", "deploy"}, {"verify"},
	} {
		f.must(args...)
	}
	f.newer = f.content()
	for name, content := range f.newer {
		if base := filepath.Base(name); len(content) > 0 && !strings.HasSuffix(base, "lock") && !strings.HasSuffix(base, ".turn") {
			f.files = append(f.files, name)
		}
	}
	slices.Sort(f.files)
	for command, same := range faultCommands {
		if out, _, code := f.run(command); same && code == 0 {
			f.answers[command] = out
		} else if same {
			t.Fatalf("cairn %s: exit %d: %s", command, code, out)
		}
	}
	return f
}

// content returns the private files and the folder's own configuration.
func (f *faulted) content() map[string][]byte {
	all := map[string][]byte{}
	for _, dir := range []string{f.place, filepath.Join(f.root, ".cairn")} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || strings.Contains(path, "/cards/") {
				return err
			}
			name, err := filepath.Rel(f.top, path)
			if err == nil {
				all[name], err = os.ReadFile(path)
			}
			return err
		})
		if err != nil {
			f.t.Fatal(err)
		}
	}
	return all
}

// restore gives all files the content after the last change.
func (f *faulted) restore() {
	err := os.RemoveAll(f.place)
	for name, content := range f.newer {
		path := filepath.Join(f.top, name)
		if strings.HasPrefix(name, "folder/") {
			err = errors.Join(err, os.RemoveAll(path))
		}
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600))
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *faulted) start(args []string) (out, said string, code int) {
	cmd := exec.Command(f.cairn, append(args, "-C", f.root)...)
	cmd.Env = append(os.Environ(), home.Variable+"="+f.place, "XDG_CONFIG_HOME="+filepath.Join(f.place, "config"))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if _, exited := errors.AsType[*exec.ExitError](cmd.Run()); !exited && cmd.ProcessState == nil {
		f.t.Error("cairn does not start")
		return "", "", -1
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

func (f *faulted) must(args ...string) {
	f.t.Helper()
	if out, said, code := f.start(args); code != 0 {
		f.t.Fatalf("cairn %v: exit %d: %s%s", args, code, out, said)
	}
}

// run runs a command of faultCommands. out is the part of its answer that stays the same.
func (f *faulted) run(command string) (out, said string, code int) {
	args := strings.Fields(command)
	if args[0] == "search" {
		for i, a := range args {
			if !strings.HasPrefix(a, "-") && i > 0 && args[i-1] != "--mode" {
				args = append(args[:i:i], strings.Join(args[i:], " "))
				break
			}
		}
	}
	out, said, code = f.start(args)
	switch {
	case args[0] == "search" && code == 0:
		var a struct {
			Results  []struct{ Path, Text string }
			Degraded []string
		}
		if err := json.Unmarshal([]byte(out), &a); err != nil {
			return out, said + "\nno JSON: " + err.Error(), code
		}
		if len(a.Degraded) > 0 {
			said += fmt.Sprint("degraded: ", a.Degraded)
		}
		out = fmt.Sprint(a.Results)
	case args[0] == "backup":
		lines := strings.SplitAfter(out, "\n")
		out = strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, `"cairn_backup"`) }), "")
	}
	return out, said, code
}

// outcome is what one fault has led to.
type outcome struct {
	noticed                     bool     // a command has failed, or has printed more than before
	wrong, fatal, nameless, end []string // commands with a wrong answer, a crash, a failure that names no file, and wrong in the end
}

// try damages a file, runs commands, repairs and compares.
func (f *faulted) try(r *rand.Rand, name string, damage func(r *rand.Rand, path string, b, older []byte) error) (o outcome) {
	f.restore()
	if err := damage(r, filepath.Join(f.top, name), bytes.Clone(f.newer[name]), f.older[name]); err != nil {
		f.t.Error(err)
		return o
	}
	// Users write these; their content has no checksum.
	written := strings.HasSuffix(name, "config.toml") || strings.HasSuffix(name, "trusted") || strings.Contains(name, "token")
	check := func(command string, ended bool) {
		out, said, code := f.run(command)
		all := strings.Join(strings.Fields(out+said), "") // doctor wraps lines
		want, same := f.answers[command]
		report := fmt.Sprintf("%s: exit %d, %.400s", command, code, said)
		o.noticed = o.noticed || code != 0 || said != ""
		switch {
		case code > 2 || code < 0 || strings.Contains(all, "goroutine1[") || strings.Contains(all, "panic"):
			o.fatal = append(o.fatal, report)
		case code != 0 && !written && ended:
			o.end = append(o.end, report)
		case code != 0 && !strings.Contains(all, filepath.Base(name)) && !strings.Contains(all, filepath.Base(filepath.Dir(name))):
			o.nameless = append(o.nameless, report)
		case code == 0 && same && out != want && !written && (ended || said == ""):
			o.wrong = append(o.wrong, fmt.Sprintf("%s\ngot  %.600s\nwant %.600s", report, out, want))
		}
	}
	order := slices.Sorted(maps.Keys(faultCommands))
	r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for _, command := range order {
		check(command, false)
	}
	if !written {
		f.start([]string{"verify", "--repair"})
		f.start([]string{"index"})
		for _, command := range []string{"search --json rotate a token", "search --json --mode keyword quagga", "export", "plan list", "roots", "backup -"} {
			check(command, true)
		}
	}
	return o
}

// TestFaultsInEveryCommand damages every kind of file in the cache, data and configuration
// directories, and runs every command over it: each answers as before, says what it lacks,
// or names the file. Afterwards nothing is lost. CAIRN_FAULTS is the number of faults, 6 if
// it is not set.
func TestFaultsInEveryCommand(t *testing.T) {
	faults := 6
	if n, err := strconv.Atoi(os.Getenv("CAIRN_FAULTS")); err == nil {
		faults = n
	} else if testing.Short() {
		faults = 2
	}
	type row struct{ faults, noticed, wrong, fatal, nameless, end int }
	rows := map[string]*row{}
	var mu sync.Mutex
	var running sync.WaitGroup
	kinds := slices.Sorted(maps.Keys(faultKinds))
	const workers = 3
	for worker := range workers {
		if worker >= faults {
			break
		}
		f := newFaulted(t)
		running.Go(func() {
			r := rand.New(rand.NewPCG(35, uint64(worker)))
			for n := worker; n < faults; n += workers {
				kind, name := kinds[(n/len(f.files)+n)%len(kinds)], f.files[n%len(f.files)]
				if faults < len(f.files)*len(kinds) {
					kind, name = kinds[n%len(kinds)], f.files[r.IntN(len(f.files))]
				}
				o := f.try(r, name, faultKinds[kind])
				label := filepath.Base(name)
				switch dir := filepath.Base(filepath.Dir(name)); {
				case dir == "keywords" && filepath.Ext(name) != "":
					label = dir + "/*" + filepath.Ext(name)
				case dir == "keywords" || dir == "vectors" || dir == ".cairn":
					label = dir + "/" + label
				}
				mu.Lock()
				at := rows[label]
				if at == nil {
					at = &row{}
					rows[label] = at
				}
				at.faults++
				at.wrong += min(1, len(o.wrong))
				at.fatal += min(1, len(o.fatal))
				at.nameless += min(1, len(o.nameless))
				at.end += min(1, len(o.end))
				if o.noticed {
					at.noticed++
				}
				if len(o.wrong)+len(o.fatal)+len(o.nameless)+len(o.end) > 0 {
					t.Errorf("fault %d, %s in %s:\nwrong %s\nfatal %s\nnames no file %s\nin the end %s", n, kind, name,
						strings.Join(o.wrong, "\n"), strings.Join(o.fatal, "\n"), strings.Join(o.nameless, "\n"), strings.Join(o.end, "\n"))
				}
				mu.Unlock()
			}
		})
	}
	running.Wait()
	t.Logf("| file | faults | noticed | wrong | fatal | fails without the file's name | not repaired |")
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		at := rows[name]
		t.Logf("| %s | %d | %d | %d | %d | %d | %d |", name, at.faults, at.noticed, at.wrong, at.fatal, at.nameless, at.end)
	}
}
