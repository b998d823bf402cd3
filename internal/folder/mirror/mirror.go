// Package mirror copies a folder's index to a Qdrant store and back. It does not parse,
// split or embed documents.
//
// The process that owns the folder's index searches that index and updates the store. It
// sends only documents that differ from the store's version, so an interrupted copy can
// continue. It sends a document after its chunks, and marks it complete when all chunks have
// vectors; until then other processes find it only by its words.
//
// One process writes to a store at a time: the one that holds the store's lease. The lease is
// in Qdrant itself, because a lease elsewhere could pass to a process while another one still
// writes to the store.
package mirror

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"cairn/indexer"
	"cairn/internal/base/job"
	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/store/flat"
	"cairn/internal/store/keyword"
	"cairn/internal/store/qdrant"
	"cairn/models"
)

// Index is a folder's own index. The caller closes it.
type Index struct {
	Docs    *docs.Store
	Keyword *keyword.Index
	Vectors *flat.Store
	Model   models.Description
	// Chunker returns the chunker of the index. The Mirror calls it when it needs chunks.
	Chunker func() (*indexer.Chunker, error)
}

// Options configures New. Nil and the zero value mean the defaults.
type Options struct {
	// Rebuild makes the first Sync fill new collections, which then replace the old ones.
	Rebuild bool
	// Log receives warnings. Nil discards them.
	Log *slog.Logger
}

// Report counts what a copy did.
type Report struct {
	Copied  int `json:"copied"`  // documents
	Removed int `json:"removed"` // documents
}

// batchDocuments is the number of documents copied at a time, and the largest number that a
// copy repeats after an interruption.
const batchDocuments = 64

// Mirror keeps a store up to date with an index. It is safe for concurrent use.
type Mirror struct {
	client  *qdrant.Client
	index   Index
	options Options
	log     *slog.Logger
	holder  string
	open    context.Context // until Close
	close   context.CancelFunc
	tasks   sync.WaitGroup // follow, while it runs

	turn      *semaphore.Weighted // one copy at a time; guards the fields below
	next      *qdrant.Generation  // new collections of a rebuild; nil for none
	chunks    *qdrant.Chunks
	documents *qdrant.Documents
	held      map[string]qdrant.DocumentHead // documents of the store by path; nil before they are read
	lease     *qdrant.Lease
	leased    context.Context // ends with the lease
	average   float64         // average number of words of a chunk in the index
	announced State           // the state that the store has
}

// New returns the mirror of an index. It connects to the store at its first use.
func New(s *Store, x Index, o *Options) (*Mirror, error) {
	m := &Mirror{index: x, turn: semaphore.NewWeighted(1), options: *cmp.Or(o, &Options{})}
	m.log = cmp.Or(m.options.Log, slog.New(slog.DiscardHandler))
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	m.holder = fmt.Sprintf("process %d on %s", os.Getpid(), host)
	if m.client, err = s.Dial(m.log); err != nil {
		return nil, err
	}
	m.open, m.close = context.WithCancel(context.Background())
	m.use(m.client.Current())
	return m, nil
}

func (m *Mirror) use(g *qdrant.Generation) {
	m.chunks, m.documents = g.Chunks(m.index.Model.Dimension, m.index.Model.ID), g.Documents()
}

// Close ends Follow, releases the lease and closes the connection.
func (m *Mirror) Close() error {
	m.close()
	m.tasks.Wait()
	_ = m.turn.Acquire(context.Background(), 1) // never fails: the context does not end
	if m.lease != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := m.lease.Release(ctx); err != nil {
			m.log.Warn("releasing the lease of the store", "error", err) // it will expire
		}
	}
	return m.client.Close()
}

// followEvery is the interval at which Follow checks whether the index has changed.
const followEvery = 500 * time.Millisecond

// Follow runs Sync in the background whenever the index has changed or the lease was lost,
// until Close. The caller calls it at most once.
func (m *Mirror) Follow() { m.tasks.Go(m.follow) }

