package catalog

import (
	"encoding/binary"
	"errors"
)

// A tool as it is stored, version 1:
//
//	byte     version
//	string   server, name, title, description
//	string   input schema, output schema, annotations; empty means none
//	list     tools it depends on
//	string   error of a schema
//	list     flags: kind, evidence
//	list     takes, then list gives: a byte (1 required, 2 settled), name,
//	         path, list of types, description
//
// A string is its length in bytes as an unsigned varint, then the bytes; a
// list its length as an unsigned varint, then its entries. Parameters are stored because
// reading them from a schema takes a hundred times as long.
const recordVersion = 1

var errRecord = errors.New("a stored tool is damaged or of another version")

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendList(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

func appendTool(b []byte, t *Tool) []byte {
	b = append(b, recordVersion)
	for _, s := range []string{t.Server, t.Name, t.Title, t.Description, string(t.Input), string(t.Output), string(t.Annotations)} {
		b = appendString(b, s)
	}
	b = appendString(appendList(b, t.DependsOn), t.SchemaError)
	b = binary.AppendUvarint(b, uint64(len(t.Flags)))
	for _, f := range t.Flags {
		b = appendString(appendString(b, f.Kind), f.Evidence)
	}
	for _, list := range [][]Parameter{t.Takes, t.Gives} {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, p := range list {
			var bits byte
			if p.Required {
				bits |= 1
			}
			if p.Settled {
				bits |= 2
			}
			b = appendString(appendString(append(b, bits), p.Name), p.Path)
			b = appendString(appendList(b, p.Types), p.Description)
		}
	}
	return b
}

// record decodes the output of appendTool. Its strings share one copy.
type record struct {
	text string
	bad  bool
}

func (r *record) count() int {
	var v uint64
	for i := 0; i < len(r.text) && i < 9; i++ {
		c := r.text[i]
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			r.text = r.text[i+1:]
			if v > uint64(len(r.text)) { // every entry takes a byte at least
				break
			}
			return int(v)
		}
	}
	r.bad, r.text = true, ""
	return 0
}

func (r *record) string() string {
	n := r.count()
	if r.bad {
		return ""
	}
	s := r.text[:n]
	r.text = r.text[n:]
	return s
}

func (r *record) byte() byte {
	if r.text == "" {
		r.bad = true
		return 0
	}
	c := r.text[0]
	r.text = r.text[1:]
	return c
}

func (r *record) list() []string {
	n := r.count()
	if n == 0 {
		return nil
	}
	list := make([]string, 0, n)
	for range n {
		list = append(list, r.string())
	}
	return list
}

func (r *record) parameters() []Parameter {
	n := r.count()
	if n == 0 {
		return nil
	}
	list := make([]Parameter, n)
	for i := range list {
		bits := r.byte()
		p := &list[i]
		p.Required, p.Settled = bits&1 != 0, bits&2 != 0
		p.Name, p.Path = r.string(), r.string()
		p.Types, p.Description = r.types(), r.string()
		if r.bad {
			return nil
		}
	}
	return list
}

// types returns a list of types; common lists are shared.
func (r *record) types() []string {
	if len(r.text) > 1 && r.text[0] == 1 {
		for i, t := range single {
			if n := len(t[0]); len(r.text) > n+1 && int(r.text[1]) == n && r.text[2:n+2] == t[0] {
				r.text = r.text[n+2:]
				return single[i]
			}
		}
	}
	return r.list()
}

var single = [][]string{{"string"}, {"integer"}, {"number"}, {"boolean"}, {"array"}, {"object"}}

func decodeTool(value []byte) (Tool, error) {
	r := &record{text: string(value)}
	if r.byte() != recordVersion {
		return Tool{}, errRecord
	}
	raw := func() []byte {
		if s := r.string(); s != "" {
			return []byte(s)
		}
		return nil
	}
	t := Tool{Server: r.string(), Name: r.string(), Title: r.string(), Description: r.string(), Input: raw(), Output: raw(), Annotations: raw()}
	t.ID = MakeID(t.Server, t.Name)
	t.DependsOn, t.SchemaError = r.list(), r.string()
	for range r.count() {
		t.Flags = append(t.Flags, Flag{Kind: r.string(), Evidence: r.string()})
	}
	t.Takes, t.Gives = r.parameters(), r.parameters()
	if r.bad || r.text != "" {
		return Tool{}, errRecord
	}
	return t, nil
}
