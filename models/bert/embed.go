package bert

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"cairn/models"
	"cairn/models/wordpiece"
)

// packTokens is the most tokens of short texts that go through the layers together, so
// that several texts share one pass over the weights.
const packTokens = 128

// A batch holds the texts of one call of EmbedDocuments.
type batch struct {
	ids    []int32
	texts  []span    // grouped by model, sorted by length, longest first
	packs  []int     // pack i is texts[packs[i]:packs[i+1]]
	models [2]*model // for documents, and for symbols if there are any
}

// A span is a text's place in the batch's ids and in the call.
type span struct {
	start, end, index int
	model             int // in the batch's models
}

// Description implements models.Embedder.
func (e *Encoder) Description() models.Description { return e.description }

// Kernel returns the name of the kernel in use.
func (e *Encoder) Kernel() string { return e.model.kernel.name }

// Threads returns how many texts are embedded at the same time.
func (e *Encoder) Threads() int { return e.threads }

// Close implements models.Embedder. It releases nothing and returns nil.
func (e *Encoder) Close() error { return nil }

// Tokenizer implements models.Embedder.
func (e *Encoder) Tokenizer() (models.Tokenizer, error) {
	return NewTokenizer(e.tokenizer, e.description.MaxTokens), nil
}

// NewTokenizer returns the tokenizer of an encoder that splits text by s and reads at most
// longest tokens.
func NewTokenizer(s wordpiece.Splitter, longest int) models.Tokenizer { return pieces{s, longest} }

type pieces struct {
	wordpiece.Splitter
	longest int
}

func (p pieces) Encode(text string) []int32 { return p.AppendIDs(nil, text, p.longest) }

// EmbedQuery implements models.Embedder.
func (e *Encoder) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := make([]float32, e.model.hidden)
	s := e.scratch.take()
	defer e.scratch.Put(s)
	s.ids = e.tokenizer.AppendIDs(s.ids[:0], e.description.QueryPrefix+text, e.description.MaxTokens)
	s.starts = append(s.starts[:0], 0, len(s.ids))
	e.model.forward(s, s.ids, s.starts)
	e.model.pool(s, 0, len(s.ids), e.description.Pooling == "cls", out)
	return out, nil
}

// EmbedDocuments implements models.Embedder. Texts are embedded in parallel,
// short ones packed together, none padded.
func (e *Encoder) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b := e.batches.take()
	defer e.batches.Put(b)
	if err := b.tokenize(ctx, e, texts); err != nil {
		return nil, err
	}
	b.plan(e.threads)
	h := e.model.hidden
	all := make([]float32, len(texts)*h)
	out := make([][]float32, len(texts))
	for i := range out {
		out[i] = all[i*h : (i+1)*h : (i+1)*h]
	}
	e.scratch.parallel(ctx, e.threads, len(b.packs)-1, func(s *scratch, i int) {
		e.embedPack(s, b, b.texts[b.packs[i]:b.packs[i+1]], out)
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return out, nil
}

func (e *Encoder) embedPack(s *scratch, b *batch, texts []span, out [][]float32) {
	m := b.models[texts[0].model]
	s.ids, s.starts = s.ids[:0], append(s.starts[:0], 0)
	for _, t := range texts {
		s.ids = append(s.ids, b.ids[t.start:t.end]...)
		s.starts = append(s.starts, len(s.ids))
	}
	m.forward(s, s.ids, s.starts)
	for i, t := range texts {
		m.pool(s, s.starts[i], s.starts[i+1], e.description.Pooling == "cls", out[t.index])
	}
}

func (b *batch) tokenize(ctx context.Context, e *Encoder, texts []string) (err error) {
	b.models[0] = e.model
	b.ids, b.texts = b.ids[:0], b.texts[:0]
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return err
		}
		start, model := len(b.ids), 0
		if symbol, ok := strings.CutPrefix(text, e.description.SymbolPrefix); ok && e.symbols != nil {
			text, model = symbol, 1
			if b.models[1], err = e.symbols(); err != nil {
				return err
			}
		}
		b.ids = e.tokenizer.AppendIDs(b.ids, e.description.DocumentPrefix+text, e.description.MaxTokens)
		b.texts = append(b.texts, span{start, len(b.ids), i, model})
	}
	return nil
}

// plan sorts the texts by length, longest first, so that the last ones to finish are
// short. It groups short texts into packs of up to packTokens, or fewer if a thread would
// be idle.
func (b *batch) plan(threads int) {
	slices.SortFunc(b.texts, func(x, y span) int {
		return cmp.Or(cmp.Compare(x.model, y.model), cmp.Compare(y.end-y.start, x.end-x.start), cmp.Compare(x.index, y.index))
	})
	most := min(packTokens, len(b.ids)/threads)
	b.packs = append(b.packs[:0], 0)
	tokens := 0
	for i, t := range b.texts {
		n := t.end - t.start
		if i > 0 && (tokens+n > most || t.model != b.texts[i-1].model) {
			b.packs = append(b.packs, i)
			tokens = 0
		}
		tokens += n
	}
	if len(b.texts) > 0 {
		b.packs = append(b.packs, len(b.texts))
	}
}

// A pool keeps buffers for further calls.
type pool[T any] struct{ sync.Pool }

func (p *pool[T]) take() *T {
	if v, ok := p.Get().(*T); ok {
		return v
	}
	return new(T)
}

// parallel calls fn for every i below n in order, on at most threads goroutines, each with
// its own value of the pool, until ctx ends.
func (p *pool[T]) parallel(ctx context.Context, threads, n int, fn func(v *T, i int)) {
	var next atomic.Int64
	work := func() {
		v := p.take()
		defer p.Put(v)
		for ctx.Err() == nil {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			fn(v, i)
		}
	}
	var wg sync.WaitGroup
	for range min(threads, n) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
}
