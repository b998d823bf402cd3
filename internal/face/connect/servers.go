package connect

import (
	"maps"
	"slices"
)

// Configured is a server in a client's configuration.
type Configured struct {
	Name    string
	Command []string // empty for a URL
	URL     string
	// Env are the names of the variables that the configuration sets, and Headers those of
	// the headers. Their values stay in the file.
	Env, Headers []string
}

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
			s := Configured{Name: name}
			if isCommand {
				s.Command = append([]string{e.Command}, e.Args...)
			}
			for _, key := range []string{"url", "serverUrl", "httpUrl"} {
				if u, ok := have[key].(string); ok && s.Command == nil {
					s.URL = u
				}
			}
			for _, key := range []string{"env", "environment"} {
				s.Env = append(s.Env, keys(have[key])...)
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

// keys returns the keys of an object, sorted.
func keys(v any) []string {
	object, _ := v.(map[string]any)
	return slices.Sorted(maps.Keys(object))
}
