package connect

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

const tomlSection = "mcp_servers"

// tomlEntry returns the entry as a table.
func tomlEntry(name string, e Entry) string {
	args := make([]string, len(e.Args))
	for i, a := range e.Args {
		args[i] = strconv.Quote(a)
	}
	if !bareKey(name) {
		name = strconv.Quote(name)
	}
	return fmt.Sprintf("[%s.%s]\ncommand = %s\nargs = [%s]\n", tomlSection, name, strconv.Quote(e.Command), strings.Join(args, ", "))
}

func bareKey(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

// mergeTOML appends the entry's table. It does not rewrite an existing table, because
// that would lose comments.
func mergeTOML(path string, old []byte, name string, e Entry, force bool) ([]byte, error) {
	var before map[string]any
	if err := toml.Unmarshal(old, &before); err != nil {
		return nil, &UnsuitableError{path, "it is not TOML: " + strings.TrimPrefix(err.Error(), "toml: ")}
	}
	if have := under(before, tomlSection, name); have != nil {
		if sameEntry(have, e) {
			return old, nil
		}
		if force {
			return nil, &UnsuitableError{path, fmt.Sprintf("it has another server named %q", name)}
		}
		return nil, &ConflictError{name, path}
	}
	var b bytes.Buffer
	b.Write(old)
	if len(old) > 0 {
		if old[len(old)-1] != '\n' {
			b.WriteByte('\n')
		}
		b.WriteByte('\n')
	}
	b.WriteString(tomlEntry(name, e))
	var after map[string]any
	if err := toml.Unmarshal(b.Bytes(), &after); err != nil || !changedOnly(before, after, tomlSection, name) || !sameEntry(under(after, tomlSection, name), e) {
		return nil, &UnsuitableError{path, tomlSection + " in it is not made of tables"}
	}
	return b.Bytes(), nil
}
