// Package usage keeps what was used together: a graphrank.Graph of tools and
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
// # Journal
//
// A transaction costs a sync of the disk, milliseconds. So a change is first
// appended to a journal that all processes share, one write each: it survives
// the end of the process at any moment, and is on the disk within a second. In
// memory it is laid over what the database holds. When the journal has grown,
// and at Close, it is folded into the database. A large change, and forgetting,
// go to the database at once, with what the journal holds.
//
// # Format, version 2
//
// Version 1 had no weak edges and intents; it is read as it is.
//
// A record of the journal is written by appendChange. In the database:
//
//	bucket "edges"    from 0x00 to -> type (1 byte), source, with weakBit (1 byte), count (8 bytes,
//	                  float64), last sight (8 bytes, Unix seconds), sights (4 bytes); all
//	                  little-endian
//	bucket "intents"  first 16 bytes of a SHA-256 of the normalised intent and its
//	                  sorted tools -> see appendIntent
//	bucket "usage"    "version", "generation", "intents", "remembered", "swept",
//	                  "epoch" -> 8 bytes, little-endian: format version, number of
//	                  the last write, number of the last write to intents, number of
//	                  intents kept, Unix seconds of the last removal of dead edges,
//	                  how often a journal was folded in
package usage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"cairn/graphrank"
	"cairn/internal/kv"
)

