// Package graph keeps what was used together: a graphrank.Graph of tools and
// documents, and the memory of which tools served which intent. It counts what it
// is told, durably, and forgets on request and with time. It ranks nothing.
//
// Tools stand under their catalogue ids, documents under "doc:" and their path
// (DocumentID), so one graph serves both.
//
// # Decay
//
// Every edge is stored with its count and the time of its last sight; between
// two times t1 and t2 a count shrinks by 2^(−(t2−t1)/half-life). The shrinking
// is done when an edge is read, so nothing is rewritten as time passes. An edge
// below graphrank.MinCount is dead: not loaded, and removed from the file by
// the first write of a day.
//
// # Format, version 1
//
//	bucket "edges"    from 0x00 to -> type (1 byte), source (1 byte), count (8 bytes,
//	                  float64), last sight (8 bytes, Unix seconds), sights (4 bytes); all
//	                  little-endian
//	bucket "intents"  first 16 bytes of a SHA-256 of the normalised intent and its
//	                  sorted tools -> see appendIntent
//	bucket "usage"    "version", "generation", "intents", "remembered", "swept" ->
//	                  8 bytes, little-endian: format version, number of the last write,
//	                  number of the last write to intents, number of intents kept,
//	                  Unix seconds of the last removal of dead edges
package graph

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	"cairn/graphrank"
	"cairn/internal/kv"
)

const (
	version       = 1
	edgesBucket   = "edges"
	intentsBucket = "intents"
	metaBucket    = "usage"
)

// DefaultHalfLife is the time in which an unrepeated sight loses half its count.
const DefaultHalfLife = 90 * 24 * time.Hour

// DefaultMaxIntents bounds the memory of intents.
const DefaultMaxIntents = 50_000

// refresh is how old the counts in memory may be, and how often dead edges are removed.
const refresh = 24 * time.Hour

