package benchmarks

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/toolsearch"
)

const (
	partsEpochs = 16
	partsBatch  = 64
	partsRate   = .03
	partsRidge  = 1e-4 // weight of the sum of the squared weights in the loss of a batch
	partsHeld   = 12   // one request in so many is not fitted
	partsLists  = 20   // one request in so many is repeated as a list
	partsVerbs  = 40   // one in so many as verbs with one object
	partsRare   = 20   // features of fewer words are ignored
)

// PartsReport tells how well fitted weights split the requests that were not fitted.
type PartsReport struct {
	Requests int     `json:"requests"`
	Held     int     `json:"not_fitted"`
	Right    float64 `json:"right"` // share of these that are split right
	Features int     `json:"features"`
	file     []byte
}

func (r *PartsReport) String() string {
	return fmt.Sprintf("%d requests fitted with %d features; of %d others, %.3f are split right", r.Requests, r.Features, r.Held, r.Right)
}

// Write writes the weights in the form of tags.weights of package toolsearch.
func (r *PartsReport) Write(name string) error {
	return os.WriteFile(name, r.file, 0o644)
}

// markedRequest is a request with the places of its parts, as byte offsets.
type markedRequest struct {
	text  string
	parts [][2]int
}

// FitParts fits the weights that split intents into parts to the requests of files: a request a
// line, after a tab or "|", with its parts in double brackets. Other lines are ignored. A name
// that ends with ".gz" is that of a compressed file. The fit minimises the mean negative log
// likelihood of the tags in batches by Adam (Kingma and Ba, ICLR 2015) with a falling rate.
func FitParts(files []string) (*PartsReport, error) {
	var all []markedRequest
	for _, name := range files {
		list, err := readMarked(name)
		if err != nil {
			return nil, fmt.Errorf("reading requests: %w", err)
		}
		all = append(all, list...)
	}
	if len(all) < partsBatch*partsHeld {
		return nil, fmt.Errorf("a fit needs %d requests with parts in double brackets, and the files have %d", partsBatch*partsHeld, len(all))
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	var fitted, held []markedRequest
	for _, m := range all {
		if crc32.ChecksumIEEE([]byte(m.text))%partsHeld == 0 { // the same for a file that is given twice
			held = append(held, m)
		} else {
			fitted = append(fitted, m)
		}
	}
	var examples []taggedRequest
	for i := range fitted {
		examples = append(examples, tagged(&fitted[i]))
		if i%partsLists == 0 && len(fitted[i].parts) > 1 {
			list := fitted[i].list([]string{"%d. ", "- ", "%d) ", ""}[rnd.IntN(4)])
			examples = append(examples, tagged(&list))
		}
		if i%partsVerbs == 0 {
			verbs := fitted[i].verbs(&fitted[rnd.IntN(len(fitted))])
			examples = append(examples, tagged(&verbs))
		}
	}
	f := newPartsFit(examples)
	for epoch := range partsEpochs {
		rnd.Shuffle(len(examples), func(i, j int) { examples[i], examples[j] = examples[j], examples[i] })
		for at := 0; at+partsBatch <= len(examples); at += partsBatch {
			for i := range examples[at : at+partsBatch] {
				f.add(&examples[at+i])
			}
			f.step(partsRate * (1 - float64(epoch)/partsEpochs))
		}
	}
	r := &PartsReport{Requests: len(fitted), Held: len(held), Features: len(f.hashes), file: toolsearch.TagFile(f.hashes, f.weights)}
	right := 0
	for i := range held {
		hashes, places := toolsearch.TagFeatures(held[i].text)
		tags, _ := toolsearch.BestTags(f.known(hashes), func(at int) float64 { return f.weights[at] })
		if held[i].splitRight(ranges(tags, places)) {
			right++
		}
	}
	r.Right = float64(right) / float64(len(held))
	return r, nil
}

// readMarked reads the requests of a file.
func readMarked(name string) (list []markedRequest, err error) {
	err = readLines(name, func(line []byte) error {
		if !bytes.Contains(line, []byte("[[")) {
			return nil
		}
		text := string(line[bytes.LastIndexByte(line, '\t')+1:])
		if before, after, ok := strings.Cut(text, "|"); ok && !strings.Contains(before, "[[") {
			text = after
		}
		list = append(list, marked(strings.TrimSpace(text)))
		return nil
	})
	return list, err
}

// marked reads a request with its parts in double brackets.
func marked(text string) (m markedRequest) {
	for {
		before, rest, ok := strings.Cut(text, "[[")
		m.text += before
		if !ok {
			return m
		}
		part, after, _ := strings.Cut(rest, "]]")
		m.add(part)
		text = after
	}
}

func (m *markedRequest) add(part string) {
	m.parts = append(m.parts, [2]int{len(m.text), len(m.text) + len(part)})
	m.text += part
}

// list returns the parts a line each, after a number or a dash.
func (m *markedRequest) list(form string) (l markedRequest) {
	for i, p := range m.parts {
		if i > 0 {
			l.text += "\n"
		}
		l.text += strings.Replace(form, "%d", fmt.Sprint(i+1), 1)
		l.add(m.text[p[0]:p[1]])
	}
	return l
}

// verbs returns the first part after the verb of another request, as in "fork and star the
// repository", or only the part if one of them begins with another word.
func (m *markedRequest) verbs(other *markedRequest) (v markedRequest) {
	verb := func(m *markedRequest) string {
		word, _, _ := strings.Cut(m.text[m.parts[0][0]:m.parts[0][1]], " ")
		return toolsearch.PurposeOf(&catalog.Tool{Name: strings.ToLower(word)}).Verb
	}
	if first := verb(other); first != "" && verb(m) != "" && first != verb(m) {
		v.add(first)
		v.text += " and "
	}
	v.add(m.text[m.parts[0][0]:m.parts[0][1]])
	return v
}

// splitRight reports whether each part of a request has one of the ranges for itself, which covers
// most of it, and no range is left.
func (m *markedRequest) splitRight(found [][2]int) bool {
	if len(found) != len(m.parts) {
		return false
	}
	for i, p := range m.parts {
		if common := min(p[1], found[i][1]) - max(p[0], found[i][0]); 10*common < 6*(p[1]-p[0]) {
			return false
		}
	}
	return true
}

// ranges returns the byte offsets of the parts by the tags of words, all of the words without one.
func ranges(tags []toolsearch.Tag, places [][2]int) (parts [][2]int) {
	for i, t := range tags {
		switch t {
		case toolsearch.Begins:
			parts = append(parts, places[i])
		case toolsearch.Within:
			parts[len(parts)-1][1] = places[i][1]
		}
	}
	if parts == nil && places != nil {
		parts = [][2]int{{places[0][0], places[len(places)-1][1]}}
	}
	return parts
}

// taggedRequest is a request as the fit uses it.
type taggedRequest struct {
	hashes   [][]uint32 // of the features of each word
	features [][]int    // the numbers of those that are not rare
	tags     []toolsearch.Tag
}

func tagged(m *markedRequest) (t taggedRequest) {
	hashes, places := toolsearch.TagFeatures(m.text)
	t.hashes = hashes
	last := -1
	for _, w := range places {
		tag := toolsearch.Outside
		for i, p := range m.parts {
			if 2*(min(w[1], p[1])-max(w[0], p[0])) > w[1]-w[0] {
				if tag = toolsearch.Within; i != last {
					tag, last = toolsearch.Begins, i
				}
			}
		}
		if tag == toolsearch.Within && t.tags[len(t.tags)-1] == toolsearch.Outside {
			tag = toolsearch.Begins // a word between them belongs to no part
		}
		t.tags = append(t.tags, tag)
	}
	return t
}

// partsFit fits weights by Adam. mean and square are the moments of the gradient.
type partsFit struct {
	hashes                          []uint32 // of the features, ascending
	weights, gradient, mean, square []float64
	steps                           float64
}

// newPartsFit returns a fit of the features that are not rare, and numbers them in the examples.
func newPartsFit(examples []taggedRequest) *partsFit {
	f := &partsFit{}
	count := map[uint32]int{}
	for _, e := range examples {
		for _, hashes := range e.hashes {
			for _, h := range hashes {
				if count[h]++; count[h] == partsRare {
					f.hashes = append(f.hashes, h)
				}
			}
		}
	}
	slices.Sort(f.hashes)
	for i := range examples {
		examples[i].features = f.known(examples[i].hashes)
	}
	n := toolsearch.FeatureWeight(len(f.hashes), 0)
	f.weights, f.gradient, f.mean, f.square = make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	return f
}

// known returns the numbers of the features that are not rare.
func (f *partsFit) known(hashes [][]uint32) [][]int {
	features := make([][]int, len(hashes))
	for i, list := range hashes {
		for _, h := range list {
			if n, ok := slices.BinarySearch(f.hashes, h); ok {
				features[i] = append(features[i], n)
			}
		}
	}
	return features
}

// add adds the gradient of the negative log likelihood of a request's tags. It sums the
// probabilities of all tags up to each word, and then goes back from the last word to the first.
func (f *partsFit) add(r *taggedRequest) {
	const tags = toolsearch.Tags
	place := func(i int, a, b toolsearch.Tag) int {
		if i == 0 {
			return toolsearch.StartWeight(b)
		}
		return toolsearch.AfterWeight(a, b)
	}
	var sum [tags]float64                                  // by the tag of the word
	before := make([][tags][tags]float64, len(r.features)) // the probability of each tag of the word before it
	for i, features := range r.features {
		var next [tags]float64
		for b := range toolsearch.Tag(tags) {
			var from [tags]float64
			for a := range toolsearch.Tag(tags) {
				if toolsearch.PossibleTag(a, b) && (i > 0 || a == toolsearch.Outside) {
					from[a] = sum[a] + f.weights[place(i, a, b)]
				} else {
					from[a] = math.Inf(-1)
				}
			}
			next[b], before[i][b] = normalize(from)
			for _, n := range features {
				next[b] += f.weights[toolsearch.FeatureWeight(n, b)]
			}
		}
		sum = next
	}
	_, p := normalize(sum)
	for i := len(r.features) - 1; i >= 0; i-- {
		var next [tags]float64
		for b := range toolsearch.Tag(tags) {
			for a := range toolsearch.Tag(tags) {
				f.gradient[place(i, a, b)] += p[b] * before[i][b][a]
				next[a] += p[b] * before[i][b][a]
			}
			if r.tags[i] == b {
				p[b]--
				f.gradient[place(i, r.tags[max(0, i-1)], b)]--
			}
			for _, n := range r.features[i] {
				f.gradient[toolsearch.FeatureWeight(n, b)] += p[b]
			}
		}
		p = next
	}
}

// step moves the weights against the mean gradient of a batch, and clears it.
func (f *partsFit) step(rate float64) {
	f.steps++
	first, second := 1-math.Pow(.9, f.steps), 1-math.Pow(.999, f.steps)
	for i, w := range f.weights {
		g := f.gradient[i]/partsBatch + 2*partsRidge*w
		f.mean[i] = .9*f.mean[i] + .1*g
		f.square[i] = .999*f.square[i] + .001*g*g
		f.weights[i] -= rate * (f.mean[i] / first) / (math.Sqrt(f.square[i]/second) + 1e-8)
		f.gradient[i] = 0
	}
}

// normalize returns the logarithm of the sum of exponentials, and their shares of the sum.
func normalize(v [toolsearch.Tags]float64) (sum float64, shares [toolsearch.Tags]float64) {
	top := max(v[0], v[1], v[2])
	if math.IsInf(top, -1) {
		return top, shares
	}
	for _, x := range v {
		sum += math.Exp(x - top)
	}
	for i, x := range v {
		shares[i] = math.Exp(x-top) / sum
	}
	return top + math.Log(sum), shares
}
