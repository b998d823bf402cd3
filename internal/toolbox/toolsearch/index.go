package toolsearch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"

	"cairn/internal/base/job"
	"cairn/internal/store/legs"
	"cairn/internal/toolbox/catalog"
	"cairn/models"
)

// Options configures New. Nil and the zero value mean the defaults.
type Options struct {
	// Embedder computes the vectors. Nil searches by keywords alone. The caller closes it.
	Embedder models.Embedder
	// Reader opens the model that reads requests. Nil means none.
	Reader func() (models.Reader, error)
	// Cache keeps vectors of tools between runs. Nil keeps none.
	Cache legs.Cache
	// Usage holds past use; nil means none.
	Usage *Usage
	// Logger receives a warning if the embedder or the cache fails. Nil discards it.
	Logger *slog.Logger
}

// Index searches the tools of a catalogue. It is safe for concurrent use.
type Index struct {
	// legs has the vectors of two texts of each tool, nameText and vectorText. The nearer
	// vector has most of the weight: names distinguish tools with similar descriptions,
	// and descriptions tools with vague names.
	legs    *legs.Legs
	options Options
	answers *lru.Cache[answerKey, any] // of the models

	updating sync.Mutex // held by Update

	now atomic.Pointer[contents]
}

// contents is what an Index has of its tools besides the legs. It is immutable.
type contents struct {
	tools     []catalog.Tool      // sorted by ID
	at        map[string]int      // positions in tools, by ID
	needs     map[string][]string // IDs of the tools that a tool is declared to need, by ID
	producers map[string][]string // IDs of tools, by the producerKey of an output
	givers    map[string][]string // IDs of tools that read or make an entity, by each suffix of its words
	requires  map[string]bool     // servers of which a tool has a required input
}

// answerCache is the number of cached answers of the models, of which a vector takes 1.5 kB. A plan
// needs about ten, of which seven are the logits of pairs.
const answerCache = 1024

// New returns an empty index; Sync adds the tools. words indexes names, descriptions and the
// parameters of both schemas. It is derived from the catalogue. The caller closes it.
func New(words legs.Keyword, o Options) *Index {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	x := &Index{options: o, answers: newAnswers()}
	x.now.Store(&contents{})
	x.legs = legs.New(2, legs.Options{Keyword: words, Embedder: o.Embedder, Cache: o.Cache, Logger: o.Logger})
	return x
}

// answerKey is the checksum of the texts that a model answers to, and of the type of the answer.
type answerKey [sha256.Size]byte

func keyOf[T any](texts ...string) answerKey {
	var v T
	return sha256.Sum256(fmt.Appendf(nil, "%T %q", v, texts))
}

func newAnswers() *lru.Cache[answerKey, any] {
	answers, _ := lru.New[answerKey, any](answerCache) // the number is positive
	return answers
}

// cached returns the answer of a model to some texts, from the cache if possible. The caller must
// not change it.
func cached[T any](x *Index, ask func() (T, error), texts ...string) (v T, err error) {
	key := keyOf[T](texts...)
	if v, ok := x.answers.Get(key); ok {
		return v.(T), nil
	}
	if v, err = ask(); err == nil {
		x.answers.Add(key, v)
	}
	return v, err
}

// KeywordsPhase is the phase of a job.Progress of Update. The others are "tools vectors"
// and "tools intents".
const KeywordsPhase = "tools keywords"

// Sync runs Update, then Embed. progress may be nil.
func (x *Index) Sync(ctx context.Context, tools []catalog.Tool, progress func(job.Progress)) error {
	if err := x.Update(ctx, tools, progress); err != nil {
		return err
	}
	return x.Embed(ctx, progress)
}

// Update makes tools the contents of the index: it removes other tools, and indexes new and
// changed ones. After it, keyword search finds all tools, and vector search those with
// vectors in the cache; Embed computes the Missing ones. After an error the next Update
// continues. progress may be nil.
func (x *Index) Update(ctx context.Context, tools []catalog.Tool, progress func(job.Progress)) error {
	x.updating.Lock()
	defer x.updating.Unlock()
	tools = slices.Clone(tools)
	slices.SortStableFunc(tools, func(a, b catalog.Tool) int { return strings.Compare(a.ID, b.ID) })
	tools = slices.CompactFunc(tools, func(a, b catalog.Tool) bool { return a.ID == b.ID })
	at := make(map[string]int, len(tools))
	for i := range tools {
		at[tools[i].ID] = i
	}
	entries := func(yield func(legs.Entry) bool) {
		for i := range tools {
			if !yield(entryOf(&tools[i])) {
				return
			}
		}
	}
	err := x.legs.Sync(ctx, entries, func(done, total int) {
		if progress != nil {
			progress(job.Progress{Phase: KeywordsPhase, Done: done, Total: total})
		}
	})
	if err != nil {
		return fmt.Errorf("indexing tools: %w", err)
	}
	x.now.Store(newContents(tools, at))
	return nil
}

