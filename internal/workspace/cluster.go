package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"sync"
	"time"

	"cairn/internal/query"
	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/store/keyword"
	"cairn/internal/store/qdrant"
	"cairn/models"
)

// Store is an index beyond this machine that many processes share.
type Store struct {
	target  qdrant.Target
	options qdrant.Options
}

// ParseStore reads an address such as qdrant://HOST:6334/COLLECTION and, from
// the environment, what does not belong in one: QDRANT_API_KEY, QDRANT_CA_FILE,
// and for the collections that are made CAIRN_STORE_SHARDS, CAIRN_STORE_REPLICAS
// and CAIRN_STORE_WRITE_CONSISTENCY; CAIRN_STORE_EXACT=true searches exactly.
func ParseStore(address string, getenv func(string) string) (*Store, error) {
	target, err := qdrant.ParseTarget(address)
	if err != nil {
		return nil, err
	}
	s := &Store{target: target, options: qdrant.Options{APIKey: getenv("QDRANT_API_KEY"), CAFile: getenv("QDRANT_CA_FILE")}}
	for name, to := range map[string]*uint32{
		"CAIRN_STORE_SHARDS": &s.options.Shards, "CAIRN_STORE_REPLICAS": &s.options.Replicas, "CAIRN_STORE_WRITE_CONSISTENCY": &s.options.WriteConsistency,
	} {
		if value := getenv(name); value != "" {
			n, err := strconv.ParseUint(value, 10, 16)
			if err != nil || n < 1 {
				return nil, fmt.Errorf("environment variable %s=%q: want a number from 1", name, value)
			}
			*to = uint32(n)
		}
	}
	if value := getenv("CAIRN_STORE_EXACT"); value != "" {
		if s.options.Exact, err = strconv.ParseBool(value); err != nil {
			return nil, fmt.Errorf("environment variable CAIRN_STORE_EXACT=%q: want true or false", value)
		}
	}
	return s, nil
}

func (s *Store) String() string { return s.target.String() }

func (s *Store) dial(log *slog.Logger) (*qdrant.Client, error) {
	o := s.options
	o.Log = log
	return qdrant.Dial(s.target, &o)
}

// dialExact searches exactly, whatever the options say.
func (s *Store) dialExact(log *slog.Logger) (*qdrant.Client, error) {
	exact := *s
	exact.options.Exact = true
	return exact.dial(log)
}

// dir is where a writer keeps what it needs of its own: documents, embeddings,
// and the keyword index that answers while the store is away.
func (s *Store) dir(index string) string {
	sum := sha256.Sum256([]byte(s.target.String()))
	return filepath.Join(index, "store-"+hex.EncodeToString(sum[:6]))
}

// stateRecord is the record of what the writer knows of the index as a whole.
const stateRecord = "state"

type sharedState struct {
	Meta   docs.Meta   `json:"meta"`
	Counts docs.Counts `json:"counts"`
}

// announceEvery is how often a changed state is written to the store.
const announceEvery = 500 * time.Millisecond

// cluster joins the stores of a folder with a store that is shared: what is
// indexed goes to both, vectors only to the shared one, and keyword queries are
// answered here when that is away. Only one process writes at a time; others
// wait for its lease.
type cluster struct {
	client   *qdrant.Client
	docs     *docs.Store
	text     *keyword.Index
	log      *slog.Logger
	holder   string
	readOnly bool

	documents *qdrant.Documents
	words     *qdrant.Keyword
	remote    *qdrant.Vectors

	writing sync.Mutex // one write at a time; guards what follows
	next    *qdrant.Generation
	held    map[string]qdrant.DocumentHead // what the store has; nil until asked
	lease   *qdrant.Lease
	leased  context.Context // of the lease

	announced sharedState // the last one; used by announce alone
	stop      context.CancelFunc
	stopped   chan struct{}
}

