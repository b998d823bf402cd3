// Package connect adds cairn to the configuration of an MCP client, in JSON, JSON with
// comments or TOML, and a guide to the file that the client passes to its model. It also
// removes both. It changes no other byte of the files. It does not speak MCP.
package connect

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Client is a program that starts MCP servers.
type Client struct {
	Name  string // on the command line
	Title string // of the product
	// section is the key that holds the servers.
	section string
	format  format
	folder  string // the name of the folder in the entry; "" means its absolute path
	desktop bool   // started from the desktop, where PATH may lack folders of the user
	// Guide is the file of the folder that the client passes to its model, with slashes;
	// "" if there is none.
	Guide string
	// skills is the folder of the workspace below which the client looks for skills; "" if it
	// reads none.
	skills string
	// hooks is the file of the workspace with the hooks of the client, with slashes; "" if it runs
	// no command at the start of a session.
	hooks    string
	programs []string // the client is installed if PATH has one of them
	trace    string   // the client is installed if this path exists; see Place.expand
	path     string   // the configuration file; see Place.expand
}

// format is the format of an entry.
type format string

const (
	plain  format = ""
	typed  format = "typed"  // with the type stdio
	tables format = "toml"   // as a table in TOML
	joined format = "joined" // with the command and its arguments in one list
)

// Place locates configuration files.
type Place struct {
	Root string // of the workspace
	Home string
	OS   string // as in runtime.GOOS
	// Env looks up a variable of the environment.
	Env func(string) string
	// LookPath looks for a program in PATH; nil finds none.
	LookPath func(string) (string, error)
}

// PlaceOf returns the place of a workspace for this process.
func PlaceOf(root string) Place {
	home, _ := os.UserHomeDir() // File returns the error where a client needs it
	return Place{Root: root, Home: home, OS: runtime.GOOS, Env: os.Getenv, LookPath: exec.LookPath}
}

// AgentsFile is the guide of most clients.
const AgentsFile = "AGENTS.md"

// clients is sorted by name. If a client reads a configuration of the project and one of
// the user, path is that of the project, because the entry names one folder. Several
// users share the configuration of a project. For a client that starts servers in the
// folder, the entry therefore names the folder by a relative path.
var clients = []Client{
	{Name: "claude-code", Title: "Claude Code", section: "mcpServers", folder: ".", skills: ".claude", hooks: ".claude/settings.json", Guide: "CLAUDE.md", programs: []string{"claude"},
		trace: "HOME/.claude", path: "ROOT/.mcp.json"},
	{Name: "claude-desktop", Title: "Claude Desktop", section: "mcpServers", desktop: true,
		trace: "SETTINGS/Claude", path: "SETTINGS/Claude/claude_desktop_config.json"},
	{Name: "cline", Title: "Cline", section: "mcpServers", desktop: true, skills: ".cline", Guide: AgentsFile,
		trace: extensions + "saoudrizwan.claude-dev", path: extensions + "saoudrizwan.claude-dev/settings/cline_mcp_settings.json"},
	{Name: "codex", Title: "Codex", section: tomlSection, format: tables, skills: ".agents", Guide: AgentsFile, programs: []string{"codex"},
		trace: "CODEX", path: "CODEX/config.toml"},
	{Name: "cursor", Title: "Cursor", section: "mcpServers", folder: "${workspaceFolder}", skills: ".cursor", Guide: ".cursor/rules/cairn.mdc", programs: []string{"cursor"},
		trace: "HOME/.cursor", path: "ROOT/.cursor/mcp.json"},
	{Name: "gemini", Title: "Gemini CLI", section: "mcpServers", folder: ".", skills: ".gemini", Guide: "GEMINI.md", programs: []string{"gemini"},
		trace: "HOME/.gemini", path: "ROOT/.gemini/settings.json"},
	// Kiro starts servers in the home folder.
	{Name: "kiro", Title: "Kiro", section: "mcpServers", skills: ".kiro", Guide: AgentsFile, programs: []string{"kiro", "kiro-cli"},
		trace: "HOME/.kiro", path: "ROOT/.kiro/settings/mcp.json"},
	{Name: "opencode", Title: "OpenCode", section: "mcp", format: joined, folder: ".", skills: ".opencode", Guide: AgentsFile, programs: []string{"opencode"},
		trace: "CONFIG/opencode", path: "ROOT/opencode.json"},
	{Name: "roo", Title: "Roo Code", section: "mcpServers", folder: ".", skills: ".roo", Guide: AgentsFile,
		trace: extensions + "rooveterinaryinc.roo-cline", path: "ROOT/.roo/mcp.json"},
	{Name: "vscode", Title: "VS Code", section: "servers", format: typed, folder: "${workspaceFolder}", skills: ".github", Guide: ".github/copilot-instructions.md", programs: []string{"code"},
		trace: "SETTINGS/Code", path: "ROOT/.vscode/mcp.json"},
	{Name: "windsurf", Title: "Windsurf", section: "mcpServers", desktop: true, skills: ".windsurf", Guide: AgentsFile, programs: []string{"windsurf"},
		trace: "HOME/.codeium/windsurf", path: "HOME/.codeium/windsurf/mcp_config.json"},
	{Name: "zed", Title: "Zed", section: "context_servers", desktop: true, Guide: AgentsFile, programs: []string{"zed"},
		trace: "ZED", path: "ZED/settings.json"},
}

