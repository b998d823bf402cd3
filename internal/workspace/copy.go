package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cairn/indexer"
	"cairn/internal/config"
	"cairn/internal/mirror"
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

// errEmbeds says that a copy lacks a vector of its source.
var errEmbeds = errors.New("the source has no vector for a chunk; complete it with `cairn index` first")

// CopyOut copies a folder's own index to a store. Documents that are there
// already, in the same version, are not sent again, so an interrupted copy
// continues. Nothing is embedded. progress may be nil.
func CopyOut(ctx context.Context, sel config.Selection, s *mirror.Store, o Options, progress func(Progress)) (*CopyReport, error) {
	w := &Workspace{selection: sel, dir: filepath.Join(sel.Root, ".cairn", "index")}
	if ok, err := w.indexed(); err != nil || !ok {
		return nil, errors.Join(err, ErrNoIndex)
	}
	return w.copy(ctx, s, o, progress, func(m *mirror.Mirror, _ *stores, tell func(string) func(int, int)) (mirror.Report, error) {
		return m.Sync(ctx, tell("copy"))
	})
}

// CopyIn copies a store to a folder's own index, as CopyOut does the other way.
// It does not look at the folder's files.
func CopyIn(ctx context.Context, sel config.Selection, s *mirror.Store, o Options, progress func(Progress)) (*CopyReport, error) {
	w := &Workspace{selection: sel, dir: filepath.Join(sel.Root, ".cairn", "index")}
	return w.copy(ctx, s, o, progress, func(m *mirror.Mirror, to *stores, tell func(string) func(int, int)) (mirror.Report, error) {
		start := time.Now()
		report, err := m.Import(ctx, tell("copy"))
		if err != nil {
			return report, err
		}
		model, err := o.Model()
		if err != nil {
			return report, err
		}
		x := indexer.New(indexer.Stores{Files: to.files, Docs: to.docs, Keyword: to.text, Vectors: to.vectors, Cache: to.cache}, refusing{model}, nil)
		phase := func(p indexer.Progress) { tell(string(p.Phase))(p.ChunksDone, p.ChunksTotal) }
		if err := x.Keywords(ctx, phase); err != nil {
			return report, err
		}
		if err := x.Vectors(ctx, phase); err != nil {
			return report, err
		}
		_, err = to.docs.Advance(ctx, []string{sel.Root}, start)
		return report, err
	})
}

// refusing is a model that embeds nothing.
type refusing struct{ models.Embedder }

func (refusing) EmbedDocuments(context.Context, []string) ([][]float32, error) { return nil, errEmbeds }

// copy runs fn as the owner of the folder's index, and verifies what it did.
func (w *Workspace) copy(ctx context.Context, s *mirror.Store, o Options, progress func(Progress), fn func(*mirror.Mirror, *stores, func(string) func(int, int)) (mirror.Report, error)) (*CopyReport, error) {
	start := time.Now()
	tell := func(phase string) func(done, total int) {
		return func(done, total int) {
			if progress != nil {
				progress(Progress{Phase: phase, Done: done, Total: total})
			}
		}
	}
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
	stores, err := openStores(w.selection, w.dir, o.Description, Owning, false, o.Logger)
	if err != nil {
		return nil, err
	}
	defer stores.close()
	if err := stores.mirrorTo(s.Exact(), o.Description, o.Model, &mirror.Options{
		Log: o.Logger, Waiting: func(holder string) { tell("waiting for "+holder)(0, 0) },
	}); err != nil {
		return nil, err
	}
	done, err := fn(stores.mirror, stores, tell)
	if err != nil {
		return nil, err
	}
	v, err := stores.mirror.Verify(ctx, tell("verify"))
	if err != nil {
		return nil, err
	}
	return &CopyReport{
		Documents: v.Documents, Copied: done.Copied, Removed: done.Removed, Chunks: v.Chunks, Probes: v.Probes, Overlap: v.Overlap, Seconds: time.Since(start).Seconds(),
	}, nil
}

// mirrorTo prepares the mirror of the stores in s.
func (s *stores) mirrorTo(to *mirror.Store, d models.Description, open func() (models.Embedder, error), o *mirror.Options) (err error) {
	s.mirror, err = mirror.New(to, mirror.Index{
		Docs: s.docs, Vectors: s.vectors, Cache: s.cache, Model: d,
		Chunker: func() (*indexer.Chunker, error) {
			model, err := open()
			if err != nil {
				return nil, fmt.Errorf("opening the embedding model: %w", err)
			}
			return indexer.NewChunker(d, model.Tokenizer(), nil), nil
		},
	}, o)
	return err
}
