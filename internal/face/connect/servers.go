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
	// Env has the names of the variables that the configuration sets, Headers names a variable
	// for each header of the URL, and Values has the values of all these variables.
	Env     []string
	Headers map[string]string
	Values  map[string]string
	// Bound is what only the client can supply, such as a folder; "" if there is nothing.
	Bound string
}

// bound matches what clients replace in a command.
var bound = regexp.MustCompile(`\$\{[^}]*\}`)

// separator matches what the name of a variable cannot have.
var separator = regexp.MustCompile(`[^A-Za-z0-9]+`)

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
			s := Configured{Name: name, Headers: map[string]string{}, Values: map[string]string{}}
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
					s.Env = append(s.Env, name)
					s.Values[name] = fmt.Sprint(value)
				}
			}
			for _, key := range []string{"headers", "http_headers"} {
				object, _ := have[key].(map[string]any)
				for name, value := range object {
					s.Headers[name] = "HEADER_" + strings.ToUpper(separator.ReplaceAllString(name, "_"))
					s.Values[s.Headers[name]] = fmt.Sprint(value)
				}
			}
			for _, value := range s.Values {
				s.Bound = cmp.Or(bound.FindString(value), s.Bound)
			}
			slices.Sort(s.Env)
			if s.Command != nil || s.URL != "" {
				found = append(found, s)
			}
		}
		return nil
	})
	return found, err
}
