package workspace

import (
	"context"
	"errors"
	"time"

	"cairn/internal/base/home"
	"cairn/internal/base/job"
	"cairn/internal/base/owner"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/internal/folder/mirror"
	"cairn/models"
)

// CopyReport is what a copy of an index did, and the result of its verification.
type CopyReport struct {
	mirror.Report
	mirror.Verification
	Seconds float64 `json:"seconds"`
}

// errEmbeds reports a chunk without a vector in the source of a copy.
var errEmbeds = errors.New("the source has no vector for a chunk; complete it with `cairn index` first")

// CopyOut copies a folder's own index to a store. It skips documents of which the store
// has the same version, so that an interrupted copy can continue. It embeds nothing.
// progress may be nil.
func CopyOut(ctx context.Context, sel config.Selection, cfg config.Config, s *mirror.Store, o Options, progress func(job.Progress)) (*CopyReport, error) {
	if place, err := home.Of(sel.Root); err != nil || !index.Exists(place.Index) {
		return nil, errors.Join(err, index.ErrNoIndex)
	}
	return copyIndex(ctx, sel, cfg, s, o, progress, func(m *mirror.Mirror, _ *index.Stores) (mirror.Report, error) {
		return m.Sync(ctx, progress)
	})
}

// CopyIn is the reverse of CopyOut: it copies a store to a folder's own index. It does
// not look at the folder's files.
func CopyIn(ctx context.Context, sel config.Selection, cfg config.Config, s *mirror.Store, o Options, progress func(job.Progress)) (*CopyReport, error) {
	return copyIndex(ctx, sel, cfg, s, o, progress, func(m *mirror.Mirror, to *index.Stores) (mirror.Report, error) {
		start := time.Now()
		report, err := m.Import(ctx, progress)
		if err != nil {
			return report, err
		}
		model, err := o.Model()
		if err != nil {
			return report, err
		}
		x := to.Indexer(refusing{model}, nil)
		if err := x.Keywords(ctx, progress); err != nil {
			return report, err
		}
		if err := x.Vectors(ctx, progress); err != nil {
			return report, err
		}
		_, err = to.Docs.Advance(ctx, []string{sel.Root}, start)
		return report, err
	})
}

// refusing is a model that fails to embed documents.
type refusing struct{ models.Embedder }

func (refusing) EmbedDocuments(context.Context, []string) ([][]float32, error) { return nil, errEmbeds }

// copyIndex runs fn as the owner of the folder's index, and verifies the copy.
func copyIndex(ctx context.Context, sel config.Selection, cfg config.Config, s *mirror.Store, o Options, progress func(job.Progress), fn func(*mirror.Mirror, *index.Stores) (mirror.Report, error)) (*CopyReport, error) {
	start := time.Now()
	if progress == nil {
		progress = func(job.Progress) {}
	}
	place, err := home.Of(sel.Root)
	if err == nil {
		err = place.Make()
	}
	if err != nil {
		return nil, err
	}
	release, err := owner.Lock(ctx, place.Index, o.Command)
	if err != nil {
		return nil, err
	}
	defer release()
	stores, err := index.Open(sel, place.Index, cfg.Masks(), o.Description, true, nil, o.Logger)
	if err != nil {
		return nil, err
	}
	defer stores.Close()
	if err := stores.MirrorTo(s.Exact(), models.NewLazy(o.Description, o.Model), &mirror.Options{Log: o.Logger}); err != nil {
		return nil, err
	}
	done, err := fn(stores.Mirror, stores)
	if err != nil {
		return nil, err
	}
	v, err := stores.Mirror.Verify(ctx, progress)
	if err != nil {
		return nil, err
	}
	return &CopyReport{done, v, time.Since(start).Seconds()}, nil
}
