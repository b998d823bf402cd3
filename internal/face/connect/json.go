package connect

import (
	"bytes"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"cairn/internal/text/jsonedit"
)

// setJSON is Client.set for an object in a file that parse has read.
func (c Client) setJSON(path string, old []byte, name string, entry []byte) ([]byte, error) {
	doc, _ := jsonedit.Parse(old) // never fails: parse has read it
	unit, top := jsonedit.Indent(old), doc.Value.(*hujson.Object)
	at := jsonedit.Member(top, c.section)
	if at == nil {
		jsonedit.Append(top, c.section, hujson.Value{Value: &hujson.Object{}}, unit, "")
		at = jsonedit.Member(top, c.section)
	}
	list, ok := at.Value.(*hujson.Object)
	if !ok {
		return nil, &UnsuitableError{path, c.section + " in it is not an object"}
	}
	if entry == nil {
		jsonedit.Remove(list, name)
		return jsonedit.Pack(old, doc), nil
	}
	value, _ := hujson.Parse(entry) // never fails: entries are JSON
	if have := jsonedit.Member(list, name); have != nil {
		have.Value = value.Value
	} else {
		value.BeforeExtra = hujson.Extra(" ")
		jsonedit.Append(list, name, value, unit+unit, unit)
	}
	return jsonedit.Pack(old, doc), nil
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
	doc, _ := jsonedit.Parse(old) // never fails: set has read it
	top := doc.Value.(*hujson.Object)
	at := jsonedit.Member(top, c.section)
	if at == nil {
		return old, nil
	}
	list, ok := at.Value.(*hujson.Object)
	if !ok || len(list.Members) > 0 || len(bytes.TrimSpace(list.AfterExtra)) > 0 {
		return old, nil
	}
	jsonedit.Remove(top, c.section)
	return c.checked(path, old, jsonedit.Pack(old, doc), "", nil)
}