func (m *Mirror) follow() {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	last, err := m.local()
	for failing := false; ; {
		if err != nil && !failing && m.open.Err() == nil {
			m.log.Warn("updating the store to the index", "error", err)
		}
		failing = err != nil
		select {
		case <-m.open.Done():
			return
		case <-tick.C:
		}
		var now State
		if now, err = m.local(); err != nil || m.options.Rebuild || reflect.DeepEqual(now, last) && !failing && !m.lost() {
			continue
		}
		if _, err = m.Sync(m.open, nil); err == nil {
			last = now
		}
	}
}

// lost reports whether this process had the lease and lost it. Then the store may have lost
// what this process wrote, like a server that is restored from a backup. lost is false during
// a copy.
func (m *Mirror) lost() bool {
	if !m.turn.TryAcquire(1) {
		return false
	}
	defer m.turn.Release(1)
	return m.lease != nil && m.leased.Err() != nil
}

// local returns the state of the folder's index.
func (m *Mirror) local() (s State, err error) {
	if s.Meta, err = m.index.Docs.Meta(); err == nil {
		s.Counts, err = m.index.Docs.Counts()
	}
	return s, err
}

// Sync updates the store to the index. It waits for the lease. progress may be nil; then the
// log has the holder of the lease.
func (m *Mirror) Sync(ctx context.Context, progress func(job.Progress)) (r Report, err error) {
	waiting := func(holder string) { m.log.Warn("waiting for another writer of the store", "holder", holder) }
	if progress != nil {
		waiting = func(holder string) {
			progress(job.Progress{Phase: "waiting for another writer of the store: " + holder})
		}
		progress(job.Progress{Phase: "copy"})
	}
	if err := m.turn.Acquire(ctx, 1); err != nil {
		return r, err
	}
	defer m.turn.Release(1)
	ctx, end, err := m.lead(ctx, waiting)
	if err != nil {
		return r, err
	}
	defer end()
	if err = m.sync(ctx, &r, progress); err != nil {
		m.held = nil // a failed write may have taken effect
		if cause := context.Cause(ctx); cause != nil {
			err = cause // the reason of the interruption
		}
	}
	return r, err
}

// lead waits until this process may write. The returned context ends with the lease.
func (m *Mirror) lead(ctx context.Context, waiting func(holder string)) (fenced context.Context, end func(), err error) {
	if m.lease == nil || m.leased.Err() != nil {
		// Later calls use the same lease.
		if m.lease, m.leased, err = m.client.Lease(ctx, m.holder, waiting); err != nil {
			return nil, nil, err
		}
		m.held, m.announced = nil, State{}
	}
	leased := m.leased
	fenced, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(leased, func() { cancel(context.Cause(leased)) })
	return fenced, func() { stop(); cancel(nil) }, nil
}

func (m *Mirror) sync(ctx context.Context, r *Report, progress func(job.Progress)) error {
	now, err := m.local()
	if err != nil {
		return err
	}
	if err := m.begin(ctx, now.Meta); err != nil {
		return err
	}
	send, removed, err := m.compare()
	if err != nil {
		return err
	}
	for batch := range slices.Chunk(send, batchDocuments) {
		n, err := m.put(ctx, batch)
		if err != nil {
			return err
		}
		if r.Copied += n; progress != nil {
			progress(job.Progress{Phase: "copy", Done: r.Copied, Total: len(send)})
		}
	}
	for batch := range slices.Chunk(removed, batchDocuments) {
		if err := m.remove(ctx, batch); err != nil {
			return err
		}
		r.Removed += len(batch)
	}
	if r.Copied*bulk > len(m.held) {
		if err := m.chunks.Settle(ctx, m.average, settled); err != nil {
			return err
		}
	}
	terms, err := m.index.Keyword.Spellings()
	if err != nil {
		return err
	}
	if err := m.chunks.Complete(ctx, terms); err != nil { // also without chunks
		return err
	}
	if m.next != nil {
		if err := m.next.Activate(ctx); err != nil {
			return err
		}
		m.use(m.client.Current())
		m.next, m.options.Rebuild = nil, false
	}
	return m.announce(ctx, now)
}

