package connect

import (
	"bytes"
	"encoding/json"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// editJSON calls edit with the object of a JSON file, blank for a new one, and its content,
// and returns the file with section.name changed and everything else as it was. With an
// unchanged object it returns old.
func editJSON(path string, old []byte, section, name string, edit func(doc *hujson.Object, before map[string]any) (changed bool, err error), done func(entry any) bool) ([]byte, error) {
	unsuitable := func(reason string) error { return &UnsuitableError{path, reason} }
	body, mark := bytes.CutPrefix(old, []byte("\ufeff"))
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}\n")
	}
	doc, err := hujson.Parse(body)
	if err != nil {
		return nil, unsuitable("it is not JSON: " + strings.TrimPrefix(err.Error(), "hujson: "))
	}
	before, err := plainJSON(doc)
	object, ok := doc.Value.(*hujson.Object)
	if err != nil || !ok {
		return nil, unsuitable("it is not a JSON object")
	}
	if changed, err := edit(object, before); err != nil || !changed {
		return old, err
	}
	out := doc.Pack()
	// Check the meaning, whatever the layout was.
	if doc, err = hujson.Parse(out); err != nil {
		return nil, unsuitable("its layout is not understood")
	}
	after, err := plainJSON(doc)
	if err != nil || !changedOnly(before, after, section, name) || !done(under(after, section, name)) {
		return nil, unsuitable("its layout is not understood (a key may be there twice)")
	}
	if mark {
		out = append([]byte("\ufeff"), out...)
	}
	return out, nil
}

// mergeJSON sets old.section.name. Comments, order and layout stay.
func mergeJSON(path string, old []byte, section, name string, e Entry, force bool) ([]byte, error) {
	unit := indentOf(old)
	return editJSON(path, old, section, name, func(doc *hujson.Object, before map[string]any) (bool, error) {
		at := member(doc, section)
		if at == nil {
			appendMember(doc, section, hujson.Value{Value: &hujson.Object{}}, unit, "")
			at = member(doc, section)
		}
		list, ok := at.Value.(*hujson.Object)
		if !ok {
			return false, &UnsuitableError{path, section + " in it is not an object"}
		}
		value, err := hujson.Parse(indented(e, unit))
		if err != nil {
			return false, err // unreachable: it has just been written
		}
		value.BeforeExtra = hujson.Extra(" ")
		switch have := member(list, name); {
		case have == nil:
			appendMember(list, name, value, unit+unit, unit)
		case sameEntry(under(before, section, name), e):
			return false, nil
		case !force:
			return false, &ConflictError{name, path}
		default:
			have.Value = value.Value
		}
		return true, nil
	}, func(entry any) bool { return sameEntry(entry, e) })
}

func member(o *hujson.Object, name string) *hujson.Value {
	for i := range o.Members {
		if l, ok := o.Members[i].Name.Value.(hujson.Literal); ok && l.String() == name {
			return &o.Members[i].Value
		}
	}
	return nil
}

// appendMember adds a member on a line of its own, after a comment on the last line.
func appendMember(o *hujson.Object, name string, value hujson.Value, indent, closing string) {
	trailing := len(o.Members) > 0 && o.Members[len(o.Members)-1].Value.AfterExtra != nil
	before := strings.TrimRight(string(o.AfterExtra), " \t\r\n") + "\n" + indent
	if value.BeforeExtra == nil {
		value.BeforeExtra = hujson.Extra(" ")
	}
	if trailing {
		value.AfterExtra = hujson.Extra{} // not nil: a comma follows
	}
	o.Members = append(o.Members, hujson.ObjectMember{
		Name:  hujson.Value{BeforeExtra: hujson.Extra(before), Value: hujson.String(name)},
		Value: value,
	})
	o.AfterExtra = hujson.Extra("\n" + closing)
}

// indented returns an entry as the value of a member two levels down.
func indented(e Entry, unit string) []byte {
	text, err := json.MarshalIndent(e, unit+unit, unit)
	if err != nil {
		panic(err) // unreachable: strings marshal
	}
	return text
}

// indentOf returns the indentation of the first indented line of a file.
func indentOf(text []byte) string {
	for line := range bytes.Lines(text) {
		if rest := bytes.TrimLeft(line, " \t"); len(rest) < len(line) && len(bytes.TrimSpace(rest)) > 0 {
			return string(line[:len(line)-len(rest)])
		}
	}
	return "  "
}

// plainJSON returns the object of a file.
func plainJSON(doc hujson.Value) (map[string]any, error) {
	doc = doc.Clone()
	doc.Standardize()
	var m map[string]any
	err := json.Unmarshal(doc.Pack(), &m)
	return m, err
}