// extensions is the folder in which extensions of VS Code keep their files.
const extensions = "SETTINGS/Code/User/globalStorage/"

// expand returns a path of the table of clients, which begins with the name of a folder.
func (p Place) expand(path string) string {
	name, rest, _ := strings.Cut(path, "/")
	return filepath.Join(p.dir(name), filepath.FromSlash(rest))
}

// dir returns the folder of a name, such as SETTINGS for that of the settings of desktop programs.
func (p Place) dir(name string) string {
	config := filepath.Join(p.Home, ".config")
	if dir := p.Env("XDG_CONFIG_HOME"); dir != "" && p.OS != "darwin" {
		config = dir
	}
	switch name {
	case "ROOT":
		return p.Root
	case "HOME":
		return p.Home
	case "CODEX":
		return cmp.Or(p.Env("CODEX_HOME"), filepath.Join(p.Home, ".codex"))
	case "ZED":
		if p.OS == "windows" {
			return filepath.Join(p.Env("APPDATA"), "Zed")
		}
		return filepath.Join(config, "zed")
	case "SETTINGS":
		switch p.OS {
		case "windows":
			return p.Env("APPDATA")
		case "darwin":
			return filepath.Join(p.Home, "Library", "Application Support")
		}
	}
	return config
}

// Installed returns the clients with a program in PATH or with files in their usual places,
// sorted by name.
func Installed(p Place) []Client {
	var found []Client
	for _, c := range clients {
		program := func(name string) bool {
			if p.LookPath == nil {
				return false
			}
			_, err := p.LookPath(name)
			return err == nil
		}
		trace := p.expand(c.trace)
		_, err := os.Stat(trace)
		if slices.ContainsFunc(c.programs, program) || filepath.IsAbs(trace) && err == nil {
			found = append(found, c)
		}
	}
	return found
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

// File returns the file that the client reads. It fails if the file is relative to an unknown
// home folder.
func (c Client) File(p Place) (string, error) {
	path := p.expand(c.path)
	if _, err := os.Lstat(path + "c"); err == nil && c.format == joined { // OpenCode reads JSON with comments, too
		path += "c"
	}
	if !filepath.IsAbs(path) {
		_, err := os.UserHomeDir()
		return "", fmt.Errorf("finding the configuration of %s: %w; set it to your home folder", c.Name, err)
	}
	return path, nil
}

// Entry is one server in a client's configuration.
type Entry struct {
	Command string
	Args    []string
	format  format
}

// Entry returns the entry that starts command on the workspace in root, with further
// arguments.
func (c Client) Entry(command, root string, further ...string) Entry {
	if c.folder != "" {
		root = c.folder
	}
	return Entry{Command: command, Args: append([]string{"mcp", "-C", root}, further...), format: c.format}
}

// MarshalJSON writes the entry in the format of its client.
func (e Entry) MarshalJSON() ([]byte, error) {
	if e.format == joined {
		return json.Marshal(struct {
			Type    string   `json:"type"`
			Command []string `json:"command"`
			Enabled bool     `json:"enabled"`
		}{"local", append([]string{e.Command}, e.Args...), true})
	}
	entry := struct {
		Type    string   `json:"type,omitempty"`
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}{Command: e.Command, Args: e.Args}
	if e.format == typed {
		entry.Type = "stdio"
	}
	return json.Marshal(entry)
}

// Text returns a configuration with only the entry, for users to paste.
func (c Client) Text(name string, e Entry) string {
	text, err := c.Merge("", nil, name, e, false)
	if err != nil {
		panic(err) // unreachable: any entry can be added to an empty file
	}
	return string(text)
}

// ForeignEntryError reports that the server of a name does not start cairn on the folder.
type ForeignEntryError struct{ Name, Path string }

func (e *ForeignEntryError) Error() string {
	return fmt.Sprintf("the server %q in %s does not start cairn on this folder, so it stays", e.Name, e.Path)
}

// UnsuitableError reports a file that cannot be changed safely.
type UnsuitableError struct{ Path, Reason string }

func (e *UnsuitableError) Error() string {
	return fmt.Sprintf("%s is unchanged, because %s; edit it by hand", e.Path, e.Reason)
}

// Program returns the command with which the client starts this program.
func (c Client) Program() string { return Program(c.desktop) }

// Program returns the command that starts this program: its name if it is in PATH, so that a
// configuration works on other machines, else its path. A program that is started from the
// desktop or at login needs the path.
func Program(absolute bool) string {
	self, err := os.Executable()
	if err != nil {
		return "cairn"
	}
	found, err := exec.LookPath("cairn")
	if err != nil {
		return self
	}
	a, errA := os.Stat(self)
	b, errB := os.Stat(found)
	if errA != nil || errB != nil || !os.SameFile(a, b) {
		return self
	}
	if !absolute {
		return "cairn"
	}
	// Do not follow links: an update may move the program, but not the link in PATH.
	if path, err := filepath.Abs(found); err == nil {
		return path
	}
	return self
}
