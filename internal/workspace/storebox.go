package workspace

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"

	lru "github.com/hashicorp/golang-lru/v2"

	"cairn/internal/catalog"
	"cairn/internal/store/qdrant"
	"cairn/internal/store/shared"
	"cairn/internal/store/vectorcache"
	"cairn/internal/toolsearch"
	"cairn/internal/usage"
	"cairn/models"
)

// Names of records in a store: the catalogue of tools, what is learnt from use
// with its journal, and the vectors of tools and intents, by model and text.
const (
	catalogRecord      = "catalogue"
	usageRecord        = "usage"
	vectorRecordPrefix = "vector/"
)

// OpenSharedToolbox opens the toolbox of a store, which all processes on it share:
// what one imports or learns the others know within two seconds. Whatever costs
// time to make is in the store as well, but for the words of a large catalogue,
// which are kept in the folder of sel unless stateless.
func OpenSharedToolbox(sel Selection, c UsageConfig, s *Store, stateless bool, log *slog.Logger) (*Toolbox, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	t, err := openStoreBox(s, c, log)
	if err != nil {
		return nil, err
	}
	if !stateless {
		w := &Workspace{selection: sel, dir: filepath.Join(sel.Root, ".cairn", "index")}
		t.keywords, t.prepare = filepath.Join(w.dir, toolKeywordsFolder), w.prepare
	}
	return t, nil
}

// openStoreBox opens the catalogue and the usage graph of a store.
func openStoreBox(s *Store, c UsageConfig, log *slog.Logger) (*Toolbox, error) {
	client, err := s.dial(log)
	if err != nil {
		return nil, err
	}
	t := &Toolbox{client: client}
	records := client.Records()
	t.newVectors = func(d models.Description) toolsearch.VectorCache { return newStoreVectors(records, d, log) }
	o := shared.Options{Conflict: func(err error) bool { return errors.Is(err, qdrant.ErrConflict) }, Away: away}
	u := shared.OpenUsage(records, usageRecord, o)
	g := c.graph()
	g.Journal = u.Journal()
	if t.Usage, err = usage.Open(u, g); err == nil {
		t.Catalog, err = catalog.Open(shared.Open(records, catalogRecord, o))
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// storeVectors keeps the vectors of tools and intents in records, so that each is
// made once for all servers, and those it has seen in memory. It is a cache: what
// it cannot read is made again.
type storeVectors struct {
	records *qdrant.Records
	model   models.Description
	log     *slog.Logger
	seen    *lru.Cache[vectorcache.Key, []float32]
}

func newStoreVectors(r *qdrant.Records, d models.Description, log *slog.Logger) *storeVectors {
	c, _ := lru.New[vectorcache.Key, []float32](rememberedVectors) // the size is positive
	return &storeVectors{records: r, model: d, log: log, seen: c}
}

// vectorPage is how many vectors one request carries, some 2 KB each.
const vectorPage = 256

func (v *storeVectors) name(key [32]byte) string {
	return vectorRecordPrefix + v.model.ID + "/" + hex.EncodeToString(key[:16])
}

// Get implements toolsearch.VectorCache.
func (v *storeVectors) Get(keys [][32]byte) ([][]float32, error) {
	vectors := make([][]float32, len(keys))
	var missing []int
	for i, k := range keys {
		if vectors[i], _ = v.seen.Get(k); vectors[i] == nil {
			missing = append(missing, i)
		}
	}
	for len(missing) > 0 {
		page := missing[:min(vectorPage, len(missing))]
		missing = missing[len(page):]
		names := make([]string, len(page))
		for n, i := range page {
			names[n] = v.name(keys[i])
		}
		values, err := v.records.Values(context.Background(), names)
		if err != nil {
			v.log.Warn("reading vectors of tools", "error", err)
			break // the store is away; they are made
		}
		for n, i := range page {
			if vectors[i] = v.decode(values[n]); vectors[i] != nil {
				v.seen.Add(keys[i], vectors[i])
			}
		}
	}
	return vectors, nil
}

// Put implements toolsearch.VectorCache.
func (v *storeVectors) Put(keys [][32]byte, vectors [][]float32) error {
	for from := 0; from < len(keys); from += vectorPage {
		to := min(from+vectorPage, len(keys))
		var names []string
		var values [][]byte
		for i := from; i < to; i++ {
			v.seen.Add(keys[i], vectors[i])
			var b []byte
			for _, x := range vectors[i] {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
			}
			names, values = append(names, v.name(keys[i])), append(values, b)
		}
		if err := v.records.PutValues(context.Background(), names, values); err != nil {
			v.log.Warn("keeping vectors of tools", "error", err) // another server makes them again
		}
	}
	return nil
}

// decode returns nil for what is no vector of the model.
func (v *storeVectors) decode(b []byte) []float32 {
	if len(b) != 4*v.model.Dimension {
		return nil
	}
	vector := make([]float32, v.model.Dimension)
	for i := range vector {
		vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		if x := float64(vector[i]); math.IsNaN(x) || math.IsInf(x, 0) {
			return nil
		}
	}
	return vector
}

// CopyToolbox makes what a folder knows about tools that of a store, or with back
// the other way round, and returns how many tools there are then. What is empty
// is not copied: the other side keeps what it has.
func CopyToolbox(sel Selection, c UsageConfig, s *Store, back bool, log *slog.Logger) (tools int, err error) {
	from, err := OpenToolbox(sel, c)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := OpenSharedToolbox(sel, c, s, true, log)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	source, dest := from, to
	if back {
		source, dest = to, from
	}
	if err := source.Catalog.CopyTo(dest.Catalog); err != nil {
		return 0, fmt.Errorf("copying the catalogue of tools: %w", err)
	}
	if err := source.Usage.CopyTo(dest.Usage); err != nil {
		return 0, fmt.Errorf("copying what was learnt from use: %w", err)
	}
	list, err := dest.Catalog.Tools()
	return len(list), err
}
