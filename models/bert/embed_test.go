package bert

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/models"
)

// randomTexts are n texts of 0 to 60 words, longer ones than the model takes
// among them.
func randomTexts(n int) []string {
	rng := rand.New(rand.NewPCG(9, 10))
	texts := make([]string, n)
	for i := range texts {
		var words []string
		for range rng.IntN(60) {
			words = append(words, fmt.Sprintf("w%d", rng.IntN(34)))
		}
		texts[i] = strings.Join(words, " ")
	}
	return texts
}

// TestBatch: a text's vector is the same bit by bit alone, in any batch, with
// any number of threads.
func TestBatch(t *testing.T) {
	eachKernel(t, func(t *testing.T, kernel string) {
		for _, form := range []string{"float", "8-bit", "8-bit odd"} {
			texts := randomTexts(24)
			_, alone := tinyEncoder(t, tinySpecs[form], models.Description{}, &Options{Kernel: kernel, Threads: 1})
			var want [][]float32
			for _, text := range texts {
				v, err := alone.EmbedQuery(t.Context(), text)
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, v)
			}
			for threads := 1; threads <= 3; threads++ {
				_, e := tinyEncoder(t, tinySpecs[form], models.Description{}, &Options{Kernel: kernel, Threads: threads})
				for size := 1; size <= len(texts); size += 11 {
					for at := 0; at+size <= len(texts); at += size {
						got, err := e.EmbedDocuments(t.Context(), texts[at:at+size])
						if err != nil {
							t.Fatal(err)
						}
						for i := range got {
							for j := range got[i] {
								if got[i][j] != want[at+i][j] {
									t.Fatalf("%s, %d threads, batch of %d, text %d, number %d: got %v, alone %v", form, threads, size, at+i, j, got[i][j], want[at+i][j])
								}
							}
						}
					}
				}
			}
		}
	})
}

func TestEdges(t *testing.T) {
	y, e := tinyEncoder(t, tinySpecs["8-bit"], models.Description{QueryPrefix: "w1 ", DocumentPrefix: "w2 ", MaxTokens: 20}, nil)
	none, err := e.EmbedDocuments(t.Context(), nil)
	if err != nil || len(none) != 0 {
		t.Errorf("no texts: got %v, %v", none, err)
	}
	long := strings.Repeat("w3 ", 500)
	got, err := e.EmbedDocuments(t.Context(), []string{"", long, strings.Repeat("w3 ", 17), "w1 w2"})
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range got {
		if len(v) != y.hidden || cap(v) != y.hidden || math.Abs(cosine(v, v)-1) > 1e-6 || v[0] != v[0] {
			t.Errorf("text %d: %d numbers, want a unit vector of %d", i, len(v), y.hidden)
		}
	}
	if cosine(got[1], got[2]) != 1 {
		t.Error("a long text's vector is not that of the text cut at 20 pieces")
	}
	if n := len(pieces{e.tokenizer, e.description.MaxTokens}.Encode(long)); n != 20 {
		t.Errorf("Encode gives %d ids, want 20", n)
	}
	if n := (pieces{e.tokenizer, 0}).Count("w1 w2 w3"); n != 3 {
		t.Errorf("Count gives %d, want 3", n)
	}
	// The prefixes make the kinds of text differ.
	query, err := e.EmbedQuery(t.Context(), "w5")
	if err != nil {
		t.Fatal(err)
	}
	_, plain := tinyEncoder(t, tinySpecs["8-bit"], models.Description{MaxTokens: 20}, nil)
	for _, c := range []struct {
		kind string
		got  []float32
		text string
	}{{"query", query, "w1 w5"}, {"document", got[3], "w2 w1 w2"}} {
		want, err := plain.EmbedQuery(t.Context(), c.text)
		if err != nil {
			t.Fatal(err)
		}
		if cosine(c.got, want) != 1 {
			t.Errorf("%s: the prefix is not put before the text", c.kind)
		}
	}
}

// cancelAfter is a context that ends when it has been asked n times.
type cancelAfter struct {
	context.Context
	n int
}