// begin selects the generation to write, and reads its documents.
func (m *Mirror) begin(ctx context.Context, meta docs.Meta) (err error) {
	if m.options.Rebuild && m.next == nil {
		if m.next, err = m.client.Next(ctx); err != nil {
			return err
		}
		m.use(m.next)
		m.held = nil
	}
	if m.held != nil {
		return nil
	}
	if m.next == nil {
		m.use(m.client.Current()) // weights may have changed, and collections may have been deleted
	}
	state, _, err := readState(ctx, m.client.Records())
	if err != nil {
		return err
	}
	held := map[string]qdrant.DocumentHead{}
	if err := m.documents.List(ctx, "", func(h qdrant.DocumentHead) bool {
		if m.next == nil && state.Meta.Format != 0 && state.Meta.Chunks != meta.Chunks {
			clear(h.Hash[:]) // it has other chunk rules
		}
		held[h.Path] = h
		return true
	}); err != nil {
		return err
	}
	if err := m.reconcile(ctx, held); err != nil {
		return err
	}
	m.held = held
	return nil
}

// reconcile compares the chunks of the store with its documents. The two are in separate
// collections, of which one may have been deleted or restored from an older snapshot. A
// document that has other chunks than it lists is marked to be sent again. Its chunks, and
// those of documents that the store does not have, are removed.
func (m *Mirror) reconcile(ctx context.Context, held map[string]qdrant.DocumentHead) error {
	listed := 0
	for _, h := range held {
		listed += h.Chunks
	}
	if n, err := m.chunks.Keyword().Count(); err != nil || n == listed {
		return err
	}
	stray := map[string][]string{} // chunk IDs by path
	if err := m.chunks.IDs(ctx, func(id string) {
		path, _, _, _ := store.SplitChunkID(id)
		stray[path] = append(stray[path], id)
	}); err != nil {
		return err
	}
	for path, h := range held {
		if len(stray[path]) == h.Chunks {
			delete(stray, path)
			continue
		}
		clear(h.Hash[:])
		held[path] = h
	}
	return m.chunks.Update(ctx, nil, slices.Concat(slices.Collect(maps.Values(stray))...), m.average)
}

// compare returns the sorted paths of the documents that the store lacks or has in another
// version, and of the documents that only the store has.
func (m *Mirror) compare() (send, removed []string, err error) {
	files, err := m.index.Docs.Files()
	if err != nil {
		return nil, nil, err
	}
	// Documents that are pending for a derived index of the folder. Those without words
	// are not in the average length yet either, and are sent later.
	var noWords, noVectors map[string]bool
	err = m.index.Docs.View(func(r *docs.Reader) (err error) {
		if noWords, err = pending(r, docs.Keyword); err == nil {
			noVectors, err = pending(r, docs.Vectors)
		}
		return err
	})
	if err == nil {
		m.average, err = m.index.Keyword.AverageLength()
	}
	if err != nil {
		return nil, nil, err
	}
	for path, f := range files {
		h, ok := m.held[path]
		if !noWords[path] && (!ok || differs(h, &f) || !h.Complete && !noVectors[path]) {
			send = append(send, path)
		}
	}
	slices.Sort(send)
	return send, missing(m.held, files), nil
}

// missing returns the sorted paths in from that are not in have.
func missing[A, B any](from map[string]A, have map[string]B) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(from)), func(path string) bool {
		_, ok := have[path]
		return ok
	})
}

func pending(r *docs.Reader, kind docs.Kind) (map[string]bool, error) {
	all, err := r.Pending(kind, "", 0)
	paths := make(map[string]bool, len(all))
	for i := range all {
		paths[all[i].Path] = true
	}
	return paths, err
}

func differs(h qdrant.DocumentHead, f *docs.File) bool {
	return h.Hash != f.Hash || h.Size != f.Size || h.ModTime != f.ModTime || h.Chunks != f.Chunks
}

// After a copy of more than one in bulk documents, the average length in the weights must
// not differ from the true one by more than settled, so that both sides rank equally.
const (
	bulk    = 4
	settled = 0.001
)