// newContents returns the contents for sorted tools, given their positions by ID.
func newContents(tools []catalog.Tool, at map[string]int) *contents {
	c := &contents{tools: tools, at: at, needs: resolveNeeds(tools, at), producers: map[string][]string{}, givers: map[string][]string{}, requires: map[string]bool{}}
	for i := range tools {
		t := &tools[i]
		for _, out := range t.Gives {
			k := producerKey(out.Name)
			if list := c.producers[k]; len(list) == 0 || list[len(list)-1] != t.ID {
				c.producers[k] = append(list, t.ID)
			}
		}
		if p := PurposeOf(t); p.Reads() || p.Makes() {
			for n := range p.Entity {
				name := strings.Join(p.Entity[n:], " ")
				c.givers[name] = append(c.givers[name], t.ID)
			}
		}
		if slices.ContainsFunc(t.Takes, func(p catalog.Parameter) bool { return p.Required }) {
			c.requires[t.Server] = true
		}
	}
	return c
}

// Missing returns the number of tools without vectors.
func (x *Index) Missing() int { return x.legs.Missing() }

// Embed computes the missing vectors. Searches and Updates can run at the same time. After
// an error, or the end of ctx, the next Embed continues. progress may be nil.
func (x *Index) Embed(ctx context.Context, progress func(job.Progress)) error {
	err := x.legs.Embed(ctx, func(done, total int) {
		if progress != nil {
			progress(job.Progress{Phase: "tools vectors", Done: done, Total: total, Searchable: true})
		}
	})
	if err != nil {
		return fmt.Errorf("embedding tools: %w", err)
	}
	return nil
}

// Len returns the number of tools.
func (x *Index) Len() int { return len(x.now.Load().tools) }

// Tool returns the tool with an ID.
func (x *Index) Tool(id string) (catalog.Tool, bool) {
	c := x.now.Load()
	i, ok := c.at[id]
	if !ok {
		return catalog.Tool{}, false
	}
	return c.tools[i], true
}

// Usage returns Options.Usage.
func (x *Index) Usage() *Usage { return x.options.Usage }

// Producers returns the IDs of the tools with an output of that name, in any case, sorted.
// The caller must not change the slice.
func (x *Index) Producers(name string) []string { return x.now.Load().producers[producerKey(name)] }

// Requires reports whether a tool of a server has a required input.
func (x *Index) Requires(server string) bool { return x.now.Load().requires[server] }

func producerKey(name string) string { return strings.Join(Words(name), "") }

// maxClosure bounds the result of Needs.
const maxClosure = 64

// Needs returns the tools that id is declared to need, directly or through others, nearest
// first, with their distances, which begin at 1.
func (x *Index) Needs(id string) (ids []string, distances []int) {
	needs := x.now.Load().needs
	seen := map[string]bool{id: true}
	frontier := []string{id}
	for depth := 1; len(frontier) > 0; depth++ {
		var next []string
		for _, f := range frontier {
			for _, n := range needs[f] {
				if !seen[n] && len(ids) < maxClosure {
					seen[n] = true
					ids, distances, next = append(ids, n), append(distances, depth), append(next, n)
				}
			}
		}
		frontier = next
	}
	return ids, distances
}

// DirectNeeds returns the tools that id is directly declared to need.
func (x *Index) DirectNeeds(id string) []string { return x.now.Load().needs[id] }

// resolveNeeds resolves declared names to IDs: a name is an ID, or else a name of the same
// server, or else the name of exactly one tool. It ignores other names.
func resolveNeeds(tools []catalog.Tool, at map[string]int) map[string][]string {
	byName := make(map[string][]string)
	for _, t := range tools {
		byName[t.Name] = append(byName[t.Name], t.ID)
	}
	needs := make(map[string][]string)
	for _, t := range tools {
		for _, name := range t.DependsOn {
			id := name
			if _, ok := at[id]; !ok {
				id = catalog.MakeID(t.Server, name)
			}
			if _, ok := at[id]; !ok && len(byName[name]) == 1 {
				id = byName[name][0]
			}
			if _, ok := at[id]; ok && id != t.ID && !slices.Contains(needs[t.ID], id) {
				needs[t.ID] = append(needs[t.ID], id)
			}
		}
	}
	return needs
}

// WithUsage returns an index of the same tools and vectors with other usage. Later Syncs of
// x do not change its tools, and it must not be synced itself.
func (x *Index) WithUsage(u *Usage) *Index {
	y := &Index{legs: x.legs, options: x.options, answers: x.answers}
	y.now.Store(x.now.Load())
	y.options.Usage = u
	return y
}

// Uncached returns x with another embedder and an empty cache of answers of the models, for
// measurements of new intents. The limits of WithUsage apply.
func (x *Index) Uncached(e models.Embedder) *Index {
	y := x.WithUsage(x.options.Usage)
	y.options.Embedder, y.answers = e, newAnswers()
	return y
}
