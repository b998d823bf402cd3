package connect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

const tomlSection = "mcp_servers"

// tomlEntry returns the entry as a table, with further values.
func tomlEntry(name string, e Entry, further map[string]any) []byte {
	args := make([]string, len(e.Args))
	for i, a := range e.Args {
		args[i] = tomlText(a)
	}
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" { // no bare key
		name = tomlText(name)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "[%s.%s]\ncommand = %s\nargs = [%s]\n", tomlSection, name, tomlText(e.Command), strings.Join(args, ", "))
	further = maps.Clone(further)
	delete(further, "command")
	delete(further, "args")
	_ = toml.NewEncoder(&b).SetTablesInline(true).Encode(further) // never fails: the values are from TOML
	return b.Bytes()
}

// tomlText returns a string of TOML, which escapes characters as JSON does, and DEL too.
func tomlText(s string) string {
	text, _ := json.Marshal(s) // never fails: it is a string
	return strings.ReplaceAll(string(text), "\x7f", `\u007f`)
}

// tablesOf returns the tables of a server in a file, and the file without them. A blank line
// before a table belongs to it, and comments before it to the rest.
func tablesOf(text []byte, name string) (own, rest []byte) {
	inside := false
	var between []byte // blank lines and comments after the last table
	for line := range bytes.Lines(text) {
		start := bytes.TrimSpace(line)
		if len(start) == 0 || start[0] == '#' {
			between = append(between, line...)
			continue
		}
		was := inside
		var header map[string]any
		if start[0] == '[' && toml.Unmarshal(line, &header) == nil {
			inside = under(header, tomlSection, name) != nil
		}
		if was && inside {
			own = append(own, between...)
		} else {
			rest = append(rest, between...)
		}
		between = nil
		if !inside {
			rest = append(rest, line...)
			continue
		}
		if !was {
			if blank := cutNewline(rest); len(blank) == 0 || blank[len(blank)-1] == '\n' {
				rest = blank
			}
		}
		own = append(own, line...)
	}
	return own, append(rest, between...)
}
