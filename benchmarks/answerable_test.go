package benchmarks

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/models"
	"cairn/models/minilm"
	"cairn/retriever"
)

// foreignQuestions are questions that the example handbook cannot answer.
var foreignQuestions = []string{
	"What is the capital of Mongolia?", "How long should I boil an egg?", "Who won the football world cup in 1998?", "Which medicine helps against a sore throat?",
	"How do I file an income tax return?", "Who painted the Mona Lisa?", "Why is the sky blue?", "How do bees make honey?", "What time does the museum open on Sunday?",
	"How much does a train ticket to Lisbon cost?", "When was the Magna Carta signed?", "How do I change a bicycle tyre?", "What are the rules of chess?", "Who wrote War and Peace?",
	"How far is the moon from the earth?", "Which vitamins are in oranges?", "How do I train a puppy to sit?", "What is the recipe for pancakes?", "How does a mortgage work?",
	"Which languages are spoken in Switzerland?", "How do volcanoes erupt?", "What is the best time to plant tomatoes?", "How many players are in a baseball team?", "What causes inflation?",
}

// TestHandbookAnswerable: a search of the example handbook says of foreign questions that
// it has no answer, and does not say so of its own.
func TestHandbookAnswerable(t *testing.T) {
	e := openModel(t)
	set, err := readBEIR("../examples/handbook.bench", "test")
	if err != nil {
		t.Fatal(err)
	}
	w := openFolder(t, set, e)
	own, foreign := 0, 0
	for _, q := range set.queries {
		if a := ask(t, w, q.Text); a.Unlikely() {
			own++
			t.Logf("%.2f: %s", *a.Answerable, q.Text)
		}
	}
	for _, q := range foreignQuestions {
		if a := ask(t, w, q); !a.Unlikely() || a.Hint == "" {
			foreign++
			t.Logf("%.2f, %q: %s", *a.Answerable, a.Hint, q)
		}
	}
	if a := ask(t, w, foreignQuestions[0]); *a.Answerable > .1 {
		t.Errorf("the capital of Mongolia is there with probability %.2f", *a.Answerable)
	}
	if most := len(set.queries) / 10; own > most || foreign > len(foreignQuestions)/4 {
		t.Errorf("%d of %d own questions count as unlikely, %d of %d foreign ones do not", own, len(set.queries), foreign, len(foreignQuestions))
	}
}

