package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cairn/indexer"
	"cairn/internal/kv"
	"cairn/internal/owner"
	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/store/flat"
	"cairn/internal/store/qdrant"
	"cairn/internal/store/vectorcache"
	"cairn/models"
)

// CopyReport is what a copy of an index did and how it was verified.
type CopyReport struct {
	Documents int `json:"documents"` // in the copy now
	Copied    int `json:"copied"`    // of them in this run; the others were there
	Removed   int `json:"removed"`
	Chunks    int `json:"chunks"`
	// Probes are queries put to both sides, Overlap is the part of the best
	// ten that both gave, on average.
	Probes  int     `json:"probes"`
	Overlap float64 `json:"overlap"`
	Seconds float64 `json:"seconds"`
}

// The verification of a copy.
const (
	probes     = 100
	probeHits  = 10
	minOverlap = 0.98
)

// copyDocuments is how many documents are copied at a time. A copy that is cut
// short loses at most so many.
const copyDocuments = 64

// errEmbeds says that a copy lacks a vector of its source.
var errEmbeds = errors.New("the source has no vector for a chunk; complete it with `cairn index` first")

// CopyOut copies a folder's own index to a store. Documents that are there
// already, in the same version, are not sent again, so a copy that was cut
// short goes on where it ended. Nothing is embedded: vectors are those of the
// source. progress may be nil.
func CopyOut(ctx context.Context, sel Selection, s *Store, o Options, progress func(Progress)) (_ *CopyReport, err error) {
	start := time.Now()
	x, err := newCopy(o, progress)
	if err != nil {
		return nil, err
	}
	dir := owner.IndexDir(sel.Root)
	db, err := kv.Open(filepath.Join(dir, documentsFile), &kv.Options{ReadOnly: true})
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrNoIndex
	}
	if err != nil {
		return nil, err
	}
	defer db.Close()
	d := o.Description
	from, err := docs.Open(db, &docs.Options{Model: d, Chunks: indexer.ChunkFormat(d, nil)})
	if err != nil {
		return nil, openError(err, d)
	}
	vectors, err := flat.Open(filepath.Join(dir, vectorFolder), d.Dimension, d.ID, &flat.Options{ReadOnly: true, Logger: o.Logger})
	if err != nil {
		return nil, openError(err, d)
	}
	defer vectors.Close()
	client, err := s.dialExact(o.Logger) // probes tell whether all arrived, not what quantisation costs
	if err != nil {
		return nil, err
	}
	defer client.Close()
	lease, held, err := client.Lease(ctx, o.Command, func(holder string) { x.tell("waiting for "+holder, 0, 0) })
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(held, func() { cancel(context.Cause(held)) })()
	defer lease.Release(context.WithoutCancel(ctx))
	defer func() { // before the lease is given back, which ends held too
		if lost := context.Cause(ctx); err != nil && lost != nil {
			err = lost // why, instead of that, it was cut short
		}
	}()
	g := client.Current()
	to, words, documents := g.Vectors(d.Dimension, d.ID), g.Keyword(), g.Documents()
	there := map[string]qdrant.DocumentHead{}
	if err := documents.List(ctx, "", func(h qdrant.DocumentHead) bool { there[h.Path] = h; return true }); err != nil {
		return nil, err
	}
	files, err := from.Files()
	if err != nil {
		return nil, err
	}
	var send, gone []string
	for path, f := range files {
		if h, ok := there[path]; !ok || h.Hash != f.HexHash() || h.Size != f.Size || h.ModTime != f.ModTime || h.Chunks != f.Chunks {
			send = append(send, path)
		}
	}
	for path := range there {
		if _, ok := files[path]; !ok {
			gone = append(gone, path)
		}
	}
	slices.Sort(send)
	for batch := range slices.Chunk(send, copyDocuments) {
		if err := x.out(ctx, batch, there, from, vectors, to, words, documents); err != nil {
			return nil, err
		}
		x.tell("copy", x.report.Copied, len(send))
	}
	stale, err := storedChunks(ctx, documents, gone)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(words.Update(ctx, nil, stale), words.Complete(ctx), to.Update(ctx, nil, stale)); err != nil {
		return nil, err
	}
	if err := documents.Delete(ctx, gone); err != nil {
		return nil, err
	}
	x.report.Removed = len(gone)
	var state sharedState
	if state.Meta, err = from.Meta(); err != nil {
		return nil, err
	}
	if state.Counts, err = from.Counts(); err != nil {
		return nil, err
	}
	value, err := json.Marshal(state)
	if err != nil {
		return nil, err // unreachable: a state always marshals
	}
	_, version, err := client.Records().Get(ctx, stateRecord)
	if err != nil {
		return nil, err
	}
	if _, err := client.Records().Put(ctx, stateRecord, value, version); err != nil {
		return nil, err
	}
	return x.verify(ctx, start, from, vectors, to, words.Count)
}

