package mirror

import (
	"context"
	"maps"
	"slices"

	"cairn/internal/base/job"
	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/store/qdrant"
)

// Adopt is Import for an index without documents. It does nothing if the index has
// documents, if the store was never written, or if the store has another model or other
// chunk rules.
func (m *Mirror) Adopt(ctx context.Context) error {
	now, err := m.local()
	if err != nil || now.Counts.Files > 0 {
		return err
	}
	state, _, err := readState(ctx, m.client.Records())
	if err != nil || state.Meta.Format == 0 || state.Meta.Model.ID != m.index.Model.ID || state.Meta.Chunks != now.Meta.Chunks {
		return err
	}
	_, err = m.Import(ctx, nil)
	return err
}

// Import updates the documents of the index to those of the store, and adds their vectors
// to the vector store. The indexer can then fill the derived indexes without embedding.
// progress may be nil.
func (m *Mirror) Import(ctx context.Context, progress func(job.Progress)) (r Report, err error) {
	held := map[string]qdrant.DocumentHead{}
	if err := m.documents.List(ctx, "", func(h qdrant.DocumentHead) bool { held[h.Path] = h; return true }); err != nil {
		return r, err
	}
	files, err := m.index.Docs.Files()
	if err != nil {
		return r, err
	}
	take := slices.DeleteFunc(slices.Sorted(maps.Keys(held)), func(path string) bool {
		f, ok := files[path]
		return ok && !differs(held[path], &f)
	})
	removed := missing(files, held)
	for batch := range slices.Chunk(take, batchDocuments) {
		n, err := m.get(ctx, batch)
		if err != nil {
			return r, err
		}
		if r.Copied += n; progress != nil {
			progress(job.Progress{Phase: "copy", Done: r.Copied, Total: len(take)})
		}
	}
	r.Removed = len(removed)
	return r, m.index.Docs.Delete(ctx, removed)
}

// get copies documents from the store. It stores the vectors first, so that every stored
// document has its vectors, even if the copy is interrupted.
func (m *Mirror) get(ctx context.Context, paths []string) (int, error) {
	chunker, err := m.index.Chunker()
	if err != nil {
		return 0, err
	}
	found, err := m.documents.Load(ctx, paths...)
	if err != nil {
		return 0, err
	}
	var puts []docs.Put
	var ids []string
	var keys []store.Key
	for _, path := range slices.Sorted(maps.Keys(found)) {
		d := found[path]
		puts = append(puts, docs.Put{Document: *d.Document, Text: d.Text})
		ids = append(ids, d.Document.ChunkIDs()...)
		for i := range d.Document.Sections {
			for n := range d.Document.Sections[i].Chunks {
				keys = append(keys, store.KeyOf(chunker.EmbedText(d.Document, i, n, string(d.Text))))
			}
		}
	}
	vectors, err := m.chunks.Vectors().Vectors(ctx, ids)
	if err != nil {
		return 0, err
	}
	var known []store.Key
	var of [][]float32
	for i, v := range vectors {
		if v != nil {
			known, of = append(known, keys[i]), append(of, v)
		}
	}
	if err := m.index.Vectors.Put(known, of); err != nil {
		return 0, err
	}
	return len(puts), m.index.Docs.Put(ctx, puts)
}
