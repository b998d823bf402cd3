package catalog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"cairn/internal/base/packed"
	"cairn/internal/toolbox/records"
)

// Buckets, version 1. A tool of two sources is stored twice. The catalogue has the one
// imported last.
const (
	toolsBucket   = "tools"   // ID 0x00 source -> import number (8 bytes, big endian), record
	sourcesBucket = "sources" // source -> import number (8 bytes, big endian)
)

// Buckets returns the names of the buckets of a records.Store that hold a catalogue.
func Buckets() []string { return []string{sourcesBucket, toolsBucket} }

// maxSource bounds a source's name in bytes.
const maxSource = 1000

// Catalog holds the tools of all imports. It is safe for concurrent use. It includes the
// imports of other processes that share the records.Store.
type Catalog struct {
	records records.Store

	mu     sync.Mutex
	loaded *Snapshot
}

// Snapshot is the catalogue at one generation. It is immutable.
type Snapshot struct {
	// Generation grows with every import that changes the catalogue. It is 0 before the first.
	Generation uint64
	Tools      []Tool   // sorted by ID
	Sources    []string // names of the imported sources, sorted

	stored map[string]storedTool // by key
	byName map[string][]int      // positions in Tools, by bare name
}

// storedTool is a tool of one source.
type storedTool struct {
	number uint64 // of the import
	tool   *Tool
}

// Open reads the catalogue. The caller closes r.
func Open(r records.Store) (*Catalog, error) {
	c := &Catalog{records: r, loaded: &Snapshot{Sources: []string{}}}
	_, err := c.Snapshot()
	return c, err
}

// Diff lists the changes of an import as sorted IDs of the source's tools.
type Diff struct {
	Added     []string `json:"added"`
	Changed   []string `json:"changed"`
	Removed   []string `json:"removed"`
	Unchanged int      `json:"unchanged"`
}

// Import replaces the tools of a source in one transaction. It removes a tool that the
// source no longer has, unless another source has it. The tools must be results of New. If
// two have the same ID, Import uses the later one.
func (c *Catalog) Import(source string, tools []Tool) (Diff, error) {
	if source == "" || len(source) > maxSource || hasControl(source) {
		return Diff{}, fmt.Errorf("source %.40q: want 1 to %d bytes of text", source, maxSource)
	}
	byID := make(map[string]*Tool, len(tools))
	for i := range tools {
		byID[tools[i].ID] = &tools[i]
	}
	var d Diff
	// Compare encoded records, so that a large catalogue is not in memory twice.
	_, err := c.records.Update(context.Background(), 0, func(stored records.Changes) ([]records.Record, error) {
		var list []records.Record
		d, list = replace(stored.Records, source, byID)
		return list, nil
	})
	if err != nil {
		return Diff{}, fmt.Errorf("importing %s: %w", source, err)
	}
	return d, nil
}

// replace returns the records that replace the tools of a source, none if there is no
// change.
func replace(stored []records.Record, source string, byID map[string]*Tool) (Diff, []records.Record) {
	d := Diff{Added: []string{}, Changed: []string{}, Removed: []string{}}
	number, known := uint64(1), false
	before := map[string][]byte{} // tools of the source, by ID
	for _, r := range stored {
		if len(r.Value) < 8 {
			continue // as in decodeTool
		}
		number = max(number, binary.BigEndian.Uint64(r.Value)+1)
		if r.Bucket == sourcesBucket {
			known = known || r.Key == source
		} else if id, from, _ := strings.Cut(r.Key, "\x00"); from == source {
			before[id] = r.Value[8:]
			if byID[id] == nil {
				d.Removed = append(d.Removed, id)
			}
		}
	}
	slices.Sort(d.Removed)
	var list []records.Record
	for _, id := range d.Removed {
		list = append(list, records.Record{Bucket: toolsBucket, Key: toolKey(id, source)})
	}
	stamp := binary.BigEndian.AppendUint64(nil, number)
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		value := appendTool(slices.Clone(stamp), byID[id])
		switch old, ok := before[id]; {
		case !ok:
			d.Added = append(d.Added, id)
		case !bytes.Equal(old, value[8:]):
			d.Changed = append(d.Changed, id)
		default:
			d.Unchanged++
			continue
		}
		list = append(list, records.Record{Bucket: toolsBucket, Key: toolKey(id, source), Value: slices.Clip(value)})
	}
	if len(list) == 0 && known == (len(byID) > 0) {
		return d, nil
	}
	if len(byID) == 0 {
		stamp = nil
	}
	return d, append(list, records.Record{Bucket: sourcesBucket, Key: source, Value: stamp})
}