// copying is one copy.
type copying struct {
	chunker  *indexer.Chunker
	model    models.Embedder
	progress func(Progress)
	report   CopyReport
}

func newCopy(o Options, progress func(Progress)) (*copying, error) {
	model, err := o.Model()
	if err != nil {
		return nil, fmt.Errorf("opening the embedding model: %w", err)
	}
	return &copying{chunker: indexer.NewChunker(o.Description, model.Tokenizer(), nil), model: model, progress: progress}, nil
}

func (x *copying) tell(phase string, done, total int) {
	if x.progress != nil {
		x.progress(Progress{Phase: phase, Done: done, Total: total})
	}
}

// chunkIDs returns the ids of a document's chunks.
func chunkIDs(doc *store.Document) (ids []string) {
	for i := range doc.Sections {
		for n := range doc.Sections[i].Chunks {
			ids = append(ids, store.ChunkID(doc.Path, doc.Sections[i].Anchor, n))
		}
	}
	return ids
}

// storedChunks returns the ids of the chunks of documents in a store.
func storedChunks(ctx context.Context, documents *qdrant.Documents, paths []string) (ids []string, err error) {
	for _, path := range paths {
		doc, _, err := documents.Load(ctx, path)
		if err != nil {
			return nil, err
		}
		if doc != nil {
			ids = append(ids, chunkIDs(doc)...)
		}
	}
	return ids, nil
}

// out sends documents. The document itself goes last: where it is, its chunks are.
func (x *copying) out(ctx context.Context, paths []string, held map[string]qdrant.DocumentHead, from *docs.Store, vectors *flat.Store, to *qdrant.Vectors, words *qdrant.Keyword, documents *qdrant.Documents) error {
	var texts []store.TextEntry
	var entries []store.VectorEntry
	var puts []docs.Put
	var replaced, fresh []string
	for _, path := range paths {
		if _, ok := held[path]; ok {
			replaced = append(replaced, path)
		}
		var p docs.Put
		err := from.View(func(r *docs.Reader) error {
			doc, err := r.Document(path)
			if err != nil || doc == nil {
				return err
			}
			p = docs.Put{Document: *doc, Text: slices.Clone(r.Text(path))}
			return nil
		})
		if err != nil {
			return err
		}
		if p.Document.Path == "" {
			continue // it left since the list was made
		}
		puts = append(puts, p)
		for i := range p.Document.Sections {
			for n := range p.Document.Sections[i].Chunks {
				e := x.chunker.TextEntry(&p.Document, i, n, string(p.Text))
				texts = append(texts, e)
				entries = append(entries, store.VectorEntry{Chunk: e.Chunk, Path: e.Path, Labels: e.Labels})
				fresh = append(fresh, e.Chunk)
			}
		}
	}
	found, err := vectors.Vectors(ctx, fresh)
	if err != nil {
		return err
	}
	for i := range entries {
		if entries[i].Vector = found[i]; found[i] == nil {
			return fmt.Errorf("%s: %w", entries[i].Chunk, errEmbeds)
		}
	}
	stale, err := storedChunks(ctx, documents, replaced)
	if err != nil {
		return err
	}
	if err := to.Update(ctx, entries, stale); err != nil {
		return err
	}
	if err := words.Update(ctx, texts, stale); err != nil {
		return err
	}
	for i := range puts {
		if err := documents.Put(ctx, &puts[i].Document, puts[i].Text); err != nil {
			return err
		}
	}
	x.report.Copied += len(puts)
	return nil
}