const (
	version       = 2
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
	// Journal takes small changes; nil makes each a transaction. The store
	// closes it.
	Journal Journal
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

// Journal takes changes that are too small for a transaction each: see
// kv.Journal, which is one for the processes of a machine.
//
// One that is shared beyond a machine has no lock that keeps others out. Instead
// Read, Append, Seal and the database's Update fail with ErrOvertaken when
// another process was first; the store reads what that wrote and tries again. Seal
// ends an epoch before its records are put into the database, so that none is
// added meanwhile; a sealed journal is larger than MaxJournal, and whoever comes to
// it puts its records into the database if that was not done.
type Journal interface {
	Lock(exclusive bool) (release func(), err error)
	Mark() (kv.JournalMark, error)
	Read(epoch uint64, from int64, fn func(payload []byte) error) (end int64, err error)
	Append(epoch uint64, end int64, payload []byte) (int64, error)
	Seal(epoch uint64, end int64) error
	Reset(epoch uint64) error
	Close() error
}

// ErrOvertaken says that another process has written since this one read.
var ErrOvertaken = errors.New("another process has written the usage graph meanwhile")

// maxOvertaken is how often a write begins anew. Each time another one has
// come through, so only a store that many write at once gets there.
const maxOvertaken = 100

// overtaken calls fn until no other process was first.
func overtaken(fn func() error) (err error) {
	for range maxOvertaken {
		if err = fn(); !errors.Is(err, ErrOvertaken) {
			break
		}
	}
	return err
}

// Epoch is how often a journal was folded into what tx reads.
func Epoch(tx *kv.Tx) (uint64, error) {
	m, err := readMeta(tx)
	return m.epoch, err
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

	// What follows is changed with mu held and, where there is a journal, within
	// its Lock; either is enough to read it. A View or Update of db is never
	// begun with mu held: it waits for other processes.
	mu     sync.RWMutex
	graph  *graphrank.Graph
	meta   meta // of the database with what over holds
	base   meta // of the database as it was read
	mark   kv.JournalMark
	end    int64 // of the journal as it was read
	over   overlay
	loaded time.Time
	recent recent
	// intents are what Intents has returned, intGen their generation; 0 before
	// they were read.
	intents []Intent
	intGen  uint64
}

// overlay is what the journal adds to the database: edges and intents as they
// are with it.
type overlay struct {
	edges   map[[2]string]*edge
	intents map[string]Intent // by key
}

// meta is the bucket of that name.
type meta struct {
	version, generation, intents, remembered, swept, epoch uint64
}

// Open loads the graph in db, which stays the caller's to close.
func Open(db DB, o *Options) (*Store, error) {
	s := &Store{db: db}
	if o != nil {
		s.o = *o
	}
	if j, file := s.o.Journal.(*kv.Journal); file && j == nil { // there are none on this system
		s.o.Journal = nil
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

// MaxJournal is how large a journal grows before it is folded in, in bytes:
// some 10,000 changes, which one transaction takes in tenths of a second.
const MaxJournal = 1 << 20

const (
	// idleJournal is what Close leaves in a journal at most.
	idleJournal = 64 << 10
	// maxSmall is the most sights and intents that go to the journal at a time.
	maxSmall = 1000
)

// update makes a change durable and brings memory up to date.
func (s *Store) update(c change) error {
	now := s.o.Now()
	j := s.o.Journal
	if j == nil {
		return s.fold(c, now)
	}
	release, err := j.Lock(true)
	if err != nil {
		return err
	}
	defer release()
	return overtaken(func() error { return s.append(c, now) })
}

// append adds a change to the journal, or folds both in. The journal is locked.
func (s *Store) append(c change, now time.Time) error {
	j := s.o.Journal
	if mark, err := j.Mark(); err != nil {
		return err
	} else if s.graph == nil || mark != s.mark || mark.Epoch == 0 || now.Sub(s.loaded) >= refresh {
		if err := s.catchUp(); err != nil {
			return err
		}
	}
	if len(c.sights)+len(c.intents) > maxSmall || s.end > MaxJournal {
		return s.fold(c, now)
	}
	payload := appendChange(nil, c, now)
	if len(payload) > kv.MaxRecord {
		return s.fold(c, now)
	}
	// What cannot be laid over must not be written.
	o, err := s.prepare(c, now)
	if err != nil {
		return err
	}
	end, err := j.Append(s.base.epoch+1, s.end, payload)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.install(o)
	s.end, s.mark = end, kv.JournalMark{Epoch: s.base.epoch + 1, Size: end}
	return nil
}

// fold writes what the journal holds, and c, in one transaction, empties the
// journal and brings memory up to date. The journal, if any, is locked and read.
func (s *Store) fold(c change, now time.Time) error {
	var before, after meta
	var n news
	if err := s.seal(); err != nil {
		return err
	}
	err := s.db.Update(func(tx *kv.Tx) (err error) {
		n = news{}
		if before, err = readMeta(tx); err != nil {
			return err
		}
		if after, err = s.putOverlay(tx, before, &n); err != nil {
			return err
		}
		if n.edges, err = s.count(tx, c.sights, now); err != nil {
			return err
		}
		if err := s.remember(tx, &after, c.intents, now, &n); err != nil {
			return err
		}
		if err := s.sweep(tx, &after, now); err != nil {
			return err
		}
		if len(c.sights)+len(c.intents) > 0 || after.intents > after.generation {
			after.generation++
		}
		return writeMeta(tx, after)
	})
	if err != nil {
		return fmt.Errorf("writing the usage graph: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.graph != nil && s.base.generation == before.generation {
		for _, e := range n.edges {
			s.graph.Set(e)
		}
		if after.generation != s.meta.generation {
			s.recent.add(after.generation, n)
		}
		s.meta, s.base = after, after
	} // else another process wrote in between; the next reader loads anew
	return s.emptied(after)
}

// seal ends the journal's epoch. The journal, if any, is locked and read.
func (s *Store) seal() error {
	if s.o.Journal == nil {
		return nil
	}
	return s.o.Journal.Seal(s.base.epoch+1, s.end)
}

// emptied begins the journal's next epoch. s.mu is held.
func (s *Store) emptied(m meta) error {
	s.over, s.end, s.mark = overlay{}, 0, kv.JournalMark{}
	if s.o.Journal == nil {
		return nil
	}
	return s.o.Journal.Reset(m.epoch + 1)
}

// putOverlay writes what the journal holds into the database, whose meta is m,
// and returns the meta with it.
func (s *Store) putOverlay(tx *kv.Tx, m meta, n *news) (meta, error) {
	if s.o.Journal == nil {
		return m, nil
	}
	if m.epoch != s.base.epoch {
		return m, fmt.Errorf("the journal was folded in: %w", ErrOvertaken)
	}
	edges, err := tx.Bucket(edgesBucket)
	if err != nil {
		return m, err
	}
	for _, pair := range sortedPairs(s.over.edges) {
		if err := edges.Put(edgeKey(pair[0], pair[1]), s.over.edges[pair].encode()); err != nil {
			return m, err
		}
	}
	intents, err := tx.Bucket(intentsBucket)
	if err != nil {
		return m, err
	}
	for _, key := range slices.Sorted(maps.Keys(s.over.intents)) {
		one := s.over.intents[key]
		if err := intents.Put([]byte(key), appendIntent(nil, &one)); err != nil {
			return m, err
		}
	}
	m.generation, m.intents, m.remembered, m.epoch = s.meta.generation, s.meta.intents, s.meta.remembered, m.epoch+1
	evicted, err := s.bound(tx, &m)
	if evicted > 0 {
		m.intents, n.partial = m.generation+1, true
	}
	return m, err
}

// Close folds a file that has grown into the database and closes it; what is not
// this machine's waits until it is full.
func (s *Store) Close() error {
	j := s.o.Journal
	if j == nil {
		return nil
	}
	s.commit.Lock()
	defer s.commit.Unlock()
	var err error
	if _, file := j.(*kv.Journal); file {
		if mark, markErr := j.Mark(); markErr == nil && mark.Size > idleJournal {
			err = s.tidy()
		}
	}
	return errors.Join(err, j.Close())
}

// tidy folds the journal in.
func (s *Store) tidy() error {
	release, err := s.o.Journal.Lock(true)
	if err != nil {
		return err
	}
	defer release()
	return overtaken(func() error {
		if err := s.catchUp(); err != nil {
			return err
		}
		return s.fold(change{}, s.o.Now())
	})
}

// count adds the sights to the edges in the file and returns those of the graph
// that changed.
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
	for _, pair := range sortedPairs(changed) {
		e := changed[pair]
		if err := b.Put(edgeKey(e.From, e.To), e.encode()); err != nil {
			return nil, err
		}
		if !e.weak {
			edges = append(edges, e.Edge)
		}
	}
	return edges, nil
}

func sortedPairs(edges map[[2]string]*edge) [][2]string {
	return slices.SortedFunc(maps.Keys(edges), func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
}

// sweep removes dead edges, and weak intents that nothing came of, from the file,
// once a day.
func (s *Store) sweep(tx *kv.Tx, m *meta, now time.Time) error {
	last := time.Unix(int64(m.swept), 0)
	if m.swept != 0 && now.Sub(last) < refresh {
		return nil
	}
	m.swept = unix(now)
	_, err := deleteWhere(tx, edgesBucket, func(key, value []byte) (bool, error) {
		e, err := s.decodeEdge(key, value, now)
		return !e.alive(now), err
	})
	if err != nil {
		return err
	}
	n, err := deleteWhere(tx, intentsBucket, func(_, value []byte) (bool, error) {
		one, err := decodeIntent(value)
		return one.Weak && now.Sub(one.Last) > weakLife, err
	})
	m.remembered -= min(m.remembered, uint64(n))
	return err
}
