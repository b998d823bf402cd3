package catalog

import (
	"encoding/binary"
	"errors"
	"slices"

	"cairn/internal/base/packed"
)

// The format of a stored tool, version 1:
//
//	byte     version
//	string   server, name, title, description
//	string   input schema, output schema, annotations; empty means none
//	list     tools that it depends on
//	string   error of a schema
//	list     flags: kind, evidence
//	list     takes, then list gives: a byte (1 required, 2 settled), name,
//	         path, list of types, description
//
// A string is its length in bytes as an unsigned varint, then the bytes. A list is its
// length as an unsigned varint, then its entries. Parameters are stored because reading them
// from a schema takes a hundred times as long.
const recordVersion = 1

var errRecord = errors.New("a stored tool is damaged or of another version")

func appendTool(b []byte, t *Tool) []byte {
	b = append(b, recordVersion)
	for _, s := range []string{t.Server, t.Name, t.Title, t.Description, string(t.Input), string(t.Output), string(t.Annotations)} {
		b = packed.AppendText(b, s)
	}
	b = packed.AppendText(packed.AppendList(b, t.DependsOn), t.SchemaError)
	b = packed.AppendNumber(b, len(t.Flags))
	for _, f := range t.Flags {
		b = packed.AppendText(packed.AppendText(b, f.Kind), f.Evidence)
	}
	for _, list := range [][]Parameter{t.Takes, t.Gives} {
		b = packed.AppendNumber(b, len(list))
		for _, p := range list {
			var bits byte
			if p.Required {
				bits |= 1
			}
			if p.Settled {
				bits |= 2
			}
			b = packed.AppendText(packed.AppendText(append(b, bits), p.Name), p.Path)
			b = packed.AppendText(packed.AppendList(b, p.Types), p.Description)
		}
	}
	return b
}

// record decodes the output of appendTool. Its strings share memory.
type record struct{ packed.Reader }

func (r *record) parameters() []Parameter {
	n := r.Length(1)
	if n == 0 {
		return nil
	}
	list := make([]Parameter, n)
	for i := range list {
		bits := r.Byte()
		p := &list[i]
		p.Required, p.Settled = bits&1 != 0, bits&2 != 0
		p.Name, p.Path = r.Text(), r.Text()
		p.Types, p.Description = shared(r.List()), r.Text()
		if r.Bad {
			return nil
		}
	}
	return list
}

// shared returns a list of types, or an equal list that other parameters have.
func shared(types []string) []string {
	for _, list := range single {
		if slices.Equal(list, types) {
			return list
		}
	}
	return types
}

var single = [][]string{{"string"}, {"integer"}, {"number"}, {"boolean"}, {"array"}, {"object"}}

// decodeTool decodes the number of an import and the output of appendTool.
func decodeTool(value []byte) (storedTool, error) {
	r := &record{packed.Reader{Rest: string(value)}}
	number := r.Take(8)
	if r.Byte() != recordVersion {
		return storedTool{}, errRecord
	}
	raw := func() []byte {
		if s := r.Text(); s != "" {
			return []byte(s)
		}
		return nil
	}
	t := Tool{Server: r.Text(), Name: r.Text(), Title: r.Text(), Description: r.Text(), Input: raw(), Output: raw(), Annotations: raw()}
	t.ID = MakeID(t.Server, t.Name)
	t.DependsOn, t.SchemaError = r.List(), r.Text()
	for range r.Length(1) {
		t.Flags = append(t.Flags, Flag{Kind: r.Text(), Evidence: r.Text()})
	}
	t.Takes, t.Gives = r.parameters(), r.parameters()
	if !r.Done() {
		return storedTool{}, errRecord
	}
	return storedTool{binary.BigEndian.Uint64([]byte(number)), &t}, nil
}
