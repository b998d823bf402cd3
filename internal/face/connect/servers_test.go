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
		want := []Configured{{Name: "git", Command: []string{"uvx", "mcp-server-git"}, Env: []string{"TOKEN"}, Headers: map[string]string{}, Values: map[string]string{"TOKEN": "secret"}}}
		if err != nil || !cmp.Equal(found, want) {
			t.Errorf("%s: %v, %s", client, err, cmp.Diff(want, found))
		}
	}
}

// TestHeadersOfServers: the values of headers become those of variables.
func TestHeadersOfServers(t *testing.T) {
	at := File{Root: t.TempDir()}
	at.Path = filepath.Join(at.Root, "mcp.json")
	if err := os.WriteFile(at.Path, []byte(`{"mcpServers":{"web":{"url":"https://example.com/mcp","headers":{"X-Api-Key":"secret"}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := clientNamed(t, "cursor").Servers(at)
	want := []Configured{{Name: "web", URL: "https://example.com/mcp", Headers: map[string]string{"X-Api-Key": "HEADER_X_API_KEY"}, Values: map[string]string{"HEADER_X_API_KEY": "secret"}}}
	if err != nil || !cmp.Equal(found, want) {
		t.Errorf("%v, %s", err, cmp.Diff(want, found))
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
