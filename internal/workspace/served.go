package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync"
	"time"

	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/store/qdrant"
	"cairn/internal/walk"
	"cairn/models"
	"cairn/models/bpe"
	"cairn/retriever"
)

// served answers from a shared store alone: it has no index, no files and no
// lock. Any number of processes do so at the same time.
type served struct {
	w         *Workspace
	client    *qdrant.Client
	source    *remoteSource
	model     *models.Lazy
	warm      sync.WaitGroup
	retriever *retriever.Retriever
}

// errNoWriter says that a process without files cannot index.
var errNoWriter = errors.New("this process only answers from the store; run `cairn index --store ...` where the files are")

func openServed(w *Workspace) (engine, error) {
	client, err := w.options.Store.dial(w.options.Logger)
	if err != nil {
		return nil, err
	}
	g, d := client.Current(), w.options.Description
	s := &served{w: w, client: client, source: &remoteSource{documents: g.Documents(), records: client.Records(), now: w.options.Now}}
	s.model = models.NewLazy(d, w.options.Model)
	vectors := g.Vectors(d.Dimension, d.ID)
	// The wrong model is said at once; a store that is away may come back.
	if meta, _, err := s.source.State(); err == nil && meta.Generation > 0 {
		if _, err := vectors.Count(); err != nil && !away(err) {
			return nil, errors.Join(err, client.Close())
		}
	} else if err != nil && !away(err) {
		return nil, errors.Join(err, client.Close())
	}
	s.retriever, err = retriever.New(retriever.Sources{
		Documents: docs.Remote(s.source), Keyword: g.Keyword(), Vectors: vectors, Embedder: s.model, Budget: &bpe.Counter{}, Files: walk.Virtual(s.source),
	}, &retriever.Options{
		VectorWeight: w.config.Search.SemanticWeight, KeywordWeight: w.config.Search.KeywordWeight,
		QueryCache: w.config.Search.EmbeddingCacheMaxEntries, TokenLimit: w.config.Core.TokenLimit,
		Extensions: w.config.Extensions(), Log: w.options.Logger,
		Reweigher: retriever.CoUsage{Usage: w.usageGraph, Log: w.options.Logger}, ReweighLimit: retriever.CoUsageLimit,
	})
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	if w.options.Warm {
		s.warm.Go(func() { _, _ = s.model.Open() }) // who needs the model gets the same error again
	}
	return s, nil
}

func (s *served) Search(ctx context.Context, q retriever.Query) (*retriever.Answer, error) {
	if meta, _, err := s.source.State(); err != nil {
		return nil, err
	} else if meta.Format == 0 {
		return missing{s.w}.Search(ctx, q)
	}
	return s.retriever.Search(ctx, q)
}

func (s *served) Explain(ctx context.Context, r ExplainRequest) (*retriever.Trace, error) {
	if meta, _, err := s.source.State(); err != nil {
		return nil, err
	} else if meta.Format == 0 {
		return missing{s.w}.Explain(ctx, r)
	}
	return s.retriever.Explain(ctx, r.Query, r.Candidates)
}

func (s *served) Read(ctx context.Context, r retriever.ReadRequest) (*retriever.Reading, error) {
	return s.retriever.Read(ctx, r)
}

func (s *served) ReadAll(ctx context.Context, r retriever.ReadRequest) (*retriever.Readings, error) {
	return s.retriever.ReadAll(ctx, r)
}

// Index implements engine. A server that was told not to write stays one.
func (s *served) Index(context.Context, IndexRequest, func(Progress)) (*IndexReport, error) {
	if s.w.options.Stateless {
		return nil, errNoWriter
	}
	return nil, errReadOnly
}

