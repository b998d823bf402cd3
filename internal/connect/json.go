package connect

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/tailscale/hujson"
)

// mergeJSON sets old.section.name. Comments, order and layout stay.
func mergeJSON(path string, old []byte, section, name string, e Entry, force bool) ([]byte, error) {
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
	if err != nil {
		return nil, unsuitable("it is not a JSON object")
	}
	unit := indentOf(body)
	servers, err := object(&doc)
	if err != nil {
		return nil, unsuitable("it is not a JSON object")
	}
	at := member(servers, section)
	if at == nil {
		appendMember(servers, section, hujson.Value{Value: &hujson.Object{}}, unit, "")
		at = member(servers, section)
	}
	list, err := object(at)
	if err != nil {
		return nil, unsuitable(section + " in it is not an object")
	}
	value, err := hujson.Parse(indented(e, unit))
	if err != nil {
		return nil, err // unreachable: it has just been written
	}
	value.BeforeExtra = hujson.Extra(" ")
	if have := member(list, name); have == nil {
		appendMember(list, name, value, unit+unit, unit)
	} else {
		var was any
		standard := have.Clone()
		standard.Standardize()
		if err := json.Unmarshal(standard.Pack(), &was); err != nil {
			return nil, unsuitable(name + " in it cannot be read")
		}
		if sameEntry(was, e) {
			return old, nil
		}
		if !force {
			return nil, &ConflictError{name, path}
		}
		have.Value = value.Value
	}
	out := doc.Pack()
	// Check the meaning, whatever the layout was.
	after, err := plainJSON(doc)
	if err != nil || !changedOnly(before, after, section, name) || !sameEntry(under(after, section, name), e) {
		return nil, unsuitable("its layout is not understood (a key may be there twice)")
	}
	if mark {
		out = append([]byte("\ufeff"), out...)
	}
	return out, nil
}

func object(v *hujson.Value) (*hujson.Object, error) {
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, &json.UnmarshalTypeError{Value: "value"}
	}
	return o, nil
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
	m, ok := have.(map[string]any)
	if !ok || m["command"] != e.Command || e.Type != "" && m["type"] != nil && m["type"] != e.Type {
		return false
	}
	args, _ := m["args"].([]any)
	if len(args) != len(e.Args) {
		return false
	}
	for i := range args {
		if args[i] != e.Args[i] {
			return false
		}
	}
	return true
}
