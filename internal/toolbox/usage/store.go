// Package usage counts which tools and documents are used together, and for which intents.
// It does not rank: it provides a graphrank.Graph and the list of intents.
//
// The node of a tool is its ID in the catalogue, that of a document "doc:" and its path
// (DocumentID), so that one graph holds both. The whole graph is in memory. Every write is
// one transaction of a records.Store and durable before the call returns.
//
// # Decay
//
// Every edge is stored with its count and the time of its last observation. Between two
// times t1 and t2 the count decays by the factor 2^(−(t2−t1)/half-life). Reads compute the
// decay, so that records need not be rewritten. An edge with a count below
// graphrank.MinCount is dead: it is not part of the graph, and the first write of a day
// removes its record.
//
// # Format, version 3
//
//	bucket "edges"    from 0x00 to -> type (1 byte), source, with weakBit (1 byte), count (8 bytes,
//	                  float64), last observation (8 bytes, Unix seconds), observations
//	                  (4 bytes); all little-endian
//	bucket "intents"  first 16 bytes of a SHA-256 of the normalized intent and its
//	                  sorted tools -> see Intent.encode
//	bucket "examples" ID of a tool -> time (8 bytes, Unix seconds, little-endian), and the
//	                  shortest arguments of a successful call as JSON, with secrets masked
//	bucket "usage"    "version" -> the version of the format, 8 bytes, little-endian
//
// Version 2 had counters in bucket "usage"; version 1 had neither weak edges nor weak
// intents. Open reads both.
package usage

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"cairn/graphrank"
	"cairn/internal/text/secret"
	"cairn/internal/toolbox/records"
)

const (
	version        = 3
	edgesBucket    = "edges"
	intentsBucket  = "intents"
	examplesBucket = "examples"
	metaBucket     = "usage"
	versionKey     = "version"
)

// Buckets returns the names of the buckets of a records.Store that hold a Store.
func Buckets() []string { return []string{edgesBucket, intentsBucket, examplesBucket, metaBucket} }

// DefaultHalfLife is the default of Options.HalfLife.
const DefaultHalfLife = 90 * 24 * time.Hour

// DefaultMaxIntents is the default of Options.MaxIntents.
const DefaultMaxIntents = 50_000

// refresh bounds the age of the counts in memory, and is the interval at which dead edges
// are removed.
const refresh = 24 * time.Hour

// Options configures Open. Nil and the zero value mean the defaults.
type Options struct {
	// HalfLife is the time in which the count of an edge halves without observations. 0
	// means DefaultHalfLife, a negative value no decay.
	HalfLife time.Duration
	// MaxIntents bounds the number of intents. If there are more, the store removes those
	// observed longest ago. 0 means DefaultMaxIntents.
	MaxIntents int
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Logger receives a warning for each damaged edge or intent. Nil discards them.
	Logger *slog.Logger
	// Masks mask the secrets in examples of calls. Nil masks only texts under names such as
	// "password".
	Masks *secret.Masks
}

// pair holds the nodes of an edge: from, to.
type pair [2]string

func (p pair) key() string { return p[0] + "\x00" + p[1] }

func pairOf(key string) pair {
	from, to, _ := strings.Cut(key, "\x00")
	return pair{from, to}
}

// Store holds the graph and the intents. It is safe for concurrent use, and reads the
// writes of other processes to a shared records.Store.
type Store struct {
	records records.Store
	o       Options

	commit sync.Mutex // held during a write

	mu         sync.RWMutex // guards the fields below
	generation uint64
	version    uint64            // of the records; 0 if there are none
	edges      map[pair]edge     // with the counts at their last observation
	intents    map[string]Intent // by key
	examples   map[string]example
	graph      *graphrank.Graph // of the live edges that are not weak; nil before the first load
	decayed    time.Time        // the time of the counts in graph
	swept      time.Time        // the time of the last sweep
	history    history
}

// Open loads the graph and the intents. It skips damaged ones, and fails for records of a later
// version, which it does not change. The caller closes r.
func Open(r records.Store, o *Options) (*Store, error) {
	s := &Store{records: r, o: *cmp.Or(o, &Options{})}
	s.o.HalfLife = cmp.Or(s.o.HalfLife, DefaultHalfLife)
	if s.o.MaxIntents <= 0 {
		s.o.MaxIntents = DefaultMaxIntents
	}
	if s.o.Now == nil {
		s.o.Now = time.Now
	}
	s.o.Logger = cmp.Or(s.o.Logger, slog.New(slog.DiscardHandler))
	return s, s.load()
}

