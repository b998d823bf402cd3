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

// mergeTOML appends the table of the entry. It does not rewrite an existing table, which
// would remove comments.
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
		return nil, &UnsuitableError{path, tomlSection + " in it does not consist of tables"}
	}
	return b.Bytes(), nil
}

// removeTOML removes the table of an entry if it equals that of tomlEntry. A table with
// other values, such as an environment, also belongs to the user.
func removeTOML(path string, old []byte, name, root string) ([]byte, error) {
	var before map[string]any
	if err := toml.Unmarshal(old, &before); err != nil {
		return nil, &UnsuitableError{path, "it is not TOML: " + strings.TrimPrefix(err.Error(), "toml: ")}
	}
	have := under(before, tomlSection, name)
	if have == nil {
		return old, nil
	}
	e, ok := entryOf(have)
	if !ok || !e.starts(root) {
		return nil, &ForeignEntryError{name, path}
	}
	var out []byte
	switch head, rest, found := bytes.Cut(old, []byte(tomlEntry(name, e))); {
	case !found:
	case len(head) == 0:
		out = rest
	case bytes.HasSuffix(head, []byte("\n\n")):
		out = append(bytes.Clone(head[:len(head)-1]), rest...)
	case head[len(head)-1] == '\n':
		out = append(bytes.Clone(head), rest...)
	}
	var after map[string]any
	if out == nil || toml.Unmarshal(out, &after) != nil || !changedOnly(before, after, tomlSection, name) || under(after, tomlSection, name) != nil {
		return nil, &UnsuitableError{path, fmt.Sprintf("the server %q in it is not exactly as cairn wrote it", name)}
	}
	return out, nil
}
