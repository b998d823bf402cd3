// Package jsonedit changes members of objects in JSON files, which may have comments, and keeps
// every other byte.
package jsonedit

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// Set returns a file whose top-level object has a member of that name with a value; nil removes
// it. It fails if the file is not JSON, or has the name twice.
func Set(old []byte, name string, value any) ([]byte, error) {
	doc, err := Parse(bytes.Clone(old))
	if err != nil {
		return nil, err
	}
	top, ok := doc.Value.(*hujson.Object)
	if !ok {
		return nil, errors.New("it is not a JSON object")
	}
	if have := Member(top, name); value == nil {
		Remove(top, name)
	} else {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		made, _ := hujson.Parse(text) // never fails: it is JSON
		if have != nil {
			have.Value = made.Value
		} else {
			Append(top, name, made, Indent(old), "")
		}
	}
	out := Pack(old, doc)
	var got, want map[string]any
	if json.Unmarshal(standard(old), &want) != nil || json.Unmarshal(standard(out), &got) != nil {
		return nil, errors.New("it is not a JSON object")
	}
	if delete(want, name); value != nil {
		want[name] = value
	}
	if !reflect.DeepEqual(got, want) {
		return nil, errors.New("a key in it occurs twice")
	}
	return out, nil
}

// standard returns a file without comments.
func standard(text []byte) []byte {
	doc, err := Parse(bytes.Clone(text))
	if err != nil {
		return nil
	}
	doc.Standardize()
	return doc.Pack()
}

// byteOrderMark begins some files of Windows.
var byteOrderMark = []byte("\ufeff")

// Parse returns the value in a file, which may be blank.
func Parse(text []byte) (hujson.Value, error) {
	text = bytes.TrimPrefix(text, byteOrderMark)
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	return hujson.Parse(text)
}

// Pack returns the new content of the file old.
func Pack(old []byte, doc hujson.Value) []byte {
	if bytes.HasPrefix(old, byteOrderMark) {
		return append(bytes.Clone(byteOrderMark), doc.Pack()...)
	}
	return doc.Pack()
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

// Member returns the value of the member of that name, nil if there is none.
func Member(o *hujson.Object, name string) *hujson.Value {
	i := memberIndex(o, name)
	if i < 0 {
		return nil
	}
	return &o.Members[i].Value
}

// Append appends a member on a new line, after any comments at the end of the object.
func Append(o *hujson.Object, name string, value hujson.Value, indent, closing string) {
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

// Indent returns the indentation of the first indented line of a file.
func Indent(text []byte) string {
	for line := range bytes.Lines(text) {
		if rest := bytes.TrimLeft(line, " \t"); len(rest) < len(line) && len(bytes.TrimSpace(rest)) > 0 {
			return string(line[:len(line)-len(rest)])
		}
	}
	return "  "
}

// Remove removes a member and keeps the comments before it.
func Remove(o *hujson.Object, name string) {
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