// joinCluster opens the shared store for a folder. With fresh a new generation is
// built, which finish brings into use.
func joinCluster(ctx context.Context, s *Store, local *stores, d models.Description, readOnly, fresh bool, log *slog.Logger) (*cluster, error) {
	client, err := s.dial(log)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	c := &cluster{
		client: client, docs: local.docs, text: local.text, log: log, readOnly: readOnly,
		holder: fmt.Sprintf("process %d on %s", os.Getpid(), host), stopped: make(chan struct{}),
	}
	generation := client.Current()
	if fresh {
		if c.next, err = client.Next(ctx); err != nil {
			return nil, errors.Join(err, client.Close())
		}
		generation = c.next
	}
	c.use(generation, d)
	ctx, c.stop = context.WithCancel(context.Background())
	if readOnly {
		close(c.stopped)
	} else {
		go c.announce(ctx)
	}
	return c, nil
}

func (c *cluster) use(g *qdrant.Generation, d models.Description) {
	c.documents, c.words, c.remote = g.Documents(), g.Keyword(), g.Vectors(d.Dimension, d.ID)
}

// lead waits until this process may write. c.writing is held.
func (c *cluster) lead(ctx context.Context) error {
	if c.readOnly {
		return errReadOnly
	}
	if c.lease != nil && c.leased.Err() == nil {
		return nil
	}
	// The lease outlives the call it was taken for.
	lease, leased, err := c.client.Lease(ctx, c.holder, func(holder string) {
		c.log.Warn("waiting for another writer of the store", "holder", holder)
	})
	if err != nil {
		return err
	}
	c.lease, c.leased, c.held = lease, leased, nil
	return nil
}

// publish brings documents of the store up to those of the folder: the named
// ones, or with nil all. A document is there before its chunks and leaves
// before them, so what is found can be read or is passed over. c.writing is held.
func (c *cluster) publish(ctx context.Context, paths map[string]bool) error {
	if c.held == nil {
		held := map[string]qdrant.DocumentHead{}
		if err := c.documents.List(ctx, "", func(h qdrant.DocumentHead) bool { held[h.Path] = h; return true }); err != nil {
			return err
		}
		c.held = held
	}
	files, err := c.docs.Files()
	if err != nil {
		return err
	}
	if paths == nil {
		paths = map[string]bool{}
		for path := range files {
			paths[path] = true
		}
		for path := range c.held {
			paths[path] = true
		}
	}
	var gone []string
	for path := range paths {
		f, ok := files[path]
		have, known := c.held[path]
		switch {
		case !ok && known:
			gone = append(gone, path)
		case ok && (!known || have.Hash != f.HexHash() || have.Size != f.Size || have.ModTime != f.ModTime):
			if err := c.publishOne(ctx, path); err != nil {
				return err
			}
		}
	}
	if err := c.documents.Delete(ctx, gone); err != nil {
		return err
	}
	for _, path := range gone {
		delete(c.held, path)
	}
	return nil
}

func (c *cluster) publishOne(ctx context.Context, path string) error {
	var doc *store.Document
	var body []byte
	err := c.docs.View(func(r *docs.Reader) (err error) {
		doc, err = r.Document(path)
		body = append([]byte{}, r.Text(path)...)
		return err
	})
	if err != nil || doc == nil {
		return err
	}
	if err := c.documents.Put(ctx, doc, body); err != nil {
		return err
	}
	c.held[path] = qdrant.DocumentHead{Path: path, Hash: doc.Hash, Size: doc.Size, ModTime: doc.ModTime}
	return nil
}

// finish ends a run of the indexer: documents without chunks follow, and a new
// generation takes the place of the old one.
func (c *cluster) finish(ctx context.Context, d models.Description) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.lead(ctx); err != nil {
		return err
	}
	if err := c.publish(ctx, nil); err != nil {
		return err
	}
	if err := c.words.Complete(ctx); err != nil {
		return err
	}
	if c.next != nil {
		if _, err := c.remote.Count(); err != nil { // an empty folder has made no collection yet
			return err
		}
		if err := c.next.Activate(ctx); err != nil {
			return err
		}
		c.use(c.client.Current(), d)
		c.next = nil
	}
	return c.tell(ctx)
}

// announce writes the state of the index to the store while it changes.
func (c *cluster) announce(ctx context.Context) {
	defer close(c.stopped)
	tick := time.NewTicker(announceEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !c.writing.TryLock() {
			continue // a batch is being written; the state changes after it
		}
		var err error
		if c.lease != nil && c.leased.Err() == nil && c.next == nil {
			err = c.tell(ctx)
		}
		c.writing.Unlock()
		if err != nil && ctx.Err() == nil {
			c.log.Warn("telling the state of the index to the store", "error", err)
		}
	}
}