// Options are the knobs of Open. Nil and the zero value mean the defaults.
type Options struct {
	// HalfLife of counts; 0 means DefaultHalfLife, negative no decay.
	HalfLife time.Duration
	// MaxIntents are kept; beyond, those not seen for longest go. 0 means DefaultMaxIntents.
	MaxIntents int
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// DB is where the graph is kept. *kv.DB is one; so is a file that is opened for
// writing only while it is written, which many processes can share. View may
// return nil without calling its function when nothing was ever stored.
type DB interface {
	View(func(*kv.Tx) error) error
	Update(func(*kv.Tx) error) error
}

// FormatError is returned for a file of another version; it is left as it is.
type FormatError struct{ Have, Want uint64 }

func (e *FormatError) Error() string {
	return fmt.Sprintf("the usage graph has format %d and this cairn reads format %d", e.Have, e.Want)
}

// Store is the graph on disk and in memory. It is safe for concurrent use, and
// sees what other processes write.
type Store struct {
	db DB
	o  Options

	queue  sync.Mutex // guards waiting
	waits  []*waiting
	commit sync.Mutex // held during a write

	mu      sync.RWMutex // guards what follows
	graph   *graphrank.Graph
	meta    meta
	loaded  time.Time
	intents []Intent
	intGen  uint64 // generation of intents; 0 before they were read
}

// meta is the bucket of that name.
type meta struct {
	version, generation, intents, remembered, swept uint64
}

// Open loads the graph in db, which stays the caller's to close.
func Open(db DB, o *Options) (*Store, error) {
	s := &Store{db: db}
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
	return s, s.refresh()
}

// Read calls fn with the graph as it is now. fn must neither change the graph
// nor keep it, and must not call the store.
func (s *Store) Read(fn func(*graphrank.Graph) error) error {
	if err := s.refresh(); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return fn(s.graph)
}

// Generation grows with every write; 0 is a graph that was never written.
func (s *Store) Generation() (uint64, error) {
	if err := s.refresh(); err != nil {
		return 0, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.meta.generation, nil
}

// refresh loads the graph when it was never loaded, another process has
// written, or the counts have aged.
func (s *Store) refresh() error {
	now := s.o.Now()
	s.mu.RLock()
	have, known := s.meta.generation, s.graph != nil && now.Sub(s.loaded) < refresh
	s.mu.RUnlock()
	err := s.db.View(func(tx *kv.Tx) error {
		m, err := readMeta(tx)
		if err != nil || known && m.generation == have {
			return err
		}
		g, err := s.load(tx, now)
		if err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.graph == nil || s.meta.generation == have { // else a write overtook this view
			s.graph, s.meta, s.loaded = g, m, now
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading the usage graph: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.graph == nil { // nothing was ever stored
		s.graph, s.loaded = &graphrank.Graph{}, now
	}
	return nil
}

func (s *Store) load(tx *kv.Tx, now time.Time) (*graphrank.Graph, error) {
	b, err := tx.Bucket(edgesBucket)
	if err != nil {
		return nil, err
	}
	g := &graphrank.Graph{}
	b.ForEach(func(key, value []byte) bool {
		var e edge
		if e, err = s.decodeEdge(key, value, now); err == nil && alive(e.Edge) {
			g.Set(e.Edge)
		}
		return err == nil
	})
	return g, err
}

// waiting is a write and who waits for it.
type waiting struct {
	change change
	done   chan error
}

// write makes the change durable before it returns. Changes that wait for
// the disk at the same time share a transaction.
func (s *Store) write(ctx context.Context, c change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(c.sights)+len(c.intents) == 0 {
		return nil
	}
	w := &waiting{c, make(chan error, 1)}
	s.queue.Lock()
	s.waits = append(s.waits, w)
	s.queue.Unlock()
	s.commit.Lock()
	defer s.commit.Unlock()
	select {
	case err := <-w.done: // another writer took it along
		return err
	default:
	}
	s.queue.Lock()
	waits := s.waits
	s.waits = nil
	s.queue.Unlock()
	var all change
	for _, w := range waits {
		all.sights = append(all.sights, w.change.sights...)
		all.intents = append(all.intents, w.change.intents...)
	}
	err := s.update(all)
	for _, w := range waits {
		w.done <- err
	}
	return <-w.done
}

// update writes in one transaction and brings memory up to date after it.
func (s *Store) update(c change) error {
	now := s.o.Now()
	var before, after meta
	var edges []graphrank.Edge
	err := s.db.Update(func(tx *kv.Tx) (err error) {
		if before, err = readMeta(tx); err != nil {
			return err
		}
		after = before
		if edges, err = s.count(tx, c.sights, now); err != nil {
			return err
		}
		if err := s.remember(tx, &after, c.intents, now); err != nil {
			return err
		}
		if err := s.sweep(tx, &after, now); err != nil {
			return err
		}
		after.generation++
		return writeMeta(tx, after)
	})
	if err != nil {
		return fmt.Errorf("writing the usage graph: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.graph == nil || s.meta.generation != before.generation {
		return nil // another process wrote in between; the next reader loads anew
	}
	for _, e := range edges {
		s.graph.Set(e)
	}
	s.meta = after
	return nil
}

// count adds the sights to the edges in the file and returns those that changed.
func (s *Store) count(tx *kv.Tx, sights []Sight, now time.Time) ([]graphrank.Edge, error) {
	b, err := tx.Bucket(edgesBucket)
	if err != nil {
		return nil, err
	}
	changed := map[[2]string]*edge{}
	for _, sight := range sights {
		if sight.From == sight.To {
			continue
		}
		pair := [2]string{sight.From, sight.To}
		e := changed[pair]
		if e == nil {
			e = &edge{}
			key := edgeKey(sight.From, sight.To)
			if value := b.Get(key); value != nil {
				if *e, err = s.decodeEdge(key, value, now); err != nil {
					return nil, err
				}
			}
			changed[pair] = e
		}
		e.seen(sight, now)
	}
	// In order: a page splits when the transaction ends, and until then an
	// insertion in its middle moves all that follows.
	edges := make([]graphrank.Edge, 0, len(changed))
	for _, e := range changed {
		edges = append(edges, e.Edge)
	}
	slices.SortFunc(edges, func(a, b graphrank.Edge) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	for _, e := range edges {
		if err := b.Put(edgeKey(e.From, e.To), changed[[2]string{e.From, e.To}].encode()); err != nil {
			return nil, err
		}
	}
	return edges, nil
}

// sweep removes dead edges from the file, once a day.
func (s *Store) sweep(tx *kv.Tx, m *meta, now time.Time) error {
	last := time.Unix(int64(m.swept), 0)
	if m.swept != 0 && now.Sub(last) < refresh {
		return nil
	}
	m.swept = unix(now)
	_, err := deleteWhere(tx, edgesBucket, func(key, value []byte) (bool, error) {
		e, err := s.decodeEdge(key, value, now)
		return !alive(e.Edge), err
	})
	return err
}

func readMeta(tx *kv.Tx) (m meta, err error) {
	b, err := tx.Bucket(metaBucket)
	if err != nil {
		return m, err
	}
	for key, field := range m.fields() {
		if v := b.Get([]byte(key)); len(v) == 8 {
			*field = binary.LittleEndian.Uint64(v)
		}
	}
	if m.version != 0 && m.version != version {
		return m, &FormatError{m.version, version}
	}
	return m, nil
}

func writeMeta(tx *kv.Tx, m meta) error {
	b, err := tx.Bucket(metaBucket)
	if err != nil {
		return err
	}
	m.version = version
	for key, field := range m.fields() {
		if err := b.Put([]byte(key), binary.LittleEndian.AppendUint64(nil, *field)); err != nil {
			return err
		}
	}
	return nil
}

func (m *meta) fields() map[string]*uint64 {
	return map[string]*uint64{"version": &m.version, "generation": &m.generation, "intents": &m.intents, "remembered": &m.remembered, "swept": &m.swept}
}

// deleteWhere removes the keys of a bucket for which fn says so, and counts them.
func deleteWhere(tx *kv.Tx, bucket string, fn func(key, value []byte) (bool, error)) (int, error) {
	b, err := tx.Bucket(bucket)
	if err != nil {
		return 0, err
	}
	var doomed [][]byte
	b.ForEach(func(key, value []byte) bool {
		var yes bool
		if yes, err = fn(key, value); yes && err == nil {
			doomed = append(doomed, append([]byte(nil), key...))
		}
		return err == nil
	})
	if err != nil {
		return 0, err
	}
	for _, key := range doomed {
		if err := b.Delete(key); err != nil {
			return 0, err
		}
	}
	return len(doomed), nil
}
