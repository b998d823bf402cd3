package onnx

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"cairn/models"
	"cairn/models/minilm"
)

// oracleTexts returns 60 short texts, twelve subjects of five sentences each,
// generated so that near and far neighbours exist.
func oracleTexts() []string {
	subjects := []struct{ noun, verbs, places string }{
		{"the deployment controller", "restarts,scales,drains", "the cluster,a node,the namespace"},
		{"a sourdough baker", "kneads,proofs,bakes", "the oven,a cold kitchen,the morning"},
		{"the court of appeal", "upholds,quashes,reviews", "the sentence,a contract,the evidence"},
		{"a database index", "speeds up,slows down,covers", "range queries,bulk inserts,sorted scans"},
		{"the orchestra", "rehearses,performs,records", "a symphony,the overture,an opera"},
		{"a mountain glacier", "melts,carves,feeds", "the valley,a river,the summer"},
		{"the compiler", "inlines,unrolls,vectorises", "hot loops,small functions,pure code"},
		{"a migrating stork", "crosses,follows,avoids", "the strait,warm air,the open sea"},
		{"the vaccine", "primes,protects,boosts", "immune cells,the elderly,antibodies"},
		{"a chess grandmaster", "sacrifices,attacks,defends", "the queen,a weak pawn,the king"},
		{"the message queue", "buffers,redelivers,orders", "lost events,slow consumers,retries"},
		{"a coral reef", "shelters,bleaches,feeds", "small fish,warm water,the coast"},
	}
	rng := rand.New(rand.NewPCG(5, 6))
	var texts []string
	for _, s := range subjects {
		verbs, places := strings.Split(s.verbs, ","), strings.Split(s.places, ",")
		for range 5 {
			texts = append(texts, fmt.Sprintf("%s %s %s", s.noun, verbs[rng.IntN(3)], places[rng.IntN(3)]))
		}
	}
	return texts
}

// nearest returns the indices of the k vectors most similar to q, the best
// first, and the similarity of the last.
func nearest(q []float32, vectors [][]float32, k int) (best []int, last float64) {
	for i := range vectors {
		best = append(best, i)
	}
	slices.SortStableFunc(best, func(a, b int) int { return -cmp.Compare(dot(q, vectors[a]), dot(q, vectors[b])) })
	return best[:k], dot(q, vectors[best[k-1]])
}

func dot(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// The shipped model on this engine and on package bert finds the same texts.
func TestAgreesWithBERT(t *testing.T) {
	native, err := minilm.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer native.Close()
	other, err := New(minilm.Weights(), minilm.TokenizerJSON(), minilm.Description())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	got, want := other.Description(), native.Description()
	want.SymbolPrefix = "" // this engine has no weights for symbols
	if got != want {
		t.Errorf("Description() = %+v, package bert's is %+v", got, want)
	}
	texts := oracleTexts()
	queries := []string{"kubernetes pod rollout", "how to make bread rise", "legal judgment overturned", "why is my SQL query slow", "classical concert",
		"ice and climate", "loop optimisation", "bird migration route", "side effects of immunisation", "opening gambit", "at least once delivery", "ocean heat and fish"}
	embed := func(e models.Embedder) (docs, asked [][]float32) {
		docs, err := e.EmbedDocuments(t.Context(), texts)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range queries {
			v, err := e.EmbedQuery(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			asked = append(asked, v)
		}
		return docs, asked
	}
	docs, asked := embed(native)
	otherDocs, otherAsked := embed(other)
	var cosine, lowest float64 = 0, 1
	for i := range docs {
		c := dot(docs[i], otherDocs[i])
		cosine += c / float64(len(docs))
		lowest = min(lowest, c)
	}
	const k = 10
	shared := 0
	for i := range asked {
		// Texts that are equal word for word tie; any of them will do.
		want, _ := nearest(asked[i], docs, k)
		_, last := nearest(otherAsked[i], otherDocs, k)
		for _, j := range want {
			if dot(otherAsked[i], otherDocs[j]) >= last-1e-6 {
				shared++
			}
		}
	}
	overlap := float64(shared) / float64(k*len(asked))
	t.Logf("%s: top-%d overlap %.3f, cosine mean %.4f, lowest %.4f", Engine, k, overlap, cosine, lowest)
	// ONNX Runtime rounds activations to 8 bits, which moves its own vectors
	// .99 away from the exact ones; the Go engine computes what bert computes.
	wantOverlap, wantCosine := .95, .998
	if Engine == "onnxruntime" {
		wantOverlap, wantCosine = .9, .98
	}
	if overlap < wantOverlap {
		t.Errorf("top-%d overlap with package bert %.3f, want %.2f or more", k, overlap, wantOverlap)
	}
	if cosine < wantCosine {
		t.Errorf("mean cosine to package bert %.4f, want %.3f or more", cosine, wantCosine)
	}
}

func openShipped(b *testing.B) *Encoder {
	e, err := New(minilm.Weights(), minilm.TokenizerJSON(), minilm.Description())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { e.Close() })
	return e
}

func BenchmarkEmbedQuery(b *testing.B) {
	e := openShipped(b)
	for b.Loop() { // 13 tokens
		if _, err := e.EmbedQuery(b.Context(), "how do I configure a horizontal pod autoscaler in kubernetes"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEmbedDocuments(b *testing.B) {
	e := openShipped(b)
	text := strings.Repeat("the controller restarts a failed pod on another node, ", 15)[:800]
	b.Logf("%d tokens a text", len((counter{e}).Encode(text)))
	texts := []string{text, text}
	for b.Loop() {
		if _, err := e.EmbedDocuments(b.Context(), texts); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(texts)*b.N)/b.Elapsed().Seconds(), "texts/s")
}

func BenchmarkOpen(b *testing.B) {
	for b.Loop() {
		e, err := New(minilm.Weights(), minilm.TokenizerJSON(), minilm.Description())
		if err != nil {
			b.Fatal(err)
		}
		e.Close()
	}
}
