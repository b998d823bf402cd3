package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"cairn/internal/base/atomicfile"
	"cairn/internal/base/home"
	"cairn/internal/base/owner"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/catalog"
	"cairn/tools/client"
)

// Server says how to reach a server. Exactly one of Command and URL is set.
type Server struct {
	Name    string   `json:"-"`
	Command []string `json:"command,omitempty"`
	URL     string   `json:"url,omitempty"`
	// Env lists variables that the command receives from the environment of cairn, besides
	// those in passed. TokenEnv is the variable with the bearer token for the URL.
	Env      []string `json:"env,omitempty"`
	TokenEnv string   `json:"token_env,omitempty"`
	// Headers has the variables with the values of the headers that the URL requires, by the
	// names of the headers.
	Headers map[string]string `json:"headers,omitempty"`
	// OAuth means that the user has logged in to the URL.
	OAuth bool `json:"oauth,omitempty"`
	// Values has the values of variables in Env and Headers that are not in the environment of
	// cairn.
	Values map[string]string `json:"-"`
	// Permissions overrides the defaults of tools by their names.
	Permissions map[string]Permission `json:"permissions,omitempty"`
	// Folder reports that the configuration of the folder names the server.
	Folder bool `json:"-"`
}

// Target returns the command or the URL as a line of text.
func (s *Server) Target() string { return cmp.Or(s.URL, strings.Join(s.Command, " ")) }

// Source returns the name of the server's import in the catalogue.
func (s *Server) Source() string { return sourcePrefix + s.Name }

const sourcePrefix = "server: "

// namePattern is strict, because names are parts of the IDs of tools and of names of files.
var (
	namePattern     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
	headerPattern   = regexp.MustCompile(`^[A-Za-z0-9-]+$`)
	variablePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Check returns an error for an invalid server.
func (s *Server) Check() error {
	if !namePattern.MatchString(s.Name) || s.Name == catalog.DocumentServer {
		return fmt.Errorf("a server is named %q, want 1 to 64 letters, digits, _ and -, and not %q", s.Name, catalog.DocumentServer)
	}
	switch u, err := url.Parse(s.URL); {
	case (len(s.Command) > 0) == (s.URL != ""):
		return fmt.Errorf("server %s: want a command or a URL", s.Name)
	case s.URL != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == ""):
		return fmt.Errorf("server %s: URL %q, want http:// or https:// and a host", s.Name, s.URL)
	case s.OAuth && (s.URL == "" || s.TokenEnv != ""):
		return fmt.Errorf("server %s: a login goes with a URL, and without a token", s.Name)
	case s.URL != "" && u.User != nil:
		return fmt.Errorf("server %s: the URL holds a password; name a variable with a token instead", s.Name)
	}
	for name := range s.Headers {
		if s.URL == "" || !headerPattern.MatchString(name) {
			return fmt.Errorf("server %s: header %.40q, want the name of an HTTP header, for a URL", s.Name, name)
		}
	}
	for _, name := range s.variables() {
		if !variablePattern.MatchString(name) {
			return fmt.Errorf("server %s: %.40q is not the name of an environment variable; values stay in your environment", s.Name, name)
		}
	}
	return nil
}

// variables returns the names of the variables that the server needs.
func (s *Server) variables() []string {
	names := append(slices.Clone(s.Env), slices.Sorted(maps.Values(s.Headers))...)
	if s.TokenEnv != "" {
		names = append(names, s.TokenEnv)
	}
	return names
}

// Store keeps the servers of the user in a file that only the user can read, and below Dir
// the approved definitions and the logs of all servers. It is safe for concurrent use, also
// by several processes that read; the last of two writers wins.
type Store struct {
	path, dir string
	folder    []Server

	mu      sync.Mutex
	stamp   string            // of the user's file, as of servers
	servers map[string]Server // nil until they are read
}

// Open returns the user's servers, with those of a folder. entries are the setting
// mcp.servers of the folder: a name, a colon, and a command or a URL. If two servers have the
// same name, that of the user counts.
func Open(entries []string) (*Store, error) {
	path, err := home.UserFile("servers.json")
	if err != nil {
		return nil, err
	}
	s := &Store{path: path}
	if s.dir, err = home.Data("servers"); err != nil {
		return nil, err
	}
	for _, entry := range entries {
		name, target, _ := strings.Cut(entry, ":")
		server := Server{Name: name, Command: strings.Fields(target), Folder: true}
		if len(server.Command) == 1 && strings.Contains(server.Command[0], "://") {
			server.URL, server.Command = server.Command[0], nil
		}
		if err := server.Check(); err != nil {
			return nil, fmt.Errorf("configuration: mcp.servers: %w", err)
		}
		s.folder = append(s.folder, server)
	}
	return s, nil
}

// All returns the servers by name. The caller must not change the map.
func (s *Store) All() (map[string]Server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stamp := home.Stamp(s.path)
	if s.servers != nil && stamp == s.stamp {
		return s.servers, nil
	}
	servers, err := s.read()
	if err != nil {
		return nil, err
	}
	for _, server := range s.folder {
		if _, ok := servers[server.Name]; !ok {
			servers[server.Name] = server
		}
	}
	s.stamp, s.servers = stamp, servers
	return servers, nil
}

