package connect

import (
	"bytes"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// byteOrderMark begins some files of Windows.
var byteOrderMark = []byte("\ufeff")

// parseJSON returns the value in a file, which may be blank.
func parseJSON(text []byte) (hujson.Value, error) {
	text = bytes.TrimPrefix(text, byteOrderMark)
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	return hujson.Parse(text)
}

// setJSON is Client.set for an object in a file that parse has read.
func (c Client) setJSON(path string, old []byte, name string, entry []byte) ([]byte, error) {
	doc, err := parseJSON(old)
	if err != nil {
		return nil, err // unreachable
	}
	unit, top := indentOf(old), doc.Value.(*hujson.Object)
	at := member(top, c.section)
	if at == nil {
		appendMember(top, c.section, hujson.Value{Value: &hujson.Object{}}, unit, "")
		at = member(top, c.section)
	}
	list, ok := at.Value.(*hujson.Object)
	if !ok {
		return nil, &UnsuitableError{path, c.section + " in it is not an object"}
	}
	if entry == nil {
		removeMember(list, name)
		return packJSON(old, doc), nil
	}
	value, err := hujson.Parse(entry)
	if err != nil {
		return nil, err // unreachable: entries are JSON
	}
	if have := member(list, name); have != nil {
		have.Value = value.Value
	} else {
		value.BeforeExtra = hujson.Extra(" ")
		appendMember(list, name, value, unit+unit, unit)
	}
	return packJSON(old, doc), nil
}

// packJSON returns the new content of a file.
func packJSON(old []byte, doc hujson.Value) []byte {
	if bytes.HasPrefix(old, byteOrderMark) {
		return append(bytes.Clone(byteOrderMark), doc.Pack()...)
	}
	return doc.Pack()
}

// entryJSON returns the text of a server in a file, nil if there is none.
func (c Client) entryJSON(text []byte, name string) []byte {
	doc, err := parseJSON(text)
	if err != nil {
		return nil
	}
	top, _ := doc.Value.(*hujson.Object)
	if at := member(top, c.section); at != nil {
		list, _ := at.Value.(*hujson.Object)
		if have := member(list, name); have != nil {
			return (&hujson.Value{Value: have.Value}).Pack()
		}
	}
	return nil
}

// memberIndex returns the index of the member of that name, -1 if there is none.
func memberIndex(o *hujson.Object, name string) int {
	if o == nil {
		return -1
	}
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

// indentOf returns the indentation of the first indented line of a file.
func indentOf(text []byte) string {
	for line := range bytes.Lines(text) {
		if rest := bytes.TrimLeft(line, " \t"); len(rest) < len(line) && len(bytes.TrimSpace(rest)) > 0 {
			return string(line[:len(line)-len(rest)])
		}
	}
	return "  "
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

// withoutEmpty returns a file without the section of the servers if it is empty.
func (c Client) withoutEmpty(path string, old []byte) ([]byte, error) {
	doc, err := parseJSON(old)
	if err != nil {
		return nil, err // unreachable: set has read it
	}
	top := doc.Value.(*hujson.Object)
	at := member(top, c.section)
	if at == nil {
		return old, nil
	}
	list, ok := at.Value.(*hujson.Object)
	if !ok || len(list.Members) > 0 || len(bytes.TrimSpace(list.AfterExtra)) > 0 {
		return old, nil
	}
	removeMember(top, c.section)
	return c.checked(path, old, packJSON(old, doc), "", nil)
}

// removeMember removes a member and keeps the comments before it.
func removeMember(o *hujson.Object, name string) {
	i := memberIndex(o, name)
	if i < 0 {
		return
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