// put sends documents and returns their number. Some may have been removed since compare.
func (m *Mirror) put(ctx context.Context, paths []string) (int, error) {
	chunker, err := m.index.Chunker()
	if err != nil {
		return 0, err
	}
	var entries []qdrant.Chunk
	var ids, replaced []string
	var puts []docs.Put
	files, behind := map[string]docs.File{}, map[string]bool{}
	for _, path := range paths {
		err := m.index.Docs.View(func(r *docs.Reader) error {
			doc, err := r.Document(path)
			if err == nil {
				files[path], _, err = r.File(path)
			}
			if err != nil || doc == nil {
				return err
			}
			behind[path] = r.IsPending(docs.Vectors, path)
			puts = append(puts, docs.Put{Document: *doc, Text: slices.Clone(r.Text(path))})
			return nil
		})
		if err != nil {
			return 0, err
		}
		if _, ok := m.held[path]; ok {
			replaced = append(replaced, path)
		}
	}
	for i := range puts {
		d := &puts[i].Document
		text := string(puts[i].Text)
		for s := range d.Sections {
			for n := range d.Sections[s].Chunks {
				e := chunker.KeywordEntry(d, s, n, text)
				entries, ids = append(entries, qdrant.Chunk{KeywordEntry: e}), append(ids, e.Chunk)
			}
		}
	}
	vectors, err := m.index.Vectors.Vectors(ctx, ids)
	if err != nil {
		return 0, err
	}
	for i, v := range vectors {
		if entries[i].Vector = v; v == nil {
			behind[entries[i].Path] = true
		}
	}
	stale, err := m.chunksOf(ctx, replaced)
	if err != nil {
		return 0, err
	}
	if err := m.chunks.Update(ctx, entries, stale, m.average); err != nil {
		return 0, err
	}
	for i := range puts {
		d := &puts[i].Document
		if err := m.documents.Put(ctx, d, puts[i].Text, !behind[d.Path]); err != nil {
			return 0, err
		}
		m.held[d.Path] = qdrant.DocumentHead{File: files[d.Path], Complete: !behind[d.Path]}
	}
	return len(puts), nil
}

// remove removes documents from the store, their chunks first.
func (m *Mirror) remove(ctx context.Context, paths []string) error {
	stale, err := m.chunksOf(ctx, paths)
	if err != nil {
		return err
	}
	if err := m.chunks.Update(ctx, nil, stale, m.average); err != nil {
		return err
	}
	if err := m.documents.Delete(ctx, paths); err != nil {
		return err
	}
	for _, path := range paths {
		delete(m.held, path)
	}
	return nil
}

// chunksOf returns the IDs of the chunks of documents in the store.
func (m *Mirror) chunksOf(ctx context.Context, paths []string) (ids []string, err error) {
	found, err := m.documents.Load(ctx, paths...)
	if err != nil {
		return nil, err
	}
	for _, path := range slices.Sorted(maps.Keys(found)) {
		ids = append(ids, found[path].Document.ChunkIDs()...)
	}
	return ids, nil
}

// announce writes the state to the store if it has changed. Its pending counts are those of
// the store, not of the folder's index.
func (m *Mirror) announce(ctx context.Context, now State) error {
	now.Counts.Keyword, now.Counts.Vectors = docs.PendingCounts{}, docs.PendingCounts{}
	for _, h := range m.held {
		if !h.Complete {
			p := &now.Counts.Vectors
			p.Files, p.Sections, p.Chunks = p.Files+1, p.Sections+h.Sections, p.Chunks+h.Chunks
		}
	}
	if reflect.DeepEqual(now, m.announced) {
		return nil
	}
	value, err := json.Marshal(now)
	if err != nil {
		return err // unreachable: a state always marshals
	}
	_, version, err := readState(ctx, m.client.Records())
	if err != nil {
		return err
	}
	if _, err := m.client.Records().Put(ctx, stateRecord, value, version); err != nil {
		return err
	}
	m.announced = now
	return nil
}