// nearestTo is what verification asks both sides.
type nearestTo interface {
	Search(ctx context.Context, query []float32, k int, f store.Filter) ([]store.Hit, error)
	Count() (int, error)
}

// verify compares counts and the answers to probes: vectors of the folder's
// index, spread over its documents.
func (x *copying) verify(ctx context.Context, start time.Time, documents *docs.Store, here *flat.Store, there nearestTo, words func() (int, error)) (*CopyReport, error) {
	counts, err := documents.Counts()
	if err != nil {
		return nil, err
	}
	x.report.Documents, x.report.Chunks = counts.Files, counts.Chunks
	for name, count := range map[string]func() (int, error){"vectors in the folder": here.Count, "vectors in the store": there.Count, "keyword entries in the copy": words} {
		n, err := count()
		if err != nil {
			return nil, err
		}
		if n != counts.Chunks {
			return nil, fmt.Errorf("verifying the copy: %d %s, the documents have %d chunks; run it again", n, name, counts.Chunks)
		}
	}
	var all []string
	err = documents.View(func(r *docs.Reader) error {
		var paths []string
		if err := r.Files("", func(f docs.File) bool { paths = append(paths, f.Path); return true }); err != nil {
			return err
		}
		for i := range min(len(paths), 2*probes) { // some have no chunks
			doc, err := r.Document(paths[i*len(paths)/min(len(paths), 2*probes)])
			if err != nil {
				return err
			}
			all = append(all, chunkIDs(doc)...)
		}
		return nil
	})
	if err != nil || len(all) == 0 {
		return &x.report, err
	}
	var chosen []string
	for i := range min(len(all), probes) {
		chosen = append(chosen, all[i*len(all)/min(len(all), probes)])
	}
	queries, err := here.Vectors(ctx, chosen)
	if err != nil {
		return nil, err
	}
	same, wanted := 0, 0
	for i, q := range queries {
		want, err := here.Search(ctx, q, probeHits, store.Filter{})
		if err != nil {
			return nil, err
		}
		got, err := there.Search(ctx, q, probeHits, store.Filter{})
		if err != nil {
			return nil, err
		}
		for _, h := range want {
			wanted++
			if slices.ContainsFunc(got, func(g store.Hit) bool { return g.Chunk == h.Chunk }) {
				same++
			}
		}
		x.tell("verify", i+1, len(queries))
	}
	x.report.Probes, x.report.Overlap = len(queries), float64(same)/float64(wanted)
	x.report.Seconds = time.Since(start).Seconds()
	if x.report.Overlap < minOverlap {
		return nil, fmt.Errorf("verifying the copy: %d queries have %.3f of their best %d in common, want %.2f", len(queries), x.report.Overlap, probeHits, minOverlap)
	}
	return &x.report, nil
}

// refusing is a model that embeds nothing.
type refusing struct{ models.Embedder }

func (refusing) EmbedDocuments(context.Context, []string) ([][]float32, error) { return nil, errEmbeds }