// under returns doc[section][name], nil if it does not exist.
func under(doc map[string]any, section, name string) any {
	servers, _ := doc[section].(map[string]any)
	return servers[name]
}

// changedOnly reports whether nothing but doc[section][name] differs.
func changedOnly(before, after map[string]any, section, name string) bool {
	without := func(doc map[string]any) map[string]any {
		out := map[string]any{}
		for k, v := range doc {
			out[k] = v
		}
		servers := map[string]any{}
		old, _ := doc[section].(map[string]any)
		for k, v := range old {
			if k != name {
				servers[k] = v
			}
		}
		out[section] = servers
		return out
	}
	return reflect.DeepEqual(without(before), without(after))
}

// sameEntry reports whether a server in a file has the values of e. Other values,
// such as an environment, are the user's.
func sameEntry(have any, e Entry) bool {
	had, ok := entryOf(have)
	if !ok || had.Command != e.Command || !slices.Equal(had.Args, e.Args) {
		return false
	}
	kind := have.(map[string]any)["type"]
	return e.format != typed || kind == nil || kind == "stdio"
}

// entryOf returns the command and the arguments of a server in a file.
func entryOf(have any) (e Entry, ok bool) {
	m, _ := have.(map[string]any)
	list, isList := m["command"].([]any)
	if !isList {
		args, _ := m["args"].([]any)
		list = append([]any{m["command"]}, args...)
	}
	for i, v := range list {
		word, isWord := v.(string)
		if !isWord {
			return e, false
		}
		if i == 0 {
			e.Command = word
		} else {
			e.Args = append(e.Args, word)
		}
	}
	return e, e.Command != ""
}

// starts reports whether the entry starts cairn on root, or on the folder that the
// client has open.
func (e Entry) starts(root string) bool {
	program := strings.TrimSuffix(path.Base(filepath.ToSlash(e.Command)), ".exe")
	if program != "cairn" || len(e.Args) < 3 || e.Args[0] != "mcp" || e.Args[1] != "-C" {
		return false
	}
	return e.Args[2] == root || e.Args[2] == "." || e.Args[2] == "${workspaceFolder}"
}

// removeJSON removes old.section.name. Comments, order and layout of the rest stay.
func (c Client) removeJSON(path string, old []byte, name, root string) ([]byte, error) {
	return editJSON(path, old, c.section, name, func(doc *hujson.Object, before map[string]any) (bool, error) {
		have := under(before, c.section, name)
		if have == nil {
			return false, nil
		}
		if e, ok := entryOf(have); !ok || !e.starts(root) {
			return false, &ForeignEntryError{name, path}
		}
		list, ok := member(doc, c.section).Value.(*hujson.Object)
		if !ok {
			return false, &UnsuitableError{path, c.section + " in it is not an object"}
		}
		removeMember(list, name)
		return true, nil
	}, func(entry any) bool { return entry == nil })
}

// removeMember removes a member and keeps the comments before it.
func removeMember(o *hujson.Object, name string) {
	i := slices.IndexFunc(o.Members, func(m hujson.ObjectMember) bool {
		l, ok := m.Name.Value.(hujson.Literal)
		return ok && l.String() == name
	})
	comments := bytes.TrimRight(o.Members[i].Name.BeforeExtra, " \t\r\n")
	last, trailing := i == len(o.Members)-1, o.Members[i].Value.AfterExtra != nil
	o.Members = slices.Delete(o.Members, i, i+1)
	if !last {
		next := &o.Members[i].Name
		next.BeforeExtra = follow(comments, next.BeforeExtra)
		return
	}
	if i > 0 {
		before := &o.Members[i-1].Value
		if trailing {
			before.AfterExtra = append(hujson.Extra{}, before.AfterExtra...) // not nil: a comma follows
		} else {
			comments = append(bytes.Clone(before.AfterExtra), comments...)
			before.AfterExtra = nil
		}
	}
	o.AfterExtra = follow(comments, o.AfterExtra)
	if i == 0 && len(bytes.TrimSpace(o.AfterExtra)) == 0 {
		o.AfterExtra = nil
	}
}

// follow returns comments with what follows them, on the next line after a comment that
// ends with its line.
func follow(comments []byte, rest hujson.Extra) hujson.Extra {
	if bytes.Contains(comments, []byte("//")) && !bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r"), []byte("\n")) {
		comments = append(bytes.Clone(comments), '\n')
	}
	return append(bytes.Clone(comments), rest...)
}
