package workspace

import (
	"context"
	"errors"
	"sync"

	"cairn/internal/mirror"
	"cairn/internal/store/docs"
	"cairn/internal/store/qdrant"
	"cairn/internal/walk"
	"cairn/models"
	"cairn/models/bpe"
	"cairn/retriever"
)

// served answers from a Qdrant store alone: it has no index, no files and no
// lock. Any number of processes do so at the same time.
type served struct {
	w         *Workspace
	client    *qdrant.Client
	source    *mirror.Source
	model     *models.Lazy
	warm      sync.WaitGroup
	retriever *retriever.Retriever
}

// errNoWriter says that a process without files cannot index.
var errNoWriter = errors.New("this process only answers from the store; run `cairn index --store ...` where the files are")

func openServed(w *Workspace) (engine, error) {
	client, err := w.options.Store.Dial(w.options.Logger)
	if err != nil {
		return nil, err
	}
	d := w.options.Description
	s := &served{w: w, client: client, source: mirror.NewSource(client, w.options.Now), model: models.NewLazy(d, w.options.Model)}
	chunks := client.Current().Chunks(d.Dimension, d.ID)
	// Report the wrong model at once; a store that is away may come back.
	meta, _, err := s.source.State()
	if err == nil && meta.Generation > 0 {
		if err = chunks.Open(context.Background()); err == nil {
			err = s.source.Open(context.Background())
		}
	}
	if err == nil || mirror.Unavailable(err) {
		s.retriever, err = retriever.New(retriever.Sources{
			Documents: docs.Remote(s.source), Keyword: chunks.Keyword(), Vectors: chunks.Vectors(), Legs: chunks,
			Embedder: s.model, Budget: &bpe.Counter{}, Files: walk.Virtual(s.source),
		}, w.retrieverOptions())
	}
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	if w.options.Warm {
		s.warm.Go(func() { _, _ = s.model.Open() }) // a search that needs the model gets the same error
	}
	return s, nil
}

// indexed returns nil if the store was ever written, else the engine of a folder
// without an index.
func (s *served) indexed() (engine, error) {
	meta, _, err := s.source.State()
	if err == nil && meta.Format == 0 {
		return missing{s.w}, nil
	}
	return nil, err
}

func (s *served) Search(ctx context.Context, q retriever.Query) (*retriever.Answer, error) {
	if none, err := s.indexed(); err != nil {
		return nil, err
	} else if none != nil {
		return none.Search(ctx, q)
	}
	return s.retriever.Search(ctx, q)
}

func (s *served) Explain(ctx context.Context, r ExplainRequest) (*retriever.Trace, error) {
	if none, err := s.indexed(); err != nil {
		return nil, err
	} else if none != nil {
		return none.Explain(ctx, r)
	}
	return s.retriever.Explain(ctx, r.Query, r.Candidates)
}

func (s *served) Read(ctx context.Context, r retriever.ReadRequest) (*retriever.Reading, error) {
	return s.retriever.Read(ctx, r)
}

func (s *served) ReadAll(ctx context.Context, r retriever.ReadRequest) (*retriever.Readings, error) {
	return s.retriever.ReadAll(ctx, r)
}

// Index implements engine. A process that was started without files stays so;
// another one opens the folder.
func (s *served) Index(context.Context, IndexRequest, func(Progress)) (*IndexReport, error) {
	return nil, s.readOnly()
}

// Watch implements engine: there are no files to watch.
func (s *served) Watch(context.Context, func(WatchEvent)) error { return s.readOnly() }

func (s *served) readOnly() error {
	if s.w.options.Stateless {
		return errNoWriter
	}
	return errReadOnly
}

func (s *served) Status(context.Context) (*Status, error) {
	meta, counts, err := s.source.State()
	if err != nil {
		st := s.w.status(retriever.IndexState{State: "unusable"})
		st.Problem = err.Error()
		return st, nil
	}
	return s.w.status(retriever.NewIndexState(meta, counts, false)), nil
}

func (s *served) close() error {
	s.warm.Wait()
	return errors.Join(s.model.Close(), s.client.Close())
}
