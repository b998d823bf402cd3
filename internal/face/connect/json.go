package connect

import (
	"bytes"
	"encoding/json"
	"maps"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// editJSON calls edit with the object in a JSON file, which it changes, and the values of
// the object. It returns the new content of the file, or old if edit reports no change. If
// anything other than section.name has changed, or done rejects its new value, the error is
// an *UnsuitableError. old is blank for a new file.
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
	// Compare the values, because the layout may be unusual.
	if doc, err = hujson.Parse(out); err != nil {
		return nil, unsuitable("its layout is not supported")
	}
	after, err := plainJSON(doc)
	if err != nil || !changedOnly(before, after, section, name) || !done(under(after, section, name)) {
		return nil, unsuitable("its layout is not supported (a key may occur twice)")
	}
	if mark {
		out = append([]byte("\ufeff"), out...)
	}
	return out, nil
}

// mergeJSON sets old.section.name. It keeps comments, order and layout.
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
			return false, err // unreachable: indented returns JSON
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

// memberIndex returns the index of the member of that name, -1 if there is none.
func memberIndex(o *hujson.Object, name string) int {
	return slices.IndexFunc(o.Members, func(m hujson.ObjectMember) bool {
		l, ok := m.Name.Value.(hujson.Literal)
		return ok && l.String() == name
	})
}

// member returns the value of the member of that name, nil if there is none.
func member(o *hujson.Object, name string) *hujson.Value {
	i := memberIndex(o, name)
	if i < 0 {
		return nil
	}
	return &o.Members[i].Value
}

// appendMember appends a member on a new line, after any comments at the end of the object.
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

// plainJSON returns the values of the object in a file.
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
		out, servers := map[string]any{}, map[string]any{}
		maps.Copy(out, doc)
		old, _ := doc[section].(map[string]any)
		maps.Copy(servers, old)
		delete(servers, name)
		out[section] = servers
		return out
	}
	return reflect.DeepEqual(without(before), without(after))
}

// sameEntry reports whether a server in a file has the values of e. It may have other
// values, such as an environment, which belong to the user.
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
	if !e.isCairn() || len(e.Args) < 3 || e.Args[1] != "-C" {
		return false
	}
	return e.Args[2] == root || e.Args[2] == "." || e.Args[2] == "${workspaceFolder}"
}

// isCairn reports whether the entry starts cairn.
func (e Entry) isCairn() bool {
	program := strings.TrimSuffix(path.Base(filepath.ToSlash(e.Command)), ".exe")
	return program == "cairn" && len(e.Args) > 0 && e.Args[0] == "mcp"
}

// removeJSON removes old.section.name. It keeps comments, order and layout of the rest.
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

// withoutEmpty returns a configuration without the section of the servers if it is empty.
func (c Client) withoutEmpty(path string, old []byte) ([]byte, error) {
	return editJSON(path, old, c.section, "", func(doc *hujson.Object, _ map[string]any) (bool, error) {
		at := member(doc, c.section)
		if at == nil {
			return false, nil
		}
		list, ok := at.Value.(*hujson.Object)
		if !ok || len(list.Members) > 0 || len(bytes.TrimSpace(list.AfterExtra)) > 0 {
			return false, nil
		}
		removeMember(doc, c.section)
		return true, nil
	}, func(entry any) bool { return entry == nil })
}

// removeMember removes a member and keeps the comments before it.
func removeMember(o *hujson.Object, name string) {
	i := memberIndex(o, name)
	if i < 0 {
		return // another object has the same key
	}
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

// follow joins comments and rest. After a line comment it inserts a newline unless rest
// begins with one.
func follow(comments []byte, rest hujson.Extra) hujson.Extra {
	if bytes.Contains(comments, []byte("//")) && !bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r"), []byte("\n")) {
		comments = append(bytes.Clone(comments), '\n')
	}
	return append(bytes.Clone(comments), rest...)
}
