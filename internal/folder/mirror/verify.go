package mirror

import (
	"context"
	"fmt"
	"slices"

	"cairn/internal/base/job"
	"cairn/internal/store"
	"cairn/internal/store/docs"
)

// Verification is the result of Verify.
type Verification struct {
	Documents int `json:"documents"` // in the copy
	Chunks    int `json:"chunks"`
	// Probes counts the queries that were run on both sides. Overlap is the mean share of
	// the best ten hits that both sides found.
	Probes  int     `json:"probes"`
	Overlap float64 `json:"overlap"`
}

// The probes of a verification.
const (
	probes     = 100
	probeHits  = 10
	minOverlap = 0.98
)

// Verify compares the numbers of chunks on both sides and the answers to probes, which are
// vectors of the index, evenly spaced over its documents. The store should search exactly;
// otherwise quantization causes differences, too. progress may
// be nil.
func (m *Mirror) Verify(ctx context.Context, progress func(job.Progress)) (v Verification, err error) {
	counts, err := m.index.Docs.Counts()
	if err != nil {
		return v, err
	}
	v.Documents, v.Chunks = counts.Files, counts.Chunks
	remote := m.chunks.Vectors()
	for _, side := range []struct {
		name  string
		count func() (int, error)
	}{{"vectors in the folder", m.index.Vectors.Count}, {"vectors in the store", remote.Count}, {"chunks in the store", m.chunks.Keyword().Count}} {
		n, err := side.count()
		if err != nil {
			return v, err
		}
		if n != v.Chunks {
			return v, fmt.Errorf("verifying the copy: %d %s, the documents have %d chunks; run it again", n, side.name, v.Chunks)
		}
	}
	chosen, err := m.probes()
	if err != nil || len(chosen) == 0 {
		return v, err
	}
	queries, err := m.index.Vectors.Vectors(ctx, chosen)
	if err != nil {
		return v, err
	}
	same, wanted := 0, 0
	for i, q := range queries {
		want, err := m.index.Vectors.Search(ctx, q, probeHits, store.Filter{})
		if err != nil {
			return v, err
		}
		got, err := remote.Search(ctx, q, probeHits, store.Filter{})
		if err != nil {
			return v, err
		}
		wanted += len(want)
		for _, h := range want {
			if slices.ContainsFunc(got, func(g store.Hit) bool { return g.Chunk == h.Chunk }) {
				same++
			}
		}
		if progress != nil {
			progress(job.Progress{Phase: "verify", Done: i + 1, Total: len(queries)})
		}
	}
	v.Probes, v.Overlap = len(queries), float64(same)/float64(wanted)
	if v.Overlap < minOverlap {
		return v, fmt.Errorf("verifying the copy: %d queries have %.3f of their best %d in common, want %.2f", v.Probes, v.Overlap, probeHits, minOverlap)
	}
	return v, nil
}

// probes returns the IDs of chunks that are evenly spaced over the documents.
func (m *Mirror) probes() (chosen []string, err error) {
	var all []string
	err = m.index.Docs.View(func(r *docs.Reader) error {
		var paths []string
		if err := r.Files("", func(f docs.File) bool { paths = append(paths, f.Path); return true }); err != nil {
			return err
		}
		for i := range min(len(paths), 2*probes) { // some have no chunks
			doc, err := r.Document(paths[i*len(paths)/min(len(paths), 2*probes)])
			if err != nil {
				return err
			}
			all = append(all, doc.ChunkIDs()...)
		}
		return nil
	})
	for i := range min(len(all), probes) {
		chosen = append(chosen, all[i*len(all)/min(len(all), probes)])
	}
	return chosen, err
}
