package bert

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"cairn/models"
	"cairn/models/wordpiece"
)

const (
	// pairTokens is the most tokens of a request and a tool, tagTokens of a text whose words are
	// tagged. Longer texts are tagged in pieces of this length.
	pairTokens = 212
	tagTokens  = 202
)

// A Reader reads requests to tools: a request together with a tool as a cross-encoder does, and
// a request alone to tag its words. It implements models.Reader.
type Reader struct {
	Reranker
	tags dense // makes the scores of a word's tags from the state of its first token
	// steps are the scores of the first tag, and of the tags after each tag.
	steps [1 + models.Tags][models.Tags]float64
}

var _ models.Reader = (*Reader)(nil)

// NewReader returns a reader from the bytes of an ONNX encoder, its tokenizer and the changes of
// its weights that pairs.py of package minilm writes. It uses Threads and Kernel of opts. Like
// New, it reads the word embeddings from weights.
//
// The file begins with the number of weights of an output in 4 bytes. Four outputs follow, the
// logit of a pair and the scores of the tags, each with a scale, a signed byte for each weight,
// and the bias. Then come the steps and the changes.
func NewReader(weights, file []byte, tok wordpiece.Splitter, opts *Options) (*Reader, error) {
	opts = cmp.Or(opts, &Options{})
	k, err := chooseKernel(opts.Kernel)
	if err != nil {
		return nil, err
	}
	if len(file) < 4 {
		return nil, errAdapter
	}
	r := &Reader{Reranker: Reranker{tokenizer: tok, threads: opts.threads()}}
	n := uint64(binary.LittleEndian.Uint32(file))
	layers := uint64(len(r.steps))
	if uint64(len(file)) < 4+layers*(8+n)+4*layers*models.Tags {
		return nil, errAdapter
	}
	file = file[4:]
	number := func() float32 {
		x := math.Float32frombits(binary.LittleEndian.Uint32(file))
		file = file[4:]
		return x
	}
	for i := range layers {
		d := &r.tags
		if i == 0 {
			d = &r.classifier
		}
		d.in = int(n)
		scale := number()
		for _, code := range file[:n] {
			d.weights = append(d.weights, float32(int8(code))*scale)
		}
		file = file[n:]
		d.bias = append(d.bias, number())
	}
	for a := range r.steps {
		for b := range r.steps[a] {
			r.steps[a][b] = float64(number())
		}
	}
	m, _, err := load(weights, file, k)
	if err == nil && (m.hidden != int(n) || m.second == nil) {
		err = errAdapter
	}
	if err != nil {
		return nil, fmt.Errorf("reading the changes for requests: %w", err)
	}
	r.model, r.longest = m, min(pairTokens, m.longest)
	return r, nil
}

// Tag implements models.Reader. "|" stands between the lines.
func (r *Reader) Tag(ctx context.Context, lines [][]string) ([]models.Tag, float64, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	var scores [][models.Tags]float64
	longest := min(tagTokens, r.model.longest)
	s := r.scratch.take()
	defer r.scratch.Put(s)
	var text []string
	var firsts []int // tokens of words
	at := 1          // the token after [CLS] and text
	flush := func() {
		if len(firsts) > 0 {
			scores = append(scores, r.scores(s, strings.Join(text, " "), firsts, longest)...)
		}
		text, firsts, at = text[:0], firsts[:0], 1
	}
	for l, line := range lines {
		if l > 0 && at > 1 && at+2 < longest {
			text, at = append(text, "|"), at+1
		}
		for _, word := range line {
			n := r.tokenizer.Count(word)
			if at+n >= longest {
				flush()
				if err := ctx.Err(); err != nil {
					return nil, 0, err
				}
			}
			first := at
			if n == 0 {
				first-- // a word without tokens has the state of the token before
			}
			text, firsts, at = append(text, word), append(firsts, first), at+n
		}
	}
	flush()
	tags, probability := r.best(scores)
	return tags, probability, nil
}

// scores returns the scores of the tags of the words whose tokens begin at firsts.
func (r *Reader) scores(s *scratch, text string, firsts []int, longest int) (scores [][models.Tags]float64) {
	s.ids = r.tokenizer.AppendIDs(s.ids[:0], text, longest)
	s.starts, s.seconds = append(s.starts[:0], 0, len(s.ids)), s.seconds[:0]
	r.model.forward(s, s.ids, s.starts)
	for _, at := range firsts {
		var of [models.Tags]float64
		for t, score := range r.tags.apply(s.hidden[at*r.model.hiddenPad:][:r.model.hidden]) {
			of[t] = float64(score)
		}
		scores = append(scores, of)
	}
	return scores
}

// best returns the tags with the highest sum of scores by Viterbi's algorithm, and their
// probability. The tags are a linear-chain conditional random field (Lafferty, McCallum and
// Pereira, "Conditional Random Fields", ICML 2001).
func (r *Reader) best(scores [][models.Tags]float64) (tags []models.Tag, probability float64) {
	type state struct {
		score, all float64 // of the best tags up to the word, and the logarithm of the sum of all
		from       int
	}
	lattice := make([][models.Tags]state, len(scores))
	for i, of := range scores {
		for b, score := range of {
			best := state{score: math.Inf(-1), all: math.Inf(-1)}
			for a := range models.Tags {
				var before state
				step := r.steps[0][b]
				if i > 0 {
					before, step = lattice[i-1][a], r.steps[1+a][b]
				}
				if i == 0 && a > 0 || (i == 0 || a == int(models.Outside)) && b == int(models.Within) {
					continue
				}
				if best.all = logSum(best.all, before.all+step); before.score+step > best.score {
					best.score, best.from = before.score+step, a
				}
			}
			best.score, best.all = best.score+score, best.all+score
			lattice[i][b] = best
		}
	}
	tags, probability = make([]models.Tag, len(scores)), 1
	last := 0
	for i := len(tags) - 1; i >= 0; i-- {
		if i == len(tags)-1 {
			all := math.Inf(-1)
			for t, s := range lattice[i] {
				if all = logSum(all, s.all); s.score > lattice[i][last].score {
					last = t
				}
			}
			probability = math.Exp(lattice[i][last].score - all)
		}
		tags[i] = models.Tag(last)
		last = lattice[i][last].from
	}
	return tags, probability
}

// logSum returns the logarithm of the sum of two numbers that are given by their logarithms.
func logSum(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(b, -1) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}
