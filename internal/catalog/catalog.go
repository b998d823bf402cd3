package catalog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"cairn/internal/kv"
)

// DB is where a catalogue is kept. *kv.DB is one; so is a file that is opened
// for writing only while it is written, which many processes can share. View
// may return nil without calling its function when nothing was ever stored.
type DB interface {
	View(func(*kv.Tx) error) error
	Update(func(*kv.Tx) error) error
}

// Buckets, version 1. A tool of two sources is stored twice; what was
// imported last is what the catalogue shows.
const (
	toolsBucket   = "tools"   // id 0x00 source -> import number (8 bytes, big endian), record
	sourcesBucket = "sources" // source -> import number (8 bytes, big endian)
	metaBucket    = "catalog" // "generation" -> 8 bytes, big endian
)

var generationKey = []byte("generation")

// maxSource bounds a source's name in bytes.
const maxSource = 1000

// Catalog is the tools of all imports. It is safe for concurrent use, and sees
// what other processes write.
type Catalog struct {
	db DB

	mu     sync.Mutex
	loaded *snapshot
}

// snapshot is the catalogue at one generation; it never changes.
type snapshot struct {
	generation uint64
	tools      []Tool           // sorted by ID
	byName     map[string][]int // bare name -> positions
}

// Open reads the catalogue in db, which stays the caller's to close.
func Open(db DB) (*Catalog, error) {
	c := &Catalog{db: db}
	_, err := c.snapshot()
	return c, err
}

// Diff is what an import changed, as sorted ids of that source's tools.
type Diff struct {
	Added     []string `json:"added"`
	Changed   []string `json:"changed"`
	Removed   []string `json:"removed"`
	Unchanged int      `json:"unchanged"`
}

// Import makes the tools the whole of what a source gives: those it gave before
// and gives no more leave it, and the catalogue unless another source has them
// too. It is one transaction: after a crash it happened or did not. Tools come
// from New; of two with one ID the later counts.
func (c *Catalog) Import(source string, tools []Tool) (Diff, error) {
	if source == "" || len(source) > maxSource || hasControl(source) {
		return Diff{}, fmt.Errorf("source %.40q: want 1 to %d bytes of text", source, maxSource)
	}
	byID := make(map[string]*Tool, len(tools))
	for i := range tools {
		byID[tools[i].ID] = &tools[i]
	}
	var d Diff
	err := c.db.Update(func(tx *kv.Tx) error {
		d = Diff{Added: []string{}, Changed: []string{}, Removed: []string{}}
		b, err := tx.Bucket(toolsBucket)
		if err != nil {
			return err
		}
		number, err := b.NextSequence()
		if err != nil {
			return err
		}
		stamp := binary.BigEndian.AppendUint64(nil, number)
		var old []string
		b.ForEach(func(key, _ []byte) bool {
			if id, s := splitKey(key); s == source && byID[id] == nil {
				old = append(old, id)
			}
			return true
		})
		for _, id := range slices.Sorted(maps.Keys(byID)) {
			key, value := toolKey(id, source), appendTool(slices.Clone(stamp), byID[id])
			switch before := b.Get(key); {
			case before == nil:
				d.Added = append(d.Added, id)
			case len(before) < 8 || !bytes.Equal(before[8:], value[8:]):
				d.Changed = append(d.Changed, id)
			default:
				d.Unchanged++
				continue
			}
			if err := b.Put(key, value); err != nil {
				return err
			}
		}
		for _, id := range old {
			if err := b.Delete(toolKey(id, source)); err != nil {
				return err
			}
			d.Removed = append(d.Removed, id)
		}
		sources, err := tx.Bucket(sourcesBucket)
		if err != nil {
			return err
		}
		if len(byID) == 0 {
			err = sources.Delete([]byte(source))
		} else {
			err = sources.Put([]byte(source), stamp)
		}
		if err != nil || len(d.Added)+len(d.Changed)+len(d.Removed) == 0 {
			return err
		}
		return advance(tx)
	})
	if err != nil {
		return Diff{}, fmt.Errorf("importing %s: %w", source, err)
	}
	return d, nil
}

// Forget removes a source with the tools that only it gives, and returns their
// ids. An unknown source is an error that names the known ones.
func (c *Catalog) Forget(source string) ([]string, error) {
	known, err := c.Sources()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(known, source) {
		return nil, fmt.Errorf("unknown source %q, want {%s}", source, strings.Join(known, ","))
	}
	d, err := c.Import(source, nil)
	return d.Removed, err
}

// Sources are the names of what was imported, sorted.
func (c *Catalog) Sources() ([]string, error) {
	names := []string{}
	err := c.db.View(func(tx *kv.Tx) error {
		names = names[:0]
		b, err := tx.Bucket(sourcesBucket)
		if err != nil {
			return err
		}
		b.ForEach(func(key, _ []byte) bool {
			names = append(names, string(key))
			return true
		})
		return nil
	})
	return names, err
}

