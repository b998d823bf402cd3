// Package usage counts which tools and documents are used together for which
// intent. It does not rank: it gives callers a graphrank.Graph and the list of
// intents.
//
// A tool's node is its catalogue id, a document's node "doc:" and its path
// (DocumentID), so one graph serves both. The whole graph is in memory. Every
// write is one transaction of a records.Store, which is durable before the call
// returns; concurrent writes share one.
//
// # Decay
//
// Every edge is stored with its count and the time of its last observation;
// between two times t1 and t2 a count shrinks by 2^(−(t2−t1)/half-life). A read
// computes the decay, so no record is rewritten as time passes.
// An edge below graphrank.MinCount is dead: it is not part of the graph, and
// the first write of a day removes its record.
//
// # Format, version 3
//
//	bucket "edges"    from 0x00 to -> type (1 byte), source, with weakBit (1 byte), count (8 bytes,
//	                  float64), last observation (8 bytes, Unix seconds), observations
//	                  (4 bytes); all little-endian
//	bucket "intents"  first 16 bytes of a SHA-256 of the normalised intent and its
//	                  sorted tools -> see appendIntent
//	bucket "usage"    "version" -> the version of the format, 8 bytes, little-endian
//
// Version 2 kept counters in bucket "usage", version 1 had neither weak edges nor weak
// intents. Open reads both.
package usage

import (
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
	"cairn/internal/records"
)

const (
	version       = 3
	edgesBucket   = "edges"
	intentsBucket = "intents"
	metaBucket    = "usage"
	versionKey    = "version"
)

// Buckets are the buckets of a records.Store that hold a Store.
func Buckets() []string { return []string{edgesBucket, intentsBucket, metaBucket} }

// DefaultHalfLife is the time in which the count of an edge that is not observed
// again halves.
const DefaultHalfLife = 90 * 24 * time.Hour

// DefaultMaxIntents bounds the memory of intents.
const DefaultMaxIntents = 50_000

// refresh is how old the counts in memory may be, and how often dead edges are
// removed.
const refresh = 24 * time.Hour

// Options are the knobs of Open. Nil and the zero value mean the defaults.
type Options struct {
	// HalfLife of counts; 0 means DefaultHalfLife, negative no decay.
	HalfLife time.Duration
	// MaxIntents are kept; beyond, those observed longest ago are removed. 0 means
	// DefaultMaxIntents.
	MaxIntents int
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Logger receives a warning for each damaged edge or intent. Nil is silent.
	Logger *slog.Logger
}

// FormatError is returned for records of a later version. They are not changed.
type FormatError struct{ Have, Want uint64 }

func (e *FormatError) Error() string {
	return fmt.Sprintf("the usage graph has format %d and this cairn reads format %d", e.Have, e.Want)
}

// pair is the ends of an edge: from, to.
type pair [2]string

// Store is the graph and the memory of intents. It is safe for concurrent use, and
// sees what other processes write to a shared records.Store.
type Store struct {
	records records.Store
	o       Options

	queue   sync.Mutex // guards pending
	pending []*pendingWrite
	commit  sync.Mutex // held during a write

	mu         sync.RWMutex // guards the fields below
	generation uint64
	version    uint64            // of the records; 0 when there are none
	edges      map[pair]edge     // counts as of their last observation
	intents    map[string]Intent // by key
	graph      *graphrank.Graph  // of the edges that count; nil before the first load
	decayed    time.Time         // the time of the counts in graph
	swept      time.Time
	listed     []Intent // the result of Intents; nil when a write has changed it
	history    history
}

// Open loads the graph without damaged edges and intents. The records stay the
// caller's to close.
func Open(r records.Store, o *Options) (*Store, error) {
	s := &Store{records: r}
	if o != nil {
		s.o = *o
	}
	if s.o.HalfLife == 0 {
		s.o.HalfLife = DefaultHalfLife
	}
	if s.o.MaxIntents <= 0 {
		s.o.MaxIntents = DefaultMaxIntents
	}
	if s.o.Now == nil {
		s.o.Now = time.Now
	}
	if s.o.Logger == nil {
		s.o.Logger = slog.New(slog.DiscardHandler)
	}
	return s, s.load()
}