func openModel(t *testing.T) models.Embedder {
	e, err := minilm.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func openFolder(t *testing.T, set *beirSet, e models.Embedder) *bench {
	w, err := openBench(t.Context(), t.TempDir(), set, &DocsOptions{Embedder: e, Cache: os.Getenv("CAIRN_CACHE")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func ask(t *testing.T, w *bench, question string) *retriever.Answer {
	t.Helper()
	text := []rune(strings.TrimSpace(question))
	a, err := w.retriever.Search(context.Background(), retriever.Query{Text: string(text[:min(len(text), retriever.MaxQuery)])})
	if err != nil || a.Answerable == nil {
		t.Fatalf("%q: no estimate, %v", question, err)
	}
	return a
}

// The sizes of TestAnswerable: questions of a set, and documents of a folder besides those
// that are relevant to them.
const (
	askedQuestions = 60
	otherDocuments = 400
)

// What TestAnswerable wants of all folders, and the area of the questions of k8s-docs too.
const (
	leastArea = .85
	mostError = .08
)

// asked is an estimate for a question.
type asked struct {
	set, folder string // a folder has the name of its set
	here        bool   // the folder has a relevant document
	p, weight   float64
}

// TestAnswerable asks the questions of each evaluation set in the folders of all sets, and
// measures how well the estimate tells those of a folder from the others. The measures are
// the area under the ROC curve and the expected calibration error; both kinds of each
// folder weigh the same. It also asks those of k8s-docs in a folder without the documents
// that are relevant.
func TestAnswerable(t *testing.T) {
	data := os.Getenv("CAIRN_DATA")
	if data == "" {
		t.Skip("CAIRN_DATA does not name the evaluation data")
	}
	e := openModel(t)
	var names []string
	sets := map[string]*beirSet{}
	for _, f := range floors {
		set, err := readBEIR(filepath.Join(data, "docs", f.set), f.split)
		if err != nil {
			t.Fatal(err)
		}
		name := f.set + "/" + f.split
		if n := askedQuestions; f.set != "k8s-docs" && len(set.queries) > n {
			for i := range n {
				set.queries[i] = set.queries[i*len(set.queries)/n]
			}
			set.queries = set.queries[:n]
		}
		names, sets[name] = append(names, name), set
	}
	var all []asked
	for _, folder := range names {
		w := openFolder(t, part(sets[folder], true), e)
		for _, name := range names {
			if sameFolder(name, folder) && name != folder {
				continue // its relevant documents may not be in the part
			}
			for _, q := range sets[name].queries {
				all = append(all, asked{set: name, folder: folder, here: name == folder, p: *ask(t, w, q.Text).Answerable})
			}
		}
		w.close()
		t.Logf("%-20s %s", folder, summarize(slices.Collect(filter(all, func(a asked) bool { return a.folder == folder }))))
	}
	s := summarize(all)
	t.Logf("%-20s %s", "all folders", s)
	if s.area < leastArea || s.error > mostError {
		t.Errorf("all folders: %s; want AUROC %.2f and calibration error %.2f", s, leastArea, mostError)
	}
	for _, name := range []string{"k8s-docs/kubefix", "k8s-docs/realistic"} {
		own := slices.Collect(filter(all, func(a asked) bool { return a.set == name }))
		s := summarize(own)
		t.Logf("%-20s in other folders: %s", name, s)
		if s.area < leastArea {
			t.Errorf("%s in other folders: AUROC %.3f, want %.2f", name, s.area, leastArea)
		}
		w := openFolder(t, part(sets[name], false), e)
		own = slices.DeleteFunc(own, func(a asked) bool { return !a.here })
		for _, q := range sets[name].queries {
			own = append(own, asked{set: name, p: *ask(t, w, q.Text).Answerable})
		}
		w.close()
		t.Logf("%-20s without relevant documents: %s", name, summarize(own))
	}
}

func sameFolder(a, b string) bool {
	return strings.Split(a, "/")[0] == strings.Split(b, "/")[0]
}

func filter(all []asked, keep func(asked) bool) func(yield func(asked) bool) {
	return func(yield func(asked) bool) {
		for _, a := range all {
			if keep(a) && !yield(a) {
				return
			}
		}
	}
}

// part returns a set with some of its documents, with or without the relevant ones.
func part(set *beirSet, relevant bool) *beirSet {
	wanted := map[string]bool{}
	for _, q := range set.queries {
		for id := range q.Relevant {
			wanted[id] = true
		}
	}
	kept := &beirSet{queries: set.queries}
	r := rand.New(rand.NewPCG(1, 1))
	others := 0
	for _, i := range r.Perm(len(set.documents)) {
		switch d := set.documents[i]; {
		case wanted[d.ID] && relevant:
			kept.documents = append(kept.documents, d)
		case !wanted[d.ID] && others < otherDocuments:
			others++
			kept.documents = append(kept.documents, d)
		}
	}
	return kept
}

// summary measures estimates. unlikely and rejected are the shares of the questions of the
// folder itself, and of the others, with an estimate below .1.
type summary struct {
	area, error, unlikely, rejected float64
}

func (s summary) String() string {
	return fmt.Sprintf("AUROC %.3f, calibration error %.3f, unlikely %.3f of its own and %.3f of the others", s.area, s.error, s.unlikely, s.rejected)
}

func summarize(all []asked) summary {
	count := map[bool]map[string]float64{false: {}, true: {}}
	for _, a := range all {
		count[a.here][a.folder]++
	}
	folders := map[bool]float64{true: float64(len(count[true])), false: float64(len(count[false]))}
	all = slices.Clone(all)
	for i, a := range all {
		all[i].weight = 1 / count[a.here][a.folder] / folders[a.here]
	}
	slices.SortFunc(all, func(a, b asked) int { return cmp.Compare(a.p, b.p) })
	var s summary
	var below float64
	for i := 0; i < len(all); {
		j, own, other := i, 0.0, 0.0
		for ; j < len(all) && all[j].p == all[i].p; j++ {
			if all[j].here {
				own += all[j].weight
			} else {
				other += all[j].weight
			}
			if all[j].p < .1 {
				if all[j].here {
					s.unlikely += all[j].weight
				} else {
					s.rejected += all[j].weight
				}
			}
		}
		s.area += own * (below + other/2)
		below += other
		i = j
	}
	var off [10]float64
	for _, a := range all {
		y := 0.0
		if a.here {
			y = 1
		}
		off[min(int(a.p*10), 9)] += a.weight * (a.p - y) / 2
	}
	for _, o := range off {
		s.error += max(o, -o)
	}
	return s
}