// Watch implements engine: there are no files to watch.
func (s *served) Watch(context.Context, func(WatchEvent)) error {
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

// stateAge is how old what is known of the index as a whole may be.
const stateAge = 500 * time.Millisecond

// infoAge is how long the size and time of a document that was just read are
// not asked again: an answer compares each of its documents with "the file".
const infoAge = time.Second

// remoteSource is the documents of a shared store, as docs.Source and walk.Stored.
type remoteSource struct {
	documents *qdrant.Documents
	records   *qdrant.Records
	now       func() time.Time

	mu     sync.Mutex
	state  sharedState
	at     time.Time
	recent map[string]storedInfo
}

// State implements docs.Source.
func (s *remoteSource) State() (docs.Meta, docs.Counts, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.now(); s.state.Meta.Format == 0 || now.Sub(s.at) > stateAge {
		value, version, err := s.records.Get(context.Background(), stateRecord)
		if err != nil {
			return docs.Meta{}, docs.Counts{}, err
		}
		var state sharedState
		if version > 0 {
			if err := json.Unmarshal(value, &state); err != nil {
				return docs.Meta{}, docs.Counts{}, fmt.Errorf("reading the state of the store: %w", err)
			}
		}
		s.state, s.at = state, now
	}
	return s.state.Meta, s.state.Counts, nil
}

// Load implements docs.Source.
func (s *remoteSource) Load(path string) (*store.Document, []byte, error) {
	doc, body, err := s.documents.Load(context.Background(), path)
	if doc != nil {
		s.remember(storedInfo{path: doc.Path, size: doc.Size, modTime: doc.ModTime})
	}
	return doc, body, err
}

// File implements docs.Source.
func (s *remoteSource) File(path string) (docs.File, bool, error) {
	h, ok, err := s.documents.Head(context.Background(), path)
	if !ok || err != nil {
		return docs.File{}, false, err
	}
	f, err := fileOf(h)
	return f, err == nil, err
}

// Files implements docs.Source.
func (s *remoteSource) Files(prefix string, fn func(docs.File) bool) error {
	var heads []qdrant.DocumentHead
	if err := s.documents.List(context.Background(), prefix, func(h qdrant.DocumentHead) bool { heads = append(heads, h); return true }); err != nil {
		return err
	}
	slices.SortFunc(heads, func(a, b qdrant.DocumentHead) int {
		if a.Path < b.Path {
			return -1
		}
		return 1
	})
	for _, h := range heads {
		f, err := fileOf(h)
		if err != nil {
			return err
		}
		if !fn(f) {
			return nil
		}
	}
	return nil
}

func fileOf(h qdrant.DocumentHead) (docs.File, error) {
	return docs.NewFile(h.Path, h.Hash, h.Size, h.ModTime, h.Sections, h.Chunks)
}

// Stat implements walk.Stored.
func (s *remoteSource) Stat(name string) (fs.FileInfo, error) {
	s.mu.Lock()
	info, ok := s.recent[name]
	s.mu.Unlock()
	if ok && s.now().Sub(info.seen) < infoAge {
		return info, nil
	}
	h, ok, err := s.documents.Head(context.Background(), name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return s.remember(storedInfo{path: name, size: h.Size, modTime: h.ModTime}), nil
}

// Read implements walk.Stored.
func (s *remoteSource) Read(name string) ([]byte, fs.FileInfo, error) {
	doc, body, err := s.documents.Load(context.Background(), name)
	if err != nil {
		return nil, nil, err
	}
	if doc == nil {
		return nil, nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return body, s.remember(storedInfo{path: name, size: doc.Size, modTime: doc.ModTime}), nil
}

// maxRecent bounds what is remembered.
const maxRecent = 4096

func (s *remoteSource) remember(info storedInfo) storedInfo {
	info.seen = s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.recent == nil || len(s.recent) >= maxRecent {
		s.recent = map[string]storedInfo{}
	}
	s.recent[info.path] = info
	return info
}

// storedInfo is the fs.FileInfo of a document in a store.
type storedInfo struct {
	path    string
	size    int64
	modTime int64 // Unix nanoseconds
	seen    time.Time
}

func (i storedInfo) Name() string       { return path.Base(i.path) }
func (i storedInfo) Size() int64        { return i.size }
func (i storedInfo) Mode() fs.FileMode  { return 0o444 }
func (i storedInfo) ModTime() time.Time { return time.Unix(0, i.modTime) }
func (i storedInfo) IsDir() bool        { return false }
func (i storedInfo) Sys() any           { return nil }
