package bert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"cairn/models"
	"cairn/models/wordpiece"
)

// A Reranker scores pairs of a query and a text with a BERT cross-encoder: one logit
// from the state of the first token, as BertForSequenceClassification computes it, or, without
// a pooler, from the mean of the states. It implements models.Reranker.
type Reranker struct {
	model              *model
	tokenizer          wordpiece.Splitter
	pooler, classifier dense
	longest            int // most tokens of a pair, including special tokens
	threads            int
	scratch            pool[scratch]
}

var _ models.Reranker = (*Reranker)(nil)

// maxPair is the most tokens of a pair, including the query. Attention over longer texts
// would take a large part of a search's time.
const maxPair = 256

// OpenReranker returns the cross-encoder in folder dir, which contains model.onnx and
// tokenizer.json. It uses Threads and Kernel of opts. It fails unless the graph is
// a BERT encoder with a pooler and a classifier with one output.
func OpenReranker(dir string, opts *Options) (_ *Reranker, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("opening re-ranker %s: %w", dir, err)
		}
	}()
	opts = cmp.Or(opts, &Options{})
	weights, _, tok, err := readFolder(dir)
	if err != nil {
		return nil, err
	}
	if tok == nil {
		return nil, errors.New("an encoder, want a cross-encoder")
	}
	k, err := chooseKernel(opts.Kernel)
	if err != nil {
		return nil, err
	}
	g, err := parseONNX(weights)
	if err != nil {
		return nil, err
	}
	r := &Reranker{tokenizer: tok, threads: opts.threads()}
	n, err := readNetwork(g, r.read)
	if err != nil {
		return nil, err
	}
	if r.model, err = newModel(n, k); err != nil {
		return nil, err
	}
	if v := tok.VocabSize(); v > r.model.words.rows {
		return nil, fmt.Errorf("the tokenizer has ids up to %d, the model %d words", v-1, r.model.words.rows)
	}
	if r.model.second == nil {
		return nil, errors.New("the model does not tell two texts apart: it has no second token type")
	}
	r.longest = min(maxPair, r.model.longest)
	return r, nil
}

// read reads the encoder, and the two layers above it that make the logit.
func (r *Reranker) read(m *matcher, output string) (*network, error) {
	classifier, err := m.linear(output)
	if err != nil {
		return nil, fmt.Errorf("classifier: %w", err)
	}
	if classifier.out != 1 {
		return nil, fmt.Errorf("a classifier of %d outputs, want 1", classifier.out)
	}
	tanh := m.match(classifier.input, op("Tanh", in("x")))
	if tanh == nil {
		return nil, errors.New("pooler: the activation is not tanh")
	}
	pooler, err := m.linear(tanh["x"])
	if err != nil {
		return nil, fmt.Errorf("pooler: %w", err)
	}
	first := m.match(pooler.input, op("Gather", in("x"), weight("row")))
	if first == nil {
		return nil, errors.New("pooler: its input is not one token's state")
	}
	axis := m.attribute(pooler.input, "axis")
	if row, ok := m.scalar(first["row"]); !ok || row != 0 || axis == nil || axis.int != 1 {
		return nil, errors.New("pooler: its input is not the first token's state")
	}
	n, err := matchNetwork(m, first["x"])
	if err != nil {
		return nil, err
	}
	if pooler.in != n.hidden || classifier.in != pooler.out {
		return nil, fmt.Errorf("a pooler of %d x %d and a classifier of %d inputs above a hidden size of %d", pooler.in, pooler.out, classifier.in, n.hidden)
	}
	r.pooler, r.classifier = pooler.dense(), classifier.dense()
	return n, nil
}

// dense is a small linear layer in float32. The weights of each output are consecutive.
type dense struct {
	in            int
	weights, bias []float32
}

func (l *linear) dense() dense {
	d := dense{in: l.in, weights: make([]float32, l.in*l.out), bias: l.bias}
	for o := range l.out {
		for i := range l.in {
			d.weights[o*l.in+i] = l.at(i, o)
		}
	}
	return d
}

func (d *dense) apply(x []float32) []float32 {
	out := make([]float32, len(d.bias))
	for o := range out {
		sum := d.bias[o]
		for i, w := range d.weights[o*d.in : (o+1)*d.in] {
			sum += w * x[i]
		}
		out[o] = sum
	}
	return out
}

// Rerank implements models.Reranker. Pairs run in parallel, in the order of texts.
func (r *Reranker) Rerank(ctx context.Context, query string, texts []string) ([]float64, error) {
	scores := make([]float64, len(texts))
	done := make([]bool, len(texts))
	r.scratch.parallel(ctx, r.threads, len(texts), func(s *scratch, i int) {
		scores[i], done[i] = r.score(s, query, texts[i]), true
	})
	return models.Scored(ctx, scores, done)
}

// score returns the logit of a pair: [CLS] query [SEP] text [SEP].
func (r *Reranker) score(s *scratch, query, text string) float64 {
	ids, second := r.tokenizer.AppendPair(s.ids[:0], query, text, r.longest)
	s.ids, s.seconds = ids, append(s.seconds[:0], second)
	s.starts = append(s.starts[:0], 0, len(s.ids))
	r.model.forward(s, s.ids, s.starts)
	if r.pooler.in == 0 {
		mean := make([]float32, r.model.hidden)
		for at := range s.ids {
			for j, v := range s.hidden[at*r.model.hiddenPad:][:len(mean)] {
				mean[j] += v / float32(len(s.ids))
			}
		}
		return float64(r.classifier.apply(mean)[0])
	}
	state := r.pooler.apply(s.hidden[:r.model.hidden])
	for i, v := range state {
		state[i] = float32(math.Tanh(float64(v)))
	}
	return float64(r.classifier.apply(state)[0])
}

// Kernel returns the name of the kernel in use.
func (r *Reranker) Kernel() string { return r.model.kernel.name }

// Close implements io.Closer. It releases nothing and returns nil.
func (r *Reranker) Close() error { return nil }