// load updates the data in memory if other processes have written, or if its counts are
// older than refresh.
func (s *Store) load() error {
	s.mu.RLock()
	generation := s.generation
	s.mu.RUnlock()
	c, err := s.records.Since(context.Background(), generation)
	if err == nil {
		err = s.apply(c)
	}
	if err != nil {
		return fmt.Errorf("reading the usage graph: %w", err)
	}
	return nil
}

// apply applies changes of the records to the data in memory.
func (s *Store) apply(c records.Changes) error {
	now := s.o.Now()
	s.mu.RLock()
	current := s.graph != nil && c.Generation <= s.generation && now.Sub(s.decayed) < refresh
	s.mu.RUnlock()
	if current {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.graph == nil || c.Generation > s.generation {
		d, err := readDelta(c.Records, s.o.Logger)
		if err != nil {
			return err
		}
		d.whole = c.Whole || s.graph == nil
		s.install(d, c.Generation, now)
	}
	if now.Sub(s.decayed) >= refresh {
		s.makeGraph(now)
	}
	return nil
}

// makeGraph builds the graph from the edges with their counts at the time now. The caller
// holds s.mu.
func (s *Store) makeGraph(now time.Time) {
	s.graph, s.decayed = &graphrank.Graph{}, now
	for _, p := range slices.SortedFunc(maps.Keys(s.edges), comparePairs) {
		if e := s.edges[p]; !e.weak && s.alive(e, now) {
			s.graph.Set(s.at(p, e, now))
		}
	}
	s.history = history{from: s.generation}
}

func comparePairs(a, b pair) int { return slices.Compare(a[:], b[:]) }

// view calls fn with the current data in memory, which fn must not change.
func (s *Store) view(fn func()) error {
	if err := s.load(); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	fn()
	return nil
}

// Read calls fn with the current graph. fn must neither change nor keep the graph, and must
// not call the store.
func (s *Store) Read(fn func(*graphrank.Graph)) error {
	return s.view(func() { fn(s.graph) })
}

// delta is a change of edges and intents. A nil value removes its key.
type delta struct {
	whole    bool // whether the delta replaces all records
	edges    map[pair]*edge
	intents  map[string]*Intent
	examples map[string]*example
	version  uint64 // 0 means no change
}

func newDelta() delta {
	return delta{edges: map[pair]*edge{}, intents: map[string]*Intent{}, examples: map[string]*example{}}
}

// readDelta decodes records. It logs a warning for a damaged edge, intent or example and removes it
// from memory; its record remains.
func readDelta(list []records.Record, log *slog.Logger) (delta, error) {
	d := newDelta()
	for _, r := range list {
		switch {
		case r.Bucket == edgesBucket && strings.Contains(r.Key, "\x00"):
			readRecord(d.edges, pairOf(r.Key), r, decodeEdge, log)
		case r.Bucket == intentsBucket:
			readRecord(d.intents, r.Key, r, decodeIntent, log)
		case r.Bucket == examplesBucket:
			readRecord(d.examples, r.Key, r, decodeExample, log)
		case r.Key == versionKey && len(r.Value) == 8:
			d.version = binary.LittleEndian.Uint64(r.Value)
		}
	}
	if d.version > version {
		return d, fmt.Errorf("the usage graph has format %d and this cairn reads format %d", d.version, version)
	}
	return d, nil
}

// readRecord sets to[key] to the value of a record: nil if it was removed or is damaged.
func readRecord[K comparable, V any](to map[K]*V, key K, r records.Record, decode func([]byte) (V, error), log *slog.Logger) {
	to[key] = nil
	if r.Value == nil {
		return
	}
	v, err := decode(r.Value)
	if err != nil {
		log.Warn("reading usage", "bucket", r.Bucket, "key", fmt.Sprintf("%.80q", r.Key), "error", err)
		return
	}
	to[key] = &v
}

// list encodes a delta.
func (d *delta) list() []records.Record {
	var list []records.Record
	list = appendRecords(list, edgesBucket, d.edges, pair.key, (*edge).encode)
	list = appendRecords(list, intentsBucket, d.intents, strings.Clone, (*Intent).encode)
	list = appendRecords(list, examplesBucket, d.examples, strings.Clone, (*example).encode)
	if d.version > 0 {
		list = append(list, records.Record{Bucket: metaBucket, Key: versionKey, Value: binary.LittleEndian.AppendUint64(nil, d.version)})
	}
	return list
}

func appendRecords[K comparable, V any](list []records.Record, bucket string, values map[K]*V, name func(K) string, encode func(*V) []byte) []records.Record {
	for key, v := range values {
		r := records.Record{Bucket: bucket, Key: name(key)}
		if v != nil {
			r.Value = encode(v)
		}
		list = append(list, r)
	}
	return list
}

// install applies a delta of a generation to the data in memory. The caller holds s.mu.
func (s *Store) install(d delta, generation uint64, now time.Time) {
	var c Changes
	rewritten := d.whole
	if d.whole {
		s.edges, s.intents, s.examples, s.version = map[pair]edge{}, map[string]Intent{}, map[string]example{}, 0
	}
	s.generation = generation
	s.version = max(s.version, d.version)
	for tool, e := range d.examples {
		if delete(s.examples, tool); e != nil {
			s.examples[tool] = *e
		}
	}
	for p, e := range d.edges {
		if e == nil {
			rewritten = rewritten || !s.edges[p].weak
			delete(s.edges, p)
			continue
		}
		s.edges[p] = *e
		if !e.weak && s.alive(*e, now) {
			c.Edges = append(c.Edges, s.at(p, *e, now))
		}
	}
	for key, m := range d.intents {
		old, known := s.intents[key]
		if m == nil {
			delete(s.intents, key)
		} else {
			s.intents[key] = *m
		}
		counted := known && !old.Weak
		switch {
		case m == nil && counted:
			rewritten = true
		case m == nil || m.Weak:
		case !counted:
			c.Intents = append(c.Intents, *m)
		default:
			rewritten = rewritten || old.Text != m.Text || !slices.Equal(old.Tools, m.Tools) || !slices.Equal(old.Edges, m.Edges)
		}
	}
	if rewritten {
		s.makeGraph(now)
		return
	}
	slices.SortFunc(c.Edges, func(a, b graphrank.Edge) int { return comparePairs(pair{a.From, a.To}, pair{b.From, b.To}) })
	for _, e := range c.Edges {
		s.graph.Set(e)
	}
	c.Generation = generation
	s.history.add(c)
}

// Changes are the edges and intents written since a generation.
type Changes struct {
	Generation uint64
	// Edges holds changed edges with their new counts. A later edge replaces an earlier
	// one between the same nodes.
	Edges []graphrank.Edge
	// Intents holds the new intents.
	Intents []Intent
}

// maxHistory bounds the edges, intents and writes that Since can return.
const maxHistory = 4096

// history holds the last writes.
type history struct {
	from   uint64 // writes holds all writes after this generation
	size   int
	writes []Changes
}

func (h *history) add(c Changes) {
	size := func(c *Changes) int { return 1 + len(c.Edges) + len(c.Intents) }
	h.writes = append(h.writes, c)
	for h.size += size(&c); h.size > maxHistory; h.writes = h.writes[1:] {
		h.from, h.size = h.writes[0].Generation, h.size-size(&h.writes[0])
	}
}

// Since returns the changes after a generation, for a caller that keeps a copy of the graph
// and the intents. ok is false if there were too many changes, or if a write has removed or
// rewritten a record. The caller must then copy everything.
func (s *Store) Since(generation uint64) (c Changes, ok bool, err error) {
	err = s.view(func() {
		c.Generation = s.generation
		ok = generation >= s.history.from && generation <= c.Generation
		for _, w := range s.history.writes {
			if ok && w.Generation > generation {
				c.Edges, c.Intents = append(c.Edges, w.Edges...), append(c.Intents, w.Intents...)
			}
		}
	})
	return c, ok, err
}

// Intents returns all intents, sorted by text, then by tools.
func (s *Store) Intents() (list []Intent, err error) {
	err = s.view(func() {
		for _, m := range s.intents {
			if !m.Weak {
				list = append(list, m)
			}
		}
	})
	slices.SortFunc(list, func(a, b Intent) int {
		return cmp.Or(cmp.Compare(a.Text, b.Text), slices.Compare(a.Tools, b.Tools))
	})
	return list, err
}
