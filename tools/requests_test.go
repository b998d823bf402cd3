package tools

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"cairn/models/minilm"
)

// What the descriptions reach on testdata/requests.txt, with the built-in model, less two
// requests. Most that fail ask about the content of documents ("who is responsible for
// incidents at night"): their words are those of no description, and only a model that
// understands what read_context is for can choose it.
const (
	leastFirst = 0.45 // of the requests have a right tool first
	leastThree = 0.65 // among the first three
	// tooAlike is the similarity of two descriptions from which a model may take one
	// for the other.
	tooAlike = 0.85
)

// TestRequestsChooseTools ranks the tools for each request by the similarity of its
// embedding to those of their descriptions and of the nearest sentences there, and looks for descriptions that collide.
func TestRequestsChooseTools(t *testing.T) {
	model, err := minilm.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	embed := func(texts []string) [][]float32 {
		vectors, err := model.EmbedDocuments(context.Background(), texts)
		if err != nil {
			t.Fatal(err)
		}
		return vectors
	}
	all := everyTool()
	var tools [][]float32       // of whole descriptions
	var sentences [][][]float32 // of their sentences
	for _, tool := range all {
		parts := sentencesOf(&tool)
		tools = append(tools, embed([]string{strings.Join(parts, " ")})...)
		sentences = append(sentences, embed(parts))
	}
	for i := range tools {
		for j := range i {
			if s := dot(tools[i], tools[j]); s > tooAlike {
				t.Errorf("%s and %s are described alike: %.2f", all[j].name, all[i].name, s)
			}
		}
	}

	text, err := os.ReadFile("testdata/requests.txt")
	if err != nil {
		t.Fatal(err)
	}
	var requests []string
	var right [][]string
	for line := range strings.Lines(string(text)) {
		if request, names, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && !strings.HasPrefix(line, "#") {
			requests, right = append(requests, request), append(right, strings.Split(names, "/"))
		}
	}
	if len(requests) != 60 {
		t.Fatalf("%d requests, want 60", len(requests))
	}
	first, three := 0, 0
	for i, vector := range embed(requests) {
		order, scores := make([]int, len(all)), make([]float64, len(all))
		for k := range order {
			order[k] = k
			for _, sentence := range sentences[k] {
				scores[k] = max(scores[k], dot(vector, sentence))
			}
			scores[k] += dot(vector, tools[k])
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
		at := slices.IndexFunc(order, func(k int) bool { return slices.Contains(right[i], all[k].name) })
		if at < 0 {
			t.Errorf("%q: no tool is named %v", requests[i], right[i])
		}
		if at == 0 {
			first++
		}
		if at < 3 {
			three++
		} else {
			t.Logf("%q: %v has rank %d, after %s, %s, %s", requests[i], right[i], at+1, all[order[0]].name, all[order[1]].name, all[order[2]].name)
		}
	}
	n := float64(len(requests))
	t.Logf("right first %d, among three %d of %d", first, three, len(requests))
	if float64(first)/n < leastFirst || float64(three)/n < leastThree {
		t.Errorf("a right tool is first for %d and among three for %d of %d requests, want %.0f %% and %.0f %%", first, three, len(requests), 100*leastFirst, 100*leastThree)
	}
}

// sentencesOf returns what a model reads about a tool, without what the tool is not for,
// which is about other tools.
func sentencesOf(t *tool) []string {
	all := []string{strings.ReplaceAll(t.name, "_", " ") + ": " + t.title}
	for line := range strings.Lines(t.description) {
		line, _, _ = strings.Cut(line, " Not ")
		for sentence := range strings.SplitSeq(strings.TrimSpace(strings.TrimPrefix(line, "Use it ")), ". ") {
			all = append(all, sentence)
		}
	}
	return all
}

// dot is the cosine of vectors of length 1.
func dot(a, b []float32) (s float64) {
	for i := range a {
		s += float64(a[i]) * float64(b[i])
	}
	return s
}