// All returns the tools of each source, sorted. It includes tools that a tool of another
// source hides.
func (s *Snapshot) All() iter.Seq2[string, Tool] {
	return func(yield func(source string, t Tool) bool) {
		for _, key := range slices.Sorted(maps.Keys(s.stored)) {
			if _, source, _ := strings.Cut(key, "\x00"); !yield(source, *s.stored[key].tool) {
				return
			}
		}
	}
}

// Forget removes a source and its tools, and returns their IDs. It keeps tools of other
// sources. The error for an unknown source lists the known ones.
func (c *Catalog) Forget(source string) ([]string, error) {
	s, err := c.Snapshot()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(s.Sources, source) {
		return nil, fmt.Errorf("unknown source %q, want {%s}", source, strings.Join(s.Sources, ","))
	}
	d, err := c.Import(source, nil)
	return d.Removed, err
}

// Snapshot returns the current catalogue.
func (c *Catalog) Snapshot() (*Snapshot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changes, err := c.records.Since(context.Background(), c.loaded.Generation)
	if err == nil && changes.Generation > c.loaded.Generation {
		c.loaded = c.loaded.apply(changes)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the catalogue: %w", err)
	}
	return c.loaded, nil
}

// apply returns the catalogue after changes. If several sources have a tool, the one with
// the highest import number is used.
func (s *Snapshot) apply(c records.Changes) *Snapshot {
	next := &Snapshot{Generation: c.Generation, stored: map[string]storedTool{}}
	sources := map[string]bool{}
	if !c.Whole {
		maps.Copy(next.stored, s.stored)
		for _, name := range s.Sources {
			sources[name] = true
		}
	}
	for _, r := range c.Records {
		switch t, err := decodeTool(r.Value); {
		case r.Bucket == sourcesBucket:
			sources[r.Key] = r.Value != nil
		case r.Value == nil:
			delete(next.stored, r.Key)
		case err == nil: // otherwise damaged, or of another version: the next import replaces it
			next.stored[r.Key] = t
		}
	}
	maps.DeleteFunc(sources, func(_ string, there bool) bool { return !there })
	next.Sources = append([]string{}, slices.Sorted(maps.Keys(sources))...)
	newest := uint64(0)
	for _, key := range slices.Sorted(maps.Keys(next.stored)) {
		t := next.stored[key]
		switch last := len(next.Tools) - 1; {
		case last < 0 || next.Tools[last].ID != t.tool.ID:
			next.Tools, newest = append(next.Tools, *t.tool), t.number
		case t.number >= newest:
			next.Tools[last], newest = *t.tool, t.number
		}
	}
	next.byName = make(map[string][]int, len(next.Tools))
	for i := range next.Tools {
		name := next.Tools[i].BareName()
		next.byName[name] = append(next.byName[name], i)
	}
	return next
}

func toolKey(id, source string) string { return id + "\x00" + source }

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

func readParameters(r *packed.Reader) []Parameter {
	n := r.Length(1)
	list := slices.Grow([]Parameter(nil), n)
	for range n {
		bits := r.Byte()
		list = append(list, Parameter{Required: bits&1 != 0, Settled: bits&2 != 0, Name: r.Text(), Path: r.Text(), Types: shared(r.List()), Description: r.Text()})
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

// decodeTool decodes the number of an import and the output of appendTool. The strings share memory.
func decodeTool(value []byte) (storedTool, error) {
	r := &packed.Reader{Rest: string(value)}
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
	t.Takes, t.Gives = readParameters(r), readParameters(r)
	if !r.Done() {
		return storedTool{}, errRecord
	}
	return storedTool{binary.BigEndian.Uint64([]byte(number)), &t}, nil
}
