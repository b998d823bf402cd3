// Package connect adds cairn to the configuration of an MCP client, in JSON, JSON
// with comments or TOML, and leaves every other byte unchanged. It does not speak
// the protocol.
package connect

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Client is a program that starts MCP servers.
type Client struct {
	Name  string // on the command line
	Title string // of the product
	// section is the key that holds the servers.
	section string
	toml    bool
	typed   bool   // entries have the type stdio
	folder  string // the client's variable for its open folder; "" for none
	path    func(Place) string
}

// Place locates configuration files.
type Place struct {
	Root string // of the workspace
	Home string
	OS   string // as in runtime.GOOS
	// Env looks up a variable of the environment.
	Env func(string) string
}

// clients are sorted by name. If a client reads a file of the project and one of the
// user, path is that of the project, because the entry names one folder.
var clients = []Client{
	{Name: "claude-code", Title: "Claude Code", section: "mcpServers",
		path: func(p Place) string { return filepath.Join(p.Root, ".mcp.json") }},
	{Name: "claude-desktop", Title: "Claude Desktop", section: "mcpServers", path: func(p Place) string {
		return filepath.Join(p.settings("Claude"), "claude_desktop_config.json")
	}},
	{Name: "codex", Title: "Codex", section: "mcp_servers", toml: true, path: func(p Place) string {
		if dir := p.Env("CODEX_HOME"); dir != "" {
			return filepath.Join(dir, "config.toml")
		}
		return filepath.Join(p.Home, ".codex", "config.toml")
	}},
	{Name: "cursor", Title: "Cursor", section: "mcpServers", folder: "${workspaceFolder}",
		path: func(p Place) string { return filepath.Join(p.Root, ".cursor", "mcp.json") }},
	{Name: "gemini", Title: "Gemini CLI", section: "mcpServers",
		path: func(p Place) string { return filepath.Join(p.Root, ".gemini", "settings.json") }},
	{Name: "vscode", Title: "VS Code", section: "servers", typed: true, folder: "${workspaceFolder}",
		path: func(p Place) string { return filepath.Join(p.Root, ".vscode", "mcp.json") }},
	{Name: "zed", Title: "Zed", section: "context_servers", path: func(p Place) string {
		if p.OS == "windows" {
			return filepath.Join(p.Env("APPDATA"), "Zed", "settings.json")
		}
		return filepath.Join(p.config(), "zed", "settings.json")
	}},
}

// settings returns the configuration folder of a desktop program.
func (p Place) settings(program string) string {
	switch p.OS {
	case "windows":
		return filepath.Join(p.Env("APPDATA"), program)
	case "darwin":
		return filepath.Join(p.Home, "Library", "Application Support", program)
	}
	return filepath.Join(p.config(), program)
}

func (p Place) config() string {
	if dir := p.Env("XDG_CONFIG_HOME"); dir != "" && p.OS != "darwin" {
		return dir
	}
	return filepath.Join(p.Home, ".config")
}

// Names returns the names of the clients, sorted.
func Names() []string {
	var names []string
	for _, c := range clients {
		names = append(names, c.Name)
	}
	return names
}

// ByName returns the client of that name.
func ByName(name string) (Client, error) {
	i := slices.IndexFunc(clients, func(c Client) bool { return c.Name == name })
	if i < 0 {
		return Client{}, fmt.Errorf("unknown client %q, want {%s}", name, strings.Join(Names(), ","))
	}
	return clients[i], nil
}

// Path returns the file that the client reads.
func (c Client) Path(p Place) string { return c.path(p) }

// Entry is one server in a client's configuration.
type Entry struct {
	Type    string   `json:"type,omitempty" toml:"type,omitempty"`
	Command string   `json:"command" toml:"command"`
	Args    []string `json:"args" toml:"args"`
}

// Entry returns the entry that starts command on the workspace in root, with further
// arguments.
func (c Client) Entry(command, root string, further ...string) Entry {
	if c.folder != "" {
		root = c.folder
	}
	e := Entry{Command: command, Args: append([]string{"mcp", "-C", root}, further...)}
	if c.typed {
		e.Type = "stdio"
	}
	return e
}

// Text returns a configuration with only the entry, to be pasted.
func (c Client) Text(name string, e Entry) string {
	if c.toml {
		return tomlEntry(name, e)
	}
	text, err := json.MarshalIndent(map[string]map[string]Entry{c.section: {name: e}}, "", "  ")
	if err != nil {
		panic(err) // unreachable: strings marshal
	}
	return string(text) + "\n"
}

// ConflictError reports another server of the same name.
type ConflictError struct{ Name, Path string }

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s has another server named %q; choose one with --name, or replace it with --force", e.Path, e.Name)
}

// UnsuitableError reports a file that cannot be changed safely.
type UnsuitableError struct{ Path, Reason string }

func (e *UnsuitableError) Error() string {
	return fmt.Sprintf("%s is unchanged, because %s; add this by hand", e.Path, e.Reason)
}

// Merge returns a configuration with the entry added. old is the content of the
// file, blank for a new one; path is for messages. The result equals old if the
// entry exists already. Another entry of that name is a *ConflictError unless
// force; a file that cannot be changed safely is an *UnsuitableError.
func (c Client) Merge(path string, old []byte, name string, e Entry, force bool) ([]byte, error) {
	if c.toml {
		return mergeTOML(path, old, name, e, force)
	}
	return mergeJSON(path, old, c.section, name, e, force)
}

// Program returns the command that starts this program: its name if PATH finds it
// there, so that the configuration works on other machines, else its path.
func Program() string {
	self, err := os.Executable()
	if err != nil {
		return "cairn"
	}
	if found, err := exec.LookPath("cairn"); err == nil {
		a, errA := os.Stat(self)
		b, errB := os.Stat(found)
		if errA == nil && errB == nil && os.SameFile(a, b) {
			return "cairn"
		}
	}
	return self
}
