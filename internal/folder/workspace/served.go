package workspace

import (
	"context"
	"errors"

	"cairn/internal/folder/index"
	"cairn/internal/folder/mirror"
	"cairn/internal/store/docs"
)

// remoteStores opens the Qdrant store of w for reading.
func (w *Workspace) remoteStores() (*index.Stores, error) {
	client, err := w.options.Store.Dial(w.options.Logger)
	if err != nil {
		return nil, err
	}
	d := w.options.Description
	source, chunks := mirror.NewSource(client, w.options.Now), client.Current().Chunks(d.Dimension, d.ID)
	// Report a wrong model now, but accept an unavailable store: it may become available.
	meta, _, err := source.State()
	if err == nil && meta.Generation > 0 {
		if err = chunks.Open(context.Background()); err == nil {
			err = source.Open(context.Background())
		}
	}
	if err != nil && !mirror.Unavailable(err) {
		return nil, errors.Join(err, client.Close())
	}
	return &index.Stores{
		Docs: docs.Remote(source), Keyword: chunks.Keyword(), Vectors: chunks.Vectors(), Legs: chunks, Closers: []func() error{client.Close},
	}, nil
}