// tell writes the state if it has changed. c.writing is held.
func (c *cluster) tell(ctx context.Context) (err error) {
	var now sharedState
	if now.Meta, err = c.docs.Meta(); err != nil {
		return err
	}
	if now.Counts, err = c.docs.Counts(); err != nil {
		return err
	}
	if reflect.DeepEqual(now, c.announced) {
		return nil
	}
	value, err := json.Marshal(now)
	if err != nil {
		return err // unreachable: a state always marshals
	}
	_, version, err := c.client.Records().Get(ctx, stateRecord)
	if err != nil {
		return err
	}
	if _, err := c.client.Records().Put(ctx, stateRecord, value, version); err != nil {
		return err
	}
	c.announced = now
	return nil
}

func (c *cluster) close() error {
	c.stop()
	<-c.stopped
	c.writing.Lock()
	defer c.writing.Unlock()
	var err error
	if c.lease != nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
		defer cancel()
		if err = c.lease.Release(ctx); err != nil {
			c.log.Warn("giving back the lease of the store", "error", err) // it runs out
		}
	}
	return c.client.Close()
}

// away reports whether an error means that the store does not answer.
func away(err error) bool {
	_, ok := errors.AsType[*qdrant.UnavailableError](err)
	return ok
}

// StoreAway reports whether an error means that a Store does not answer, so that
// the same request may succeed later.
func StoreAway(err error) bool { return away(err) }

// clusterKeyword is the keyword index of a folder in a cluster.
type clusterKeyword struct{ *cluster }

func (c clusterKeyword) Update(ctx context.Context, entries []store.TextEntry, stale []string) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.lead(ctx); err != nil {
		return err
	}
	paths := map[string]bool{}
	for i := range entries {
		paths[entries[i].Path] = true
	}
	for _, chunk := range stale {
		if path, _, _, ok := store.SplitChunkID(chunk); ok {
			paths[path] = true
		}
	}
	if err := c.publish(ctx, paths); err != nil {
		return err
	}
	if err := c.words.Update(ctx, entries, stale); err != nil {
		return err
	}
	return c.text.Update(ctx, entries, stale)
}

// Search asks the shared index, so that all who share it rank alike, and the one
// here when that is away.
func (c clusterKeyword) Search(ctx context.Context, q query.Query, k int, f store.Filter) ([]store.Hit, error) {
	hits, err := c.words.Search(ctx, q, k, f)
	if away(err) {
		return c.text.Search(ctx, q, k, f)
	}
	return hits, err
}

// Admits implements store.Keyword as Search does.
func (c clusterKeyword) Admits(ctx context.Context, q query.Query, chunks []string) ([]bool, error) {
	admits, err := c.words.Admits(ctx, q, chunks)
	if away(err) {
		return c.text.Admits(ctx, q, chunks)
	}
	return admits, err
}

// Count is that of both, or less than nothing when they differ, so that both
// are filled again.
func (c clusterKeyword) Count() (int, error) {
	here, err := c.text.Count()
	if err != nil {
		return 0, err
	}
	there, err := c.words.Count()
	if err == nil && here != there {
		return -1, nil
	}
	return here, err
}

func (c clusterKeyword) Close() error { return nil }

// clusterVectors is the vector store of a folder in a cluster.
type clusterVectors struct{ *cluster }

func (c clusterVectors) Update(ctx context.Context, entries []store.VectorEntry, stale []string) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.lead(ctx); err != nil {
		return err
	}
	return c.remote.Update(ctx, entries, stale)
}

func (c clusterVectors) Search(ctx context.Context, query []float32, k int, f store.Filter) ([]store.Hit, error) {
	return c.remote.Search(ctx, query, k, f)
}

func (c clusterVectors) Scores(ctx context.Context, query []float32, chunks []string) ([]float64, error) {
	return c.remote.Scores(ctx, query, chunks)
}

func (c clusterVectors) Has(ctx context.Context, chunks []string) ([]bool, error) {
	return c.remote.Has(ctx, chunks)
}

func (c clusterVectors) Count() (int, error) { return c.remote.Count() }

func (c clusterVectors) Close() error { return nil }
