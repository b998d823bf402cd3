package convert

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestHostileFilesAtFullSize runs `cairn index --no-embed` on each file of the corpus, in a
// folder of its own: 10 MiB of text, 64 MiB of a converted format, or what unpacks to
// 60 MiB. It logs the processor time and the peak memory of the processes, less the memory of
// an index of one small file. CAIRN_HOSTILE is a regular expression of the names of the files.
func TestHostileFilesAtFullSize(t *testing.T) {
	part := os.Getenv("CAIRN_HOSTILE")
	if part == "" {
		t.Skip("CAIRN_HOSTILE names no files")
	}
	only := regexp.MustCompile(part)
	cairn := filepath.Join(t.TempDir(), "cairn")
	if out, err := exec.Command("go", "build", "-o", cairn, "cairn/cmd/cairn").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	// Children of a process that has ended become children of this one, so that it can
	// read their usage.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	base, _, _ := measure(t, cairn, hostileFile{"a.md", func(int) []byte { return []byte("# a\n") }})
	type row struct {
		files, memory, failures int
		seconds                 float64
		worstMemory, worstTime  string
	}
	rows := map[string]*row{}
	for _, f := range hostileFiles() {
		if !only.MatchString(f.name) {
			continue
		}
		memory, seconds, err := measure(t, cairn, f)
		memory -= base
		t.Logf("%-28s %5d MiB %6.2f s %v", f.name, memory, seconds, err)
		ext := filepath.Ext(f.name)
		if rows[ext] == nil {
			rows[ext] = &row{}
		}
		r := rows[ext]
		r.files++
		if memory > r.memory {
			r.memory, r.worstMemory = memory, f.name
		}
		if seconds > r.seconds {
			r.seconds, r.worstTime = seconds, f.name
		}
		if err != nil || memory > 300 || seconds > 5 {
			r.failures++
		}
	}
	for _, ext := range slices.Sorted(maps.Keys(rows)) {
		r := rows[ext]
		fmt.Printf("| %s | %d | %d MiB (%s) | %.1f s (%s) | %d |\n", ext[1:], r.files, r.memory, r.worstMemory, r.seconds, r.worstTime, r.failures)
	}
}

// measure indexes one file and returns the peak of the memory in MiB and the processor time
// of the process and its children.
func measure(t *testing.T, cairn string, f hostileFile) (memory int, seconds float64, err error) {
	t.Helper()
	limit := 10 << 20 // see markdown.MaxSize
	if converterOf(f.name) != nil {
		limit = 64 << 20
	}
	size := limit - 64
	if slices.Contains([]string{".docx", ".pptx", ".xlsx", ".odt", ".odp", ".ods", ".epub", ".pdf"}, filepath.Ext(f.name)) {
		size = 60 << 20
	}
	data := f.make(size)
	folder, home := t.TempDir(), t.TempDir()
	defer os.RemoveAll(folder) // the corpus has 7 GB
	defer os.RemoveAll(home)
	if err := os.WriteFile(filepath.Join(folder, f.name), data[:min(len(data), limit)], 0o600); err != nil {
		t.Fatal(err)
	}
	// A process inherits the peak of its parent's memory, so a small one starts cairn, and
	// ends at once.
	cmd := exec.Command("sh", "-c", `"$0" "$@" >&2 & echo $!`, cairn, "index", "--no-embed", "-C", folder)
	cmd.Env = append(os.Environ(), "CAIRN_HOME="+home, "CAIRN_PARSER__CODE=on", "CAIRN_PARSER__EXTENSIONS=.eml,.mbox,.jsonl,.json,.yaml,.toml")
	message, err := os.Create(filepath.Join(home, "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer message.Close()
	cmd.Stderr = message
	started, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for {
		var state syscall.WaitStatus
		var usage syscall.Rusage
		pid, failure := syscall.Wait4(-1, &state, 0, &usage)
		if failure != nil {
			break
		}
		memory = max(memory, int(usage.Maxrss>>10))
		seconds += float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
		if fmt.Sprintln(pid) == string(started) && state.ExitStatus() != 0 { // a converter may fail
			text, _ := os.ReadFile(message.Name())
			err = fmt.Errorf("status %d: %s", state.ExitStatus(), text)
		}
	}
	return memory, seconds, err
}