// read returns the servers in the user's file.
func (s *Store) read() (map[string]Server, error) {
	servers := map[string]Server{}
	text, err := home.ReadUserFile(s.path)
	if err != nil || text == nil {
		return servers, err
	}
	var file struct{ Servers map[string]Server }
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("reading %s: %w", s.path, err)
	}
	for name, server := range file.Servers {
		server.Name = name
		if err := server.Check(); err != nil {
			return nil, fmt.Errorf("reading %s: %w", s.path, err)
		}
		if server.Values, err = readFile[map[string]string](s, &server, ".env"); err != nil {
			return nil, err
		}
		servers[name] = server
	}
	return servers, nil
}

// Change calls fn with the servers in the user's file, which it may change, and writes them.
func (s *Store) Change(fn func(map[string]Server) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	servers, err := s.read()
	if err == nil {
		err = fn(servers)
	}
	if err != nil {
		return err
	}
	for name, server := range servers {
		server.Name = name
		if err := server.Check(); err != nil {
			return err
		}
	}
	text, _ := json.MarshalIndent(map[string]any{"servers": servers}, "", "  ") // never fails: strings marshal
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return err
	}
	s.servers = nil
	return atomicfile.Write(s.path, append(text, '\n'), 0o600)
}

// Server returns the server of a name.
func (s *Store) Server(name string) (Server, error) {
	all, err := s.All()
	if err != nil {
		return Server{}, err
	}
	server, ok := all[name]
	if !ok {
		return server, refuse(Unknown, "no server %q, want one of {%s}; `cairn tools add` adds one", name, strings.Join(slices.Sorted(maps.Keys(all)), ","))
	}
	return server, nil
}

// file returns the path of a file of a server. Its name contains a hash of the target: after
// a change of the command, nothing of the earlier one counts.
func (s *Store) file(server *Server, suffix string) string {
	sum := sha256.Sum256([]byte(server.Name + "\x00" + server.URL + "\x00" + strings.Join(server.Command, "\x00")))
	return filepath.Join(s.dir, fmt.Sprintf("%s-%x%s", server.Name, sum[:6], suffix))
}

// stampOf identifies the present state of the approved definitions.
func (s *Store) stampOf(server *Server) string { return home.Stamp(s.file(server, ".tools")) }

// Approved returns the tools that the user has approved, nil if there are none.
func (s *Store) Approved(server *Server) (tools []catalog.Tool, err error) {
	if tools, err = readFile[[]catalog.Tool](s, server, ".tools"); err != nil {
		err = fmt.Errorf("%w; approve the definitions again with `cairn tools approve %s`", err, server.Name)
	}
	return tools, err
}

// Approve makes tools the approved ones of a server.
func (s *Store) Approve(server *Server, tools []catalog.Tool) error {
	return s.writeFile(server, ".tools", append([]catalog.Tool{}, tools...))
}

// SetValues keeps the values of a server in a file that only the user can read.
func (s *Store) SetValues(server *Server) error {
	if len(server.Values) == 0 {
		return nil
	}
	return s.writeFile(server, ".env", server.Values)
}

// login returns the handler of the logins of a server, nil for a server without. show is that of
// client.OAuth.
func (s *Store) login(server *Server, show func(url string)) *client.OAuth {
	if !server.OAuth {
		return nil
	}
	return &client.OAuth{
		Load: func() (*client.Login, error) { return readFile[*client.Login](s, server, ".login") },
		Save: func(l *client.Login) error { return s.writeFile(server, ".login", l) },
		Show: show,
	}
}

// readFile reads the JSON in a file of a server, the zero value if there is none.
func readFile[T any](s *Store, server *Server, suffix string) (v T, err error) {
	path := s.file(server, suffix)
	text, err := home.ReadUserFile(path)
	if err == nil && text != nil {
		if err = json.Unmarshal(text, &v); err != nil {
			err = fmt.Errorf("reading %s: %w", path, err)
		}
	}
	return v, err
}

// writeFile writes a file of a server, which only the user can read.
func (s *Store) writeFile(server *Server, suffix string, v any) error {
	text, err := json.Marshal(v)
	if err == nil {
		err = home.Private(s.dir)
	}
	if err != nil {
		return err
	}
	return atomicfile.Write(s.file(server, suffix), text, 0o600)
}

// Forget removes what is known about a server.
func (s *Store) Forget(server *Server) error {
	var errs []error
	for _, suffix := range []string{".tools", ".log", ".env", ".login"} {
		if err := os.Remove(s.file(server, suffix)); !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Text returns what a model reads about a tool, and what the user approves, as JSON.
func Text(t *catalog.Tool) string {
	read := *t
	read.Takes, read.Gives, read.Flags, read.SchemaError = nil, nil, nil, "" // derived from the rest
	text, _ := json.Marshal(read)                                            // never fails: the schemas are JSON
	return string(text)
}

// Sync makes the catalogue of a folder contain the approved tools of the servers, and none of
// servers that have been removed. It starts no server.
func (s *Store) Sync(ctx context.Context, box *owner.Folder) error {
	all, err := s.All()
	if err != nil {
		return err
	}
	known, err := toolbox.StatsOp.Call(ctx, box, struct{}{}, nil)
	if err != nil {
		return err
	}
	var errs []error
	for _, source := range known.Sources {
		name, ours := strings.CutPrefix(source, sourcePrefix)
		if _, ok := all[name]; ours && !ok {
			_, err := toolbox.RemoveOp.Call(ctx, box, source, nil)
			errs = append(errs, err)
		}
	}
	for _, server := range all {
		tools, err := s.Approved(&server)
		if err == nil && len(tools) > 0 {
			_, err = toolbox.ImportOp.Call(ctx, box, toolbox.ImportRequest{Source: server.Source(), Tools: tools}, nil)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
