// Package connect writes cairn into the configuration of an MCP client: into
// its JSON, with comments or without, or its TOML, leaving every other byte as
// it is. It starts no client and knows nothing of the protocol.
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
	Name  string // as on the command line
	Title string // as its makers write it
	// section is the key that holds the servers.
	section string
	toml    bool
	typed   bool   // an entry says that it is of type stdio
	folder  string // how the client writes the folder it has open; "" where it cannot
	path    func(Place) string
}

// Place is where configuration is looked for.
type Place struct {
	Root string // of the workspace
	Home string
	OS   string // as in runtime.GOOS
	// Env looks up a variable of the environment.
	Env func(string) string
}

// clients in the order of their names. Where a client reads a file in the
// project as well as one of the user, the project's is written: the entry names
// one folder.
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

// settings is the folder in which desktop programs keep theirs.
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

// Path is the file the client reads.
func (c Client) Path(p Place) string { return c.path(p) }

// Entry is one server in a client's configuration.
type Entry struct {
	Type    string   `json:"type,omitempty" toml:"type,omitempty"`
	Command string   `json:"command" toml:"command"`
	Args    []string `json:"args" toml:"args"`
}

// Entry returns what starts command on the workspace in root.
func (c Client) Entry(command, root string) Entry {
	if c.folder != "" {
		root = c.folder
	}
	e := Entry{Command: command, Args: []string{"mcp", "-C", root}}
	if c.typed {
		e.Type = "stdio"
	}
	return e
}

// Text is the configuration of the entry alone, to be pasted.
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

// ConflictError says that the client has another server of that name.
type ConflictError struct{ Name, Path string }

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s has another server named %q; choose one with --name, or replace it with --force", e.Path, e.Name)
}

// UnsuitableError says that a file cannot be changed safely.
type UnsuitableError struct{ Path, Reason string }

func (e *UnsuitableError) Error() string {
	return fmt.Sprintf("%s is left as it is, since %s; add this by hand", e.Path, e.Reason)
}

// Merge returns a configuration with the entry in it. old is what the file
// holds, blank for a new one; path stands in messages. The result equals old
// where the entry is there already. Another entry of that name is a
// *ConflictError unless force; what cannot be changed is an *UnsuitableError.
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
