package connect

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestServers: in each format, without cairn and without what is turned off or has no target.
func TestServers(t *testing.T) {
	for client, c := range map[string]struct{ file, text string }{
		"codex": {"config.toml", `[mcp_servers.git]
command = "uvx"
args = ["mcp-server-git"]
env = { TOKEN = "secret" }
[mcp_servers.cairn]
command = "cairn"
args = ["mcp", "-C", "."]
`},
		"opencode": {"opencode.json", `{"mcp":{"git":{"type":"local","command":["uvx","mcp-server-git"],"environment":{"TOKEN":"secret"}},"off":{"command":["x"],"enabled":false}}}`},
		"zed":      {"settings.json", `{"context_servers":{"git":{"command":"uvx","args":["mcp-server-git"],"env":{"TOKEN":"secret"}},"empty":{}} /* mine */}`},
	} {
		at := File{Root: t.TempDir()}
		at.Path = filepath.Join(at.Root, c.file)
		if err := os.WriteFile(at.Path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := clientNamed(t, client).Servers(at)
		want := []Configured{{Name: "git", Command: []string{"uvx", "mcp-server-git"}, Env: map[string]string{"TOKEN": "secret"}}}
		if err != nil || !cmp.Equal(found, want) {
			t.Errorf("%s: %v, %s", client, err, cmp.Diff(want, found))
		}
	}
}

func clientNamed(t *testing.T, name string) Client {
	t.Helper()
	c, err := ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