func (c *cancelAfter) Err() error {
	if c.n--; c.n < 0 {
		return context.Canceled
	}
	return nil
}

func TestCancel(t *testing.T) {
	_, e := tinyEncoder(t, tinySpecs["8-bit"], models.Description{}, &Options{Threads: 1})
	texts := randomTexts(40)
	for n := range 200 {
		got, err := e.EmbedDocuments(&cancelAfter{t.Context(), n}, texts)
		if err == nil {
			break
		}
		if got != nil || !errors.Is(err, context.Canceled) {
			t.Fatalf("after %d questions: got %d vectors, %v; want none, canceled", n, len(got), err)
		}
		if n == 199 {
			t.Error("never finished")
		}
	}
	if _, err := e.EmbedQuery(&cancelAfter{t.Context(), 0}, "w1"); !errors.Is(err, context.Canceled) {
		t.Errorf("query: got %v, want canceled", err)
	}
}

// TestAllocations: a query allocates its vector and nothing else, a batch its
// vectors, whatever its size.
func TestAllocations(t *testing.T) {
	_, e := tinyEncoder(t, tinySpecs["8-bit"], models.Description{}, &Options{Threads: 1})
	texts := randomTexts(50)
	ctx := context.Background()
	if got := testing.AllocsPerRun(100, func() { e.EmbedQuery(ctx, "w1 w2 w3") }); got > 1 {
		t.Errorf("a query allocates %v times, want 1", got)
	}
	if got := testing.AllocsPerRun(100, func() { e.EmbedDocuments(ctx, texts) }); got > 6 {
		t.Errorf("a batch of %d allocates %v times, want at most 6", len(texts), got)
	}
}

func TestOpen(t *testing.T) {
	y, file := tinySpecs["8-bit"].generate()
	_, tokenizer := tinyTokenizer(t)
	dir := filepath.Join(t.TempDir(), "small-bert")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name string, b []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(dir, nil); err == nil {
		t.Error("an empty folder: got no error")
	}
	write(tokenizerFile, tokenizer)
	write(weightsFile, file)
	if _, err := Open(dir, nil); !errors.Is(err, models.ErrPooling) {
		t.Errorf("a folder that does not say the pooling: %v", err)
	}
	write("cairn.json", []byte(`{"pooling": "mean"}`))
	e, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := e.Description()
	if d.Unrelated <= 0 {
		t.Errorf("the scale of similarities was not measured: %+v", d)
	}
	d.Unrelated = 0
	id := d.ID
	d.ID = ""
	if want := (models.Description{Name: "small-bert", Dimension: y.hidden, MaxTokens: y.positions, Pooling: "mean"}); d != want {
		t.Errorf("without a description: got %+v, want %+v", d, want)
	}
	if len(id) != len("small-bert@")+12 || !strings.HasPrefix(id, "small-bert@") {
		t.Errorf("ID %q, want small-bert@ and 12 digits", id)
	}

	write("cairn.json", []byte(`{"name": "x", "max_tokens": 30, "pooling": "cls", "query_prefix": "w1 ", "min_similarity": 0.4}`))
	if e, err = Open(dir, nil); err != nil {
		t.Fatal(err)
	}
	d = e.Description()
	if d.Name != "x" || d.MaxTokens != 30 || d.Pooling != "cls" || d.QueryPrefix != "w1 " || d.MinSimilarity != 0.4 || d.ID == id {
		t.Errorf("with a description: got %+v", d)
	}
	same, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if same.Description() != d {
		t.Errorf("opened again: %+v, want %+v", same.Description(), d)
	}
	for _, bad := range []string{`{"pooling": "max"}`, `{"max_tokens": 4000, "pooling": "mean"}`, `{"colour": 1}`, `{`, `{"dimension": 12, "pooling": "mean"}`, `{"unrelated": 1, "pooling": "mean"}`} {
		write("cairn.json", []byte(bad))
		if _, err := Open(dir, nil); err == nil {
			t.Errorf("%s: got no error", bad)
		}
	}
}
