package benchmarks

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"cairn/indexer"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
	"cairn/internal/store"
	"cairn/internal/store/flat"
	"cairn/internal/text/walk"
	"cairn/internal/toolbox/usage"
	"cairn/models"
	"cairn/retriever"
)

// sourceFolder is the folder of the documents in the folder of a bench.
const sourceFolder = "docs"

// bench is an indexed set.
type bench struct {
	retriever *retriever.Retriever
	options   *retriever.Options // of retriever
	stores    *index.Stores
	o         *DocsOptions
	usage     *usage.Store      // nil without DocsOptions.Learn
	ids       map[string]string // IDs of documents, by path
	paths     map[string]string // paths of documents, by ID
	report    IndexReport
	closers
}

// closers close what a bench has opened, the last first.
type closers []func() error

func (all closers) close() {
	for _, c := range slices.Backward(all) {
		c() // its files are removed after this, or are derived or only read
	}
}

// openBench writes the documents of set below dir and indexes them. If full, a bench of the
// same set, is not nil, it indexes them without titles and headings and uses the cache of
// full.
func openBench(ctx context.Context, dir string, set *beirSet, o *DocsOptions, full *bench) (_ *bench, err error) {
	w := &bench{o: o, ids: make(map[string]string, len(set.documents)), paths: make(map[string]string, len(set.documents))}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	source, indexed := filepath.Join(dir, sourceFolder), filepath.Join(dir, "index")
	for _, d := range []string{source, indexed} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return nil, err
		}
	}
	for _, d := range set.documents {
		name := d.path
		if name == "" {
			name = fileName(d.ID, w.ids)
		}
		w.ids[name], w.paths[d.ID] = d.ID, name
		file := filepath.Join(source, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, []byte(d.markdown()), 0o600); err != nil {
			return nil, err
		}
	}
	log := slog.New(slog.DiscardHandler)
	stores, err := index.Open(config.Selection{Root: source}, indexed, nil, o.Embedder.Description(), true, nil, log)
	if err != nil {
		return nil, err
	}
	w.stores, w.closers = stores, append(w.closers, stores.Close)
	switch {
	case full != nil:
		stores.Cache = full.stores.Cache
	case o.Cache != "":
		cache, err := openCache(o.Cache, o.Embedder.Description())
		if err != nil {
			return nil, err
		}
		stores.Cache, w.closers = cache, append(w.closers, cache.Close)
	}
	if o.Vectors != "" {
		d := o.Embedder.Description()
		// Without an index, or with one that cannot be read, all vectors are made.
		if known, err := flat.Open(o.Vectors, d.Dimension, d.ID, &flat.Options{ReadOnly: true, Logger: log}); err == nil {
			stores.Cache, w.closers = knownVectors{stores.Cache, known}, append(w.closers, known.Close)
		}
	}
	start := time.Now()
	x := stores.Indexer(o.Embedder, &indexer.Options{
		Walk: &walk.Options{Everything: true, Extensions: o.Config.Extensions(), Code: walk.CodeOn}, Chunk: &indexer.ChunkOptions{Bare: full != nil},
	})
	run := x.RunKeywords
	if len(o.Modes) != 1 || o.Modes[0] != retriever.Keyword || len(o.Budgets) > 0 || o.Ablate || len(o.Adapters) > 0 {
		run = x.Run // more than keyword search is measured
	}
	limited := ctx
	if o.VectorsLimit > 0 {
		if _, err = x.RunKeywords(ctx, o.Progress); err != nil {
			return nil, err
		}
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, o.VectorsLimit)
		defer cancel()
	}
	if _, err = run(limited, o.Progress); err != nil && (ctx.Err() != nil || limited.Err() == nil) {
		return nil, err
	}
	w.report.Seconds = time.Since(start).Seconds()
	if w.report.Bytes, err = workspace.SizeOf(indexed); err != nil {
		return nil, err
	}
	options := index.RetrieverOptions(o.Config, log)
	if o.Learn != "" {
		if w.usage, err = w.learn(ctx, indexed, o); err != nil {
			return nil, err
		}
		options.Reweigher, options.ReweighLimit = retriever.CoUsage{Read: w.usage.Read, Log: log}, retriever.CoUsageLimit
	}
	options.QueryCache = 1 // so that every mode embeds every query
	options.MaxQuery = math.MaxInt
	if o.Reranker != nil {
		options.Reranker = func() (models.Reranker, error) { return o.Reranker, nil }
	}
	w.options = options
	return w, w.change(func(*retriever.Options) {})
}

// knownVectors is a cache that also reads the vectors of another store.
type knownVectors struct {
	indexer.Cache
	known *flat.Store
}

func (c knownVectors) Get(keys []store.Key) ([][]float32, error) {
	vectors, err := c.known.Get(keys)
	if err != nil {
		return c.Cache.Get(keys)
	}
	var missing []store.Key
	for i, v := range vectors {
		if v == nil {
			missing = append(missing, keys[i])
		}
	}
	made, err := c.Cache.Get(missing)
	for i := range vectors {
		if vectors[i] == nil && err == nil {
			vectors[i], made = made[0], made[1:]
		}
	}
	return vectors, err
}

// change replaces the retriever by one with changed options.
func (w *bench) change(change func(*retriever.Options)) (err error) {
	options := *w.options
	change(&options)
	w.retriever, err = retriever.New(w.stores.Sources(w.o.Embedder, w.o.Budget), &options)
	return err
}

var unsafeInName = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// fileName returns a file name for an ID that is not in taken. It keeps the words of the ID,
// because the names of real files have meaning too.
func fileName(id string, taken map[string]string) string {
	stem := strings.TrimLeft(unsafeInName.ReplaceAllString(id, "_"), "._")
	stem = cmp.Or(stem[:min(len(stem), 120)], "document")
	name := stem + ".md"
	for n := 2; ; n++ {
		if _, ok := taken[name]; !ok {
			return name
		}
		name = stem + "-" + strconv.Itoa(n) + ".md"
	}
}
