package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"cairn/internal/base/home"
	"cairn/internal/base/testutil"
)

var update = flag.Bool("update", false, "rewrite the golden output in testdata/*.txtar")

func TestMain(m *testing.M) {
	if _, set := os.LookupEnv("CAIRN_AUTH"); !set {
		os.Setenv("CAIRN_AUTH", "off") // other users may be able to log in to this machine
	}
	testscript.Main(testutil.Homed{M: m}, map[string]func(){
		"cairn": main,
	})
}

// TestScripts runs testdata/*.txtar: each contains a folder and a script of commands.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata",
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			for _, dir := range []string{"home", "handbook"} {
				if err := os.MkdirAll(filepath.Join(env.WorkDir, dir), 0o755); err != nil {
					return err
				}
			}
			examples, err := filepath.Abs("../../examples")
			if err != nil {
				return err
			}
			env.Setenv("EXAMPLES", examples)
			env.Setenv("TINY", filepath.Join(examples, "../internal/folder/encoder/testdata/tiny"))
			env.Setenv("CAIRN_AUTH", "off")
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			// The work folder is in the system's folder for temporary files; a
			// smaller one keeps the paths of sockets short.
			env.Setenv("TMPDIR", filepath.Join(env.WorkDir, ".tmp"))
			return os.CopyFS(filepath.Join(env.WorkDir, "handbook"), handbook())
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"json":   jsonCommand,
			"place":  placeCommand,
			"exits":  exitsCommand,
			"qdrant": qdrantCommand(t),
		},
	})
}

// jsonCommand is "json PATH WANT": the value at PATH, such as results.0.path, in the JSON on
// standard output is WANT. "json PATH" checks that there is a value. "!" negates both.
func jsonCommand(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: json PATH [WANT]")
	}
	var at any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &at))
	for key := range strings.SplitSeq(args[0], ".") {
		switch v := at.(type) {
		case map[string]any:
			at = v[key]
		case []any:
			var i int
			if n, err := fmt.Sscan(key, &i); n != 1 || err != nil || i >= len(v) {
				at = nil
			} else {
				at = v[i]
			}
		default:
			at = nil
		}
	}
	got := fmt.Sprint(at)
	if len(args) == 1 {
		if (at != nil) == neg {
			ts.Fatalf("%s is %s", args[0], got)
		}
		return
	}
	if (got == args[1]) == neg {
		ts.Fatalf("%s is %q, want %q (negated: %v)", args[0], got, args[1], neg)
	}
}

// placeCommand sets INDEX and RECORDS to the directories that "cairn status --json" has
// just printed.
func placeCommand(ts *testscript.TestScript, neg bool, args []string) {
	var place home.Place
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &place))
	if neg || len(args) > 0 || place.Index == "" || place.Records == "" {
		ts.Fatalf("usage: place, after cairn status --json")
	}
	ts.Setenv("INDEX", place.Index)
	ts.Setenv("RECORDS", place.Records)
}

// exitsCommand is "exits CODE COMMAND...": the command ends with that code.
func exitsCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if fmt.Sprint(got) != args[0] {
		ts.Fatalf("%s exited with %d, want %s", strings.Join(args[1:], " "), got, args[0])
	}
}

// binary returns the command for the tests that need a process to signal: this
// test's own file, which TestMain runs as the command when it has its name.
func binary(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cairn")
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPipelined sends 64 requests in one piece and ends the input immediately. The server
// answers all of them, each on its own line.
func TestPipelined(t *testing.T) {
	cairn := binary(t)
	root := t.TempDir()
	if err := os.CopyFS(root, handbook()); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cairn, "index", "-C", root).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var in strings.Builder
	for id := range 64 {
		if id%2 == 0 {
			fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":"read_context","params":{"query":"rotate token number %d","mode":"keyword"}}`+"\n", id, id)
		} else {
			fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":"read_doc","params":{"path":"access/roles.md#leaving"}}`+"\n", id)
		}
	}
	cmd := exec.Command(cairn, "mcp", "-C", root)
	cmd.Stdin, cmd.Stderr = strings.NewReader(in.String()), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	answered := map[int]bool{}
	for line := range strings.Lines(string(out)) {
		var m struct {
			ID     int
			Result json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil || len(m.Result) == 0 || answered[m.ID] {
			t.Errorf("line %.200q: %v, want one result for each id", line, err)
		}
		answered[m.ID] = true
	}
	if len(answered) != 64 {
		t.Errorf("%d of 64 requests are answered", len(answered))
	}
}

// TestRateLimitFlag: of 64 calls in one piece, the server refuses those beyond the burst of 15
// searches only with --rate-limit.
func TestRateLimitFlag(t *testing.T) {
	cairn := binary(t)
	root := t.TempDir()
	var calls strings.Builder
	for id := range 64 {
		fmt.Fprintf(&calls, `{"jsonrpc":"2.0","id":%d,"method":"read_context","params":{"query":"token","mode":"keyword"}}`+"\n", id)
	}
	for _, c := range []struct {
		flags   []string
		refused int
	}{{nil, 0}, {[]string{"--rate-limit"}, 64 - 15}, {[]string{"--no-rate-limit"}, 0}} {
		cmd := exec.Command(cairn, append([]string{"mcp", "-C", root, "--no-index"}, c.flags...)...)
		cmd.Stdin, cmd.Stderr = strings.NewReader(calls.String()), os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(out), "{") {
			t.Errorf("%v: standard output begins with %.40q, want an answer", c.flags, out)
		}
		if n := strings.Count(string(out), `"code":429`); n != c.refused {
			t.Errorf("%v: %d of 64 calls are refused, want %d:\n%.300s", c.flags, n, c.refused, out)
		}
	}
}

// TestServerEnds starts and stops the server many times, by the end of its
// input and by a signal, with a request in flight. The server answers each request, and
// ends.
func TestServerEnds(t *testing.T) {
	starts := 100
	if testing.Short() {
		starts = 10
	}
	cairn := binary(t)
	root := t.TempDir()
	if err := os.CopyFS(root, handbook()); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cairn, "index", "-C", root).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i := range starts {
		cmd := exec.Command(cairn, "mcp", "-C", root)
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"read_context","params":{"query":"rotate a token","mode":"keyword"}}`)
		lines := bufio.NewScanner(out)
		bySignal := i%2 == 1
		if bySignal && !lines.Scan() {
			t.Fatalf("start %d: no answer", i)
		}
		begin := time.Now()
		if bySignal {
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		} else {
			in.Close()
			if !lines.Scan() {
				t.Errorf("start %d: no answer after the end of the input", i)
			}
		}
		// On a machine so busy that an answer takes longer than the server waits for
		// it at the end of its input, the answer says so, and not before that wait.
		late := !bySignal && time.Since(begin) >= time.Second && strings.Contains(lines.Text(), "cancelled")
		if !late && !strings.Contains(lines.Text(), "rotate-a-token.md") {
			t.Errorf("start %d: answer %.200q", i, lines.Text())
		}
		if lines.Scan() {
			t.Errorf("start %d: more on standard output: %.200q", i, lines.Text())
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("start %d: %v", i, err)
		}
	}
}