// CopyIn copies a store to a folder's own index, as CopyOut the other way. The
// folder's files are not looked at. No other process may have the index open.
func CopyIn(ctx context.Context, sel Selection, s *Store, o Options, progress func(Progress)) (*CopyReport, error) {
	start := time.Now()
	x, err := newCopy(o, progress)
	if err != nil {
		return nil, err
	}
	w := &Workspace{selection: sel, dir: owner.IndexDir(sel.Root)}
	if err := w.prepare(); err != nil {
		return nil, err
	}
	lock := newFileLock(w.dir)
	if ok, err := lock.tryOwn(Holder{PID: os.Getpid(), Command: o.Command, StartedAt: start.UTC()}); err != nil || !ok {
		if err == nil {
			err = &LockError{LockFile: lock.path, Holder: readHolder(w.dir), Doing: "using"}
		}
		return nil, err
	}
	defer lock.release()
	d := o.Description
	to, err := openStores(sel, w.dir, d, Owning, false, o.Logger)
	if err != nil {
		return nil, err
	}
	defer to.close()
	client, err := s.dialExact(o.Logger)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	g := client.Current()
	vectors, documents := g.Vectors(d.Dimension, d.ID), g.Documents()
	held := map[string]qdrant.DocumentHead{}
	if err := documents.List(ctx, "", func(h qdrant.DocumentHead) bool { held[h.Path] = h; return true }); err != nil {
		return nil, err
	}
	files, err := to.docs.Files()
	if err != nil {
		return nil, err
	}
	var take, gone []string
	for path, h := range held {
		if f, ok := files[path]; !ok || h.Hash != f.HexHash() || h.Size != f.Size || h.ModTime != f.ModTime || h.Chunks != f.Chunks {
			take = append(take, path)
		}
	}
	for path := range files {
		if _, ok := held[path]; !ok {
			gone = append(gone, path)
		}
	}
	slices.Sort(take)
	slices.Sort(gone)
	// Vectors first: once a document is stored, its vectors are taken from the
	// cache, also by the run after one that was cut short.
	for batch := range slices.Chunk(take, copyDocuments) {
		if err := x.in(ctx, batch, documents, vectors, to); err != nil {
			return nil, err
		}
		x.tell("copy", x.report.Copied, len(take))
	}
	if err := to.docs.Delete(ctx, gone); err != nil {
		return nil, err
	}
	x.report.Removed = len(gone)
	run := indexer.New(indexer.Stores{Files: to.files, Docs: to.docs, Text: to.text, Vectors: to.vectors, Cache: to.cache}, refusing{x.model}, nil)
	tell := func(p indexer.Progress) { x.tell(string(p.Phase), p.ChunksDone, p.ChunksTotal) }
	if err := run.Keywords(ctx, tell); err != nil {
		return nil, err
	}
	if err := run.Vectors(ctx, tell); err != nil {
		return nil, err
	}
	if _, err := to.docs.Advance(ctx, []string{sel.Root}, start); err != nil {
		return nil, err
	}
	return x.verify(ctx, start, to.docs, to.vectors, vectors, to.text.Count)
}

// in takes documents over.
func (x *copying) in(ctx context.Context, paths []string, documents *qdrant.Documents, vectors *qdrant.Vectors, to *stores) error {
	var puts []docs.Put
	var ids []string
	var keys []vectorcache.Key
	for _, path := range paths {
		doc, text, err := documents.Load(ctx, path)
		if err != nil {
			return err
		}
		if doc == nil {
			continue // it left since the list was made
		}
		puts = append(puts, docs.Put{Document: *doc, Text: text})
		ids = append(ids, chunkIDs(doc)...)
		for i := range doc.Sections {
			for n := range doc.Sections[i].Chunks {
				keys = append(keys, vectorcache.KeyOf(x.chunker.EmbedText(doc, i, n, string(text))))
			}
		}
	}
	found, err := vectors.Vectors(ctx, ids)
	if err != nil {
		return err
	}
	for i, v := range found {
		if v == nil {
			return fmt.Errorf("%s: %w", ids[i], errEmbeds)
		}
	}
	if err := to.cache.Put(keys, found); err != nil {
		return err
	}
	x.report.Copied += len(puts)
	return to.docs.Put(ctx, puts)
}
