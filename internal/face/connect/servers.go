package connect

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Configured is a server in a client's configuration.
type Configured struct {
	Name    string
	Command []string // empty for a URL
	URL     string
	// Env are the variables that the configuration sets, with their values, and Headers the
	// names of the headers.
	Env     map[string]string
	Headers []string
	// Bound is what only the client can supply, such as a folder; "" if there is nothing.
	Bound string
}

// bound matches what clients replace in a command.
var bound = regexp.MustCompile(`\$\{[^}]*\}`)

// Servers returns the servers in the client's file, sorted by name, except for cairn and those
// that are disabled.
func (c Client) Servers(at File) (found []Configured, err error) {
	_, err = plan(at.Root, at.Path, func(f *Change) error {
		servers := c.servers(f.Old)
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			have, _ := servers[name].(map[string]any)
			e, isCommand := entryOf(have)
			if e.isCairn() || have["disabled"] == true || have["enabled"] == false {
				continue
			}
			s := Configured{Name: name, Env: map[string]string{}}
			if isCommand {
				s.Command = append([]string{e.Command}, e.Args...)
			}
			for i, word := range s.Command { // cairn starts it in the folder
				s.Command[i] = strings.ReplaceAll(word, "${workspaceFolder}", ".")
				s.Bound = cmp.Or(bound.FindString(s.Command[i]), s.Bound)
			}
			if dir, _ := have["cwd"].(string); dir != "" && dir != "." && dir != "${workspaceFolder}" {
				s.Bound = "cwd"
			}
			for _, key := range []string{"url", "serverUrl", "httpUrl"} {
				if u, ok := have[key].(string); ok && s.Command == nil {
					s.URL = u
				}
			}
			for _, key := range []string{"env", "environment"} {
				object, _ := have[key].(map[string]any)
				for name, value := range object {
					s.Env[name] = fmt.Sprint(value)
					s.Bound = cmp.Or(bound.FindString(s.Env[name]), s.Bound)
				}
			}
			s.Headers = append(keys(have["headers"]), keys(have["http_headers"])...)
			if s.Command != nil || s.URL != "" {
				found = append(found, s)
			}
		}
		return nil
	})
	return found, err
}

// ServerNames returns the names of servers.
func ServerNames(list []Configured) (names []string) {
	for _, s := range list {
		names = append(names, s.Name)
	}
	return names
}

// keys returns the keys of an object, sorted.
func keys(v any) []string {
	object, _ := v.(map[string]any)
	return slices.Sorted(maps.Keys(object))
}