// load updates memory when other processes have written or the counts have
// decayed for a day.
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

// apply installs changes of the records in memory.
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
		d := delta{whole: c.Whole || s.graph == nil}
		if err := d.read(c.Records, s.o.Logger); err != nil {
			return err
		}
		s.install(d, c.Generation, now)
	}
	if now.Sub(s.decayed) >= refresh {
		s.makeGraph(now)
	}
	return nil
}

// makeGraph builds the graph from the edges with their counts as of now. s.mu is held.
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

// Read calls fn with the graph as it is now. fn must neither change the graph
// nor keep it, and must not call the store.
func (s *Store) Read(fn func(*graphrank.Graph) error) error {
	if err := s.load(); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return fn(s.graph)
}

// Generation grows with every write; 0 is a graph that was never written.
func (s *Store) Generation() (uint64, error) {
	if err := s.load(); err != nil {
		return 0, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.generation, nil
}

// delta is a change of edges and intents: a nil value removes its key.
type delta struct {
	whole   bool // the delta replaces everything
	edges   map[pair]*edge
	intents map[string]*Intent
	version uint64 // 0 leaves it
}

func newDelta() delta {
	return delta{edges: map[pair]*edge{}, intents: map[string]*Intent{}}
}

// read decodes records. It removes a damaged edge or intent from memory, with a
// warning; its record remains.
func (d *delta) read(list []records.Record, log *slog.Logger) error {
	whole := d.whole
	*d = newDelta()
	d.whole = whole
	for _, r := range list {
		switch {
		case r.Bucket == edgesBucket:
			p, e, err := decodeEdge(r.Key, r.Value)
			if err != nil {
				log.Warn("reading an edge", "error", err)
				d.edges[p] = nil
				continue
			}
			d.edges[p] = e
		case r.Bucket == intentsBucket && r.Value == nil:
			d.intents[r.Key] = nil
		case r.Bucket == intentsBucket:
			m, err := decodeIntent(r.Value)
			if err != nil {
				log.Warn("reading an intent", "key", fmt.Sprintf("%x", r.Key), "error", err)
				d.intents[r.Key] = nil
				continue
			}
			d.intents[r.Key] = &m
		case r.Key == versionKey && len(r.Value) == 8:
			d.version = binary.LittleEndian.Uint64(r.Value)
		}
	}
	if d.version > version {
		return &FormatError{d.version, version}
	}
	return nil
}

// list encodes a delta.
func (d *delta) list() []records.Record {
	var list []records.Record
	for p, e := range d.edges {
		r := records.Record{Bucket: edgesBucket, Key: strings.Join(p[:], "\x00")}
		if e != nil {
			r.Value = e.encode()
		}
		list = append(list, r)
	}
	for key, m := range d.intents {
		r := records.Record{Bucket: intentsBucket, Key: key}
		if m != nil {
			r.Value = appendIntent(nil, m)
		}
		list = append(list, r)
	}
	if d.version > 0 {
		list = append(list, records.Record{Bucket: metaBucket, Key: versionKey, Value: binary.LittleEndian.AppendUint64(nil, d.version)})
	}
	return list
}

// install applies a delta to memory, as of a generation. s.mu is held.
func (s *Store) install(d delta, generation uint64, now time.Time) {
	var c Changes
	rewritten := d.whole
	if d.whole {
		s.edges, s.intents, s.version = map[pair]edge{}, map[string]Intent{}, 0
	}
	s.generation = generation
	s.version = max(s.version, d.version)
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
			rewritten = rewritten || !old.sameUse(m)
		}
		if counted || m != nil && !m.Weak {
			s.listed = nil
		}
	}
	if rewritten {
		s.listed = nil
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