// Generation grows with every import that changed something; 0 is a
// catalogue into which nothing was ever imported.
func (c *Catalog) Generation() (uint64, error) {
	var g uint64
	err := c.db.View(func(tx *kv.Tx) (err error) {
		g, err = generation(tx)
		return err
	})
	return g, err
}

// Tools are all tools, sorted by ID. The slice is shared: read only.
func (c *Catalog) Tools() ([]Tool, error) {
	s, err := c.snapshot()
	if err != nil {
		return nil, err
	}
	return s.tools, nil
}

// Get returns the tool of an ID.
func (c *Catalog) Get(id string) (Tool, bool, error) {
	s, err := c.snapshot()
	if err != nil {
		return Tool{}, false, err
	}
	if i, ok := s.find(id); ok {
		return s.tools[i], true, nil
	}
	return Tool{}, false, nil
}

// snapshot is the catalogue as it is now, read anew when it has changed.
func (c *Catalog) snapshot() (*snapshot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := &snapshot{}
	err := c.db.View(func(tx *kv.Tx) error {
		g, err := generation(tx)
		if err != nil {
			return err
		}
		if c.loaded != nil && c.loaded.generation == g {
			next = c.loaded
			return nil
		}
		next = &snapshot{generation: g}
		return next.load(tx)
	})
	if err != nil {
		return nil, fmt.Errorf("reading the catalogue: %w", err)
	}
	c.loaded = next
	return next, nil
}

// load reads every tool. Keys of one id follow each other: of several sources
// the one with the highest import number counts.
func (s *snapshot) load(tx *kv.Tx) error {
	b, err := tx.Bucket(toolsBucket)
	if err != nil {
		return err
	}
	newest := uint64(0)
	b.ForEach(func(key, value []byte) bool {
		if len(value) < 8 {
			err = errRecord
			return false
		}
		id, _ := splitKey(key)
		number := binary.BigEndian.Uint64(value)
		same := len(s.tools) > 0 && s.tools[len(s.tools)-1].ID == id
		if same && number < newest {
			return true
		}
		var t Tool
		if t, err = decodeTool(value[8:]); err != nil {
			err = fmt.Errorf("tool %q: %w", id, err)
			return false
		}
		if newest = number; same {
			s.tools[len(s.tools)-1] = t
		} else {
			s.tools = append(s.tools, t)
		}
		return true
	})
	if err != nil {
		return err
	}
	s.byName = make(map[string][]int, len(s.tools))
	for i := range s.tools {
		name := bareName(&s.tools[i])
		s.byName[name] = append(s.byName[name], i)
	}
	return nil
}

func (s *snapshot) find(id string) (int, bool) {
	return slices.BinarySearchFunc(s.tools, id, func(t Tool, id string) int { return strings.Compare(t.ID, id) })
}

// bareName is the tool's name without its server's.
func bareName(t *Tool) string { return strings.TrimPrefix(t.ID, t.Server+":") }

func toolKey(id, source string) []byte { return []byte(id + "\x00" + source) }

func splitKey(key []byte) (id, source string) {
	a, b, _ := bytes.Cut(key, []byte{0})
	return string(a), string(b)
}

func generation(tx *kv.Tx) (uint64, error) {
	b, err := tx.Bucket(metaBucket)
	if err != nil {
		return 0, err
	}
	if v := b.Get(generationKey); len(v) == 8 {
		return binary.BigEndian.Uint64(v), nil
	}
	return 0, nil
}

func advance(tx *kv.Tx) error {
	g, err := generation(tx)
	if err != nil {
		return err
	}
	b, err := tx.Bucket(metaBucket)
	if err != nil {
		return err
	}
	return b.Put(generationKey, binary.BigEndian.AppendUint64(nil, g+1))
}

// CopyTo makes the catalogue that of another database too: all its sources take
// the place of what is there. An empty catalogue is not copied.
func (c *Catalog) CopyTo(other *Catalog) error {
	var tools, sources []kv.Entry
	err := c.db.View(func(tx *kv.Tx) (err error) {
		if tools, err = tx.Entries(toolsBucket); err == nil {
			sources, err = tx.Entries(sourcesBucket)
		}
		return err
	})
	if err != nil || len(sources) == 0 {
		return err
	}
	// Import numbers say which of two sources counts. They go along, and the
	// next one has to be larger than all.
	newest := uint64(0)
	for _, e := range append(slices.Clone(tools), sources...) {
		if len(e.Value) < 8 {
			return errRecord
		}
		newest = max(newest, binary.BigEndian.Uint64(e.Value))
	}
	return other.db.Update(func(tx *kv.Tx) error {
		if err := errors.Join(tx.Replace(toolsBucket, tools), tx.Replace(sourcesBucket, sources)); err != nil {
			return err
		}
		b, err := tx.Bucket(toolsBucket)
		if err != nil {
			return err
		}
		for number := uint64(0); number < newest; {
			if number, err = b.NextSequence(); err != nil {
				return err
			}
		}
		return advance(tx)
	})
}
