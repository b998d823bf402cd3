//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// TestSessionsTeachTheCommand: what agents fetch together over stdio is known to
// the commands with the third session, unless it is not recorded, and
// forgotten on request.
func TestSessionsTeachTheCommand(t *testing.T) {
	box, cairn := t.TempDir(), binary(t)
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(cairn, append(args, "-C", box)...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("cairn %v: %v", args, err)
		}
		return string(out)
	}
	importing := exec.Command(cairn, "tools", "import", "-C", box, "--source", "s", "-")
	importing.Stdin = strings.NewReader(`{"server":"fs","name":"write","description":"Writes a file."}
{"server":"pets","name":"get","description":"Returns one pet."}
{"server":"shop","name":"pay","description":"Pays for what is in the cart."}`)
	if out, err := importing.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	session := func(flags ...string) {
		t.Helper()
		cmd := exec.Command(cairn, append([]string{"mcp", "-C", box, "--no-index"}, flags...)...)
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
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for i, call := range [][2]string{{"search_tools", `{"query":"write a file"}`}, {"get_tool", `{"name":"write"}`}, {"search_tools", `{"query":"pay the cart"}`}, {"get_tool", `{"name":"pay"}`}} {
			fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", i, call[0], call[1])
			if !lines.Scan() || !strings.Contains(lines.Text(), `"result"`) {
				t.Fatalf("%v is answered with %q", call, lines.Text())
			}
		}
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	search := func() string { return run("tools", "search", "--json", "--context", "write", "pay for a pet") }
	before := search()
	session()
	session("--no-record")
	session()
	if got := search(); got != before {
		t.Errorf("after two sessions that are recorded the answer is\n%s\nwant\n%s", got, before)
	}
	if got := run("tools", "graph"); got != "" {
		t.Errorf("after two sessions the graph is %q", got)
	}
	session()
	if got, want := run("tools", "graph"), "fs:write -> shop:pay  sequence, observed, weight 0.50, count 3.0\n"; got != want {
		t.Errorf("after three sessions the graph is %q, want %q", got, want)
	}
	var answer struct {
		Tools []struct {
			ID    string  `json:"tool_id"`
			Graph float64 `json:"graph_score"`
		}
	}
	if err := json.Unmarshal([]byte(search()), &answer); err != nil || len(answer.Tools) == 0 || answer.Tools[0].ID != "shop:pay" || answer.Tools[0].Graph != 1 {
		t.Errorf("after three sessions %+v, %v, want the tool that follows first", answer.Tools, err)
	}
	if got, want := run("tools", "forget", "write"), "forgot 1 edge and 1 intent\n"; got != want {
		t.Errorf("forgetting says %q, want %q", got, want)
	}
	if got, want := run("tools", "forget", "--all"), "forgot 0 edges and 1 intent\n"; got != want {
		t.Errorf("forgetting all says %q, want %q", got, want)
	}
	if got := search(); got != before {
		t.Errorf("after forgetting the answer is\n%s\nwant\n%s", got, before)
	}
}
