package workspace

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cairn/internal/base/testutil"
	"cairn/internal/folder/index"
	"cairn/models"
	"cairn/retriever"
)

// kernelled is an embedder that tells what runs it.
type kernelled struct{ testutil.HashEmbedder }

func (*kernelled) Kernel() string { return "sums" }

// TestExplain: the way of a search is the same whether this process owns the
// folder or asks the owner.
func TestExplain(t *testing.T) {
	sel := folder(t)
	o := hashed()
	o.Model = func() (models.Embedder, error) { return &kernelled{}, nil }
	reader := open(t, sel, Reading, o)
	ask := index.ExplainRequest{Query: retriever.Query{Text: "login flow", Limit: 2}, Candidates: 2}
	if _, err := index.ExplainOp.Call(t.Context(), reader.Folder, ask, nil); !errors.Is(err, index.ErrNoIndex) {
		t.Errorf("without an index: %v, want ErrNoIndex", err)
	}
	reader.Close()
	owner := open(t, sel, Owning, o)
	fill(t, owner, index.IndexRequest{})
	own, err := index.ExplainOp.Call(t.Context(), owner.Folder, ask, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(own.Answer.Results) == 0 || own.Answer.Results[0].Path != "auth.md" || own.Embedding.Kernel != "sums" || len(own.Keyword.Best) == 0 || own.Answer.Results[0].Explain == nil || len(own.Stages) < 6 {
		t.Errorf("the way of the search is %+v", own)
	}
	other := open(t, sel, Reading, hashed())
	asked, err := index.ExplainOp.Call(t.Context(), other.Folder, ask, nil)
	if err != nil {
		t.Fatal(err)
	}
	if other.Folder.Owns() {
		t.Error("the second workspace owns the folder, want it to ask the owner")
	}
	// The second time the vector is kept, and times differ.
	if diff := cmp.Diff(own, asked, cmpopts.IgnoreFields(retriever.Trace{}, "Stages", "Took"), cmpopts.IgnoreFields(retriever.Embedding{}, "Took", "Cached"),
		cmpopts.IgnoreFields(retriever.Leg{}, "Took"), cmpopts.IgnoreUnexported(retriever.Result{}, retriever.Explanation{}), cmpopts.EquateEmpty()); diff != "" || !asked.Embedding.Cached {
		t.Errorf("through the owner, cached %v (-own +asked)\n%s", asked.Embedding.Cached, diff)
	}
	if _, err := index.ExplainOp.Call(t.Context(), other.Folder, index.ExplainRequest{}, nil); err == nil {
		t.Error("no query is explained")
	}
}

// gated is an embedder that waits to be let go on, for its documents alone.
type gated struct {
	testutil.HashEmbedder
	entered, let chan struct{}
}

func (g *gated) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	g.entered <- struct{}{}
	select {
	case <-g.let:
		return g.HashEmbedder.EmbedDocuments(ctx, texts)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestLag checks that a change is reported as pending until both keyword search and
// search by meaning see it.
func TestLag(t *testing.T) {
	sel := folder(t)
	g := &gated{entered: make(chan struct{}, 100), let: make(chan struct{}, 100)}
	o := hashed()
	o.Model = func() (models.Embedder, error) { return g, nil }
	o.Watch = true
	w := open(t, sel, Owning, o)
	events := following(t, w)
	until(t, events, "the first", func(index.WatchEvent) bool { return true })
	<-g.entered
	s, err := index.StatusOp.Call(t.Context(), w.Folder, index.StatusRequest{Selection: w.Selection()}, nil)
	if err != nil || !s.KeywordSince.IsZero() || s.VectorsSince.IsZero() || s.Pending == 0 {
		t.Errorf("while vectors are made: behind since %v and %v with %d pending, %v; want only vectors behind", s.KeywordSince, s.VectorsSince, s.Pending, err)
	}
	since := s.VectorsSince
	for range 10 {
		g.let <- struct{}{}
	}
	until(t, events, "vectors", func(e index.WatchEvent) bool { return e.Vectors })
	if s, err = index.StatusOp.Call(t.Context(), w.Folder, index.StatusRequest{Selection: w.Selection()}, nil); err != nil || !s.KeywordSince.IsZero() || !s.VectorsSince.IsZero() || s.Pending != 0 {
		t.Errorf("afterwards: behind since %v and %v, %v; want neither", s.KeywordSince, s.VectorsSince, err)
	}
	for len(g.let) > 0 {
		<-g.let
	}
	for len(g.entered) > 0 {
		<-g.entered
	}
	write(t, filepath.Join(sel.Root, "auth.md"), "# Auth\n\nNow about a zebra.\n")
	<-g.entered
	if s, err = index.StatusOp.Call(t.Context(), w.Folder, index.StatusRequest{Selection: w.Selection()}, nil); err != nil || s.VectorsSince.Before(since) || s.VectorsSince.IsZero() {
		t.Errorf("after a further change: behind since %v, %v; want later than %v", s.VectorsSince, err, since)
	}
	for range 10 {
		g.let <- struct{}{}
	}
	until(t, events, "vectors again", func(e index.WatchEvent) bool { return e.Vectors })
}
