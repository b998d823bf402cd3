package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"cairn/internal/base/testutil"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/internal/folder/mirror"
	"cairn/internal/store/qdrant/qdranttest"
	"cairn/retriever"
)

// clustered are options with a store on a server.
func clustered(t testing.TB, addr, collection string) Options {
	t.Helper()
	o := hashed()
	var err error
	if o.Store, err = mirror.ParseStore("qdrant://"+addr+"/"+collection, func(string) string { return "" }); err != nil {
		t.Fatal(err)
	}
	return o
}

// server opens a workspace without files that answers from a store.
func server(t testing.TB, o Options) *Workspace {
	t.Helper()
	o.Stateless = true
	return open(t, config.Selection{Root: t.TempDir(), Rule: config.RuleFlag}, Owning, o)
}

// found is what a search answers with, apart from scores and times.
func found(t *testing.T, w *Workspace, query string) string {
	t.Helper()
	a, err := index.SearchOp.Call(t.Context(), w.Folder, retriever.Query{Text: query}, nil)
	if err != nil {
		t.Fatalf("Search(%q): %v", query, err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %v %q", a.Mode, a.Degraded, a.Reason)
	for _, r := range a.Results {
		fmt.Fprintf(&b, "\n%s#%s %d-%d %s %s stale %v", r.Path, r.Anchor, r.LineRange.Start, r.LineRange.End, r.Hash[:8], r.Snippet, r.Stale)
	}
	return b.String()
}

func TestClusterAnswersAsTheFolderDoes(t *testing.T) {
	addr := qdranttest.New(t, nil).Addr()
	sel, same := folder(t), folder(t)
	flat := open(t, same, Owning, hashed())
	fill(t, flat, index.IndexRequest{})
	o := clustered(t, addr, "docs")
	one, two := server(t, o), server(t, o)
	if a, err := index.SearchOp.Call(t.Context(), one.Folder, retriever.Query{Text: "login"}, nil); err != nil || a.Reason != "not_indexed" {
		t.Errorf("before the first run: %+v, %v, want not_indexed", a, err)
	}
	writer := open(t, sel, Owning, o)
	if report := fill(t, writer, index.IndexRequest{}); report.Files != 3 || report.Pending != 0 {
		t.Fatalf("Index = %+v, want 3 files and nothing pending", report)
	}
	compare := func(when string) {
		t.Helper()
		for _, query := range []string{"login flow", "copy the folder", "token", `"asks for a token"`, "copy -night", "session", "tokne", "sesion"} {
			want := found(t, flat, query)
			for name, w := range map[string]*Workspace{"writer": writer, "first server": one, "second server": two} {
				if got := found(t, w, query); got != want {
					t.Errorf("%s, %s, %q:\n%s\nin the folder:\n%s", when, name, query, got, want)
				}
			}
		}
		for _, place := range []string{"auth.md", "auth.md#login", "docs/backup.md:1-3"} {
			want, errWant := index.ReadOp.Call(t.Context(), flat.Folder, retriever.ReadRequest{Path: place}, nil)
			got, err := index.ReadOp.Call(t.Context(), one.Folder, retriever.ReadRequest{Path: place}, nil)
			if (err == nil) != (errWant == nil) || err == nil && (got.Content != want.Content || got.Hash != want.Hash) {
				t.Errorf("%s, reading %s: %+v, %v, in the folder %+v, %v", when, place, got, err, want, errWant)
			}
		}
	}
	compare("at first")
	for _, s := range []config.Selection{sel, same} {
		write(t, filepath.Join(s.Root, "auth.md"), "# Auth\n\n## Entering\n\nThe login flow asks for nothing, and no token.\n\n## Secret\n\nghp_"+strings.Repeat("a1B2", 9)+"\n")
		if err := os.Remove(filepath.Join(s.Root, "docs/restore.md")); err != nil {
			t.Fatal(err)
		}
	}
	fill(t, flat, index.IndexRequest{})
	fill(t, writer, index.IndexRequest{})
	compare("after an edit and a removal")
	if _, err := index.ReadOp.Call(t.Context(), one.Folder, retriever.ReadRequest{Path: "docs/restore.md"}, nil); err == nil {
		t.Error("a document that was removed can still be read")
	}
	if _, ok := errors.AsType[*retriever.NotFoundError](func() error {
		_, err := index.ReadOp.Call(t.Context(), one.Folder, retriever.ReadRequest{Path: "docs/bakcup.md"}, nil)
		return err
	}()); !ok {
		t.Error("a path that is nearly right is no *retriever.NotFoundError")
	}
	if _, err := index.IndexOp.Call(t.Context(), one.Folder, index.IndexRequest{}, nil); !errors.Is(err, index.ErrReadOnly) {
		t.Errorf("indexing by a server without files: %v, want %v", err, index.ErrReadOnly)
	}
	// A server that has just begun; the others may remember for a moment what was.
	s, err := index.StatusOp.Call(t.Context(), server(t, o).Folder, index.StatusRequest{}, nil)
	if err != nil || s.Files != 2 || s.Store != o.Store.String() {
		t.Errorf("Status = %+v, %v, want 2 files and the store", s, err)
	}
	// Another run finds nothing to do, and a second process needs no embedding.
	if report := fill(t, writer, index.IndexRequest{}); report.Added != 0 || report.Embedded != 0 {
		t.Errorf("a run without changes: %+v", report)
	}
}

// TestClusterRebuild searches while a new generation is built and brought into use.
func TestClusterRebuild(t *testing.T) {
	s := qdranttest.New(t, nil)
	sel, o := folder(t), clustered(t, s.Addr(), "docs")
	writer := open(t, sel, Owning, o)
	fill(t, writer, index.IndexRequest{})
	reader := server(t, o)
	want := found(t, reader, "login flow")
	done := make(chan struct{})
	var searching sync.WaitGroup
	searching.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			a, err := index.SearchOp.Call(t.Context(), reader.Folder, retriever.Query{Text: "login flow"}, nil)
			if err != nil || len(a.Results) == 0 || a.Results[0].Path != "auth.md" || a.Mode != retriever.Hybrid {
				t.Errorf("during a rebuild: %+v, %v", a, err)
				return
			}
		}
	})
	for range 3 {
		fill(t, writer, index.IndexRequest{Rebuild: true})
	}
	close(done)
	searching.Wait()
	if got := found(t, reader, "login flow"); got != want {
		t.Errorf("after three rebuilds:\n%s\nwant:\n%s", got, want)
	}
	if names := s.Collections(); !slices.Equal(names, []string{"docs-4", "docs-documents-4", "docs-records"}) {
		t.Errorf("collections after three rebuilds: %v", names)
	}
}

func TestClusterOutage(t *testing.T) {
	s := qdranttest.New(t, nil)
	sel, o := folder(t), clustered(t, s.Addr(), "docs")
	writer := open(t, sel, Owning, o)
	fill(t, writer, index.IndexRequest{})
	reader := server(t, o)
	want := found(t, reader, "login flow")
	s.Stop()
	for range 50 {
		a, err := index.SearchOp.Call(t.Context(), writer.Folder, retriever.Query{Text: "login flow"}, nil)
		if err != nil || len(a.Results) == 0 || a.Results[0].Path != "auth.md" || a.Mode != retriever.Hybrid || len(a.Degraded) > 0 {
			t.Fatalf("with an index of its own: %+v, %v", a, err)
		}
		if a, err := index.SearchOp.Call(t.Context(), reader.Folder, retriever.Query{Text: "login flow"}, nil); !mirror.Unavailable(err) {
			t.Fatalf("without one: %+v, %v, want a *qdrant.UnavailableError", a, err)
		}
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	testutil.Await(t, func() string {
		a, err := index.SearchOp.Call(t.Context(), writer.Folder, retriever.Query{Text: "login flow"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = index.SearchOp.Call(t.Context(), reader.Folder, retriever.Query{Text: "login flow"}, nil)
		if a.Mode != retriever.Hybrid || err != nil {
			return fmt.Sprintf("after the return of the store: %+v, %v", a, err)
		}
		return ""
	})
	if got := found(t, reader, "login flow"); got != want {
		t.Errorf("after the outage:\n%s\nwant:\n%s", got, want)
	}
}

// TestClusterLosesItsChunks deletes the collection of the chunks, with and without a writer.
func TestClusterLosesItsChunks(t *testing.T) {
	s := qdranttest.New(t, nil)
	sel, o := folder(t), clustered(t, s.Addr(), "docs")
	writer := open(t, sel, Owning, o)
	fill(t, writer, index.IndexRequest{})
	want := found(t, server(t, o), "login flow")
	s.Drop("docs-1")
	write(t, filepath.Join(sel.Root, "new.md"), "# New\n\nA document of zebras.\n")
	_, _ = index.IndexOp.Call(t.Context(), writer.Folder, index.IndexRequest{}, nil) // finds that the collection is missing
	fill(t, writer, index.IndexRequest{})
	if got := found(t, server(t, o), "login flow"); got != want {
		t.Errorf("after the writer has filled the collection again:\n%s\nwant:\n%s", got, want)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	s.Drop("docs-1")
	fill(t, open(t, sel, Owning, o), index.IndexRequest{})
	if got := found(t, server(t, o), "login flow"); got != want {
		t.Errorf("after the next writer has filled the collection again:\n%s\nwant:\n%s", got, want)
	}
}

// TestClusterReadsNoPart deletes a collection while no writer runs.
func TestClusterReadsNoPart(t *testing.T) {
	for _, lost := range []string{"docs-1", "docs-documents-1"} {
		s := qdranttest.New(t, nil)
		sel, o := folder(t), clustered(t, s.Addr(), "docs")
		writer := open(t, sel, Owning, o)
		fill(t, writer, index.IndexRequest{})
		reader := server(t, o)
		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}
		s.Drop(lost)
		_, searching := index.SearchOp.Call(t.Context(), reader.Folder, retriever.Query{Text: "login flow"}, nil)
		o.Stateless = true
		_, opening := Open(t.Context(), config.Selection{Root: t.TempDir(), Rule: config.RuleFlag}, config.Default(), Owning, o)
		for _, err := range []error{searching, opening} {
			if err == nil || !strings.Contains(err.Error(), "cairn index") || strings.Contains(err.Error(), "rpc error") {
				t.Errorf("without %s: %v, want an error that says how to repair the store", lost, err)
			}
		}
		if slices.Contains(s.Collections(), lost) {
			t.Errorf("a reader has made %s again, without what it had", lost)
		}
	}
}

// TestClusterLosesEverything empties the server under a writer whose folder does not change.
func TestClusterLosesEverything(t *testing.T) {
	s := qdranttest.New(t, nil)
	sel, o := folder(t), clustered(t, s.Addr(), "docs")
	writer := open(t, sel, Owning, o)
	fill(t, writer, index.IndexRequest{})
	want := found(t, server(t, o), "login flow")
	for _, name := range s.Collections() {
		s.Drop(name)
	}
	reader := server(t, o)
	testutil.Await(t, func() string {
		if got := found(t, reader, "login flow"); got != want {
			return "after the server has lost its collections:\n" + got + "\nwant:\n" + want
		}
		return ""
	})
}

// TestClusterBesidesAnother uses names of collections of another store for a store.
func TestClusterBesidesAnother(t *testing.T) {
	s := qdranttest.New(t, nil)
	writer := open(t, folder(t), Owning, clustered(t, s.Addr(), "docs"))
	fill(t, writer, index.IndexRequest{})
	reader := server(t, clustered(t, s.Addr(), "docs"))
	want := found(t, reader, "login flow")
	for _, name := range []string{"docs-1", "docs-documents", "docs-documents-1", "docs-records"} {
		other := open(t, folder(t), Owning, clustered(t, s.Addr(), name))
		for _, rebuild := range []bool{false, true} {
			_, err := index.IndexOp.Call(t.Context(), other.Folder, index.IndexRequest{Rebuild: rebuild}, nil)
			if err == nil || !strings.Contains(err.Error(), "choose another name") {
				t.Errorf("a store called %s, rebuild %v: %v, want an error that says to choose another name", name, rebuild, err)
			}
		}
	}
	if got := found(t, reader, "login flow"); got != want {
		t.Errorf("after the others:\n%s\nwant:\n%s", got, want)
	}
	second := clustered(t, s.Addr(), "docs-2")
	fill(t, open(t, folder(t), Owning, second), index.IndexRequest{})
	fill(t, writer, index.IndexRequest{Rebuild: true})
	for _, w := range []*Workspace{reader, server(t, second)} {
		if got := found(t, w, "login flow"); got != want {
			t.Errorf("after a rebuild:\n%s\nwant:\n%s", got, want)
		}
	}
}

// TestSecondWriterWaits indexes the same files from another folder.
func TestSecondWriterWaits(t *testing.T) {
	addr := qdranttest.New(t, nil).Addr()
	o := clustered(t, addr, "docs")
	firstSel, secondSel := folder(t), folder(t)
	one := open(t, firstSel, Owning, o)
	fill(t, one, index.IndexRequest{})
	write(t, filepath.Join(secondSel.Root, "new.md"), "# New\n\nWritten by the second.\n")
	two := open(t, secondSel, Owning, o)
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_, err := index.IndexOp.Call(ctx, two.Folder, index.IndexRequest{}, nil)
		ended <- err
	}()
	reader := server(t, o)
	for range 20 {
		if got := found(t, reader, "written by the second"); strings.Contains(got, "new.md") {
			t.Fatal("the second writer wrote beside the first")
		}
	}
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatalf("the second writer: %v", err)
	}
	if got := found(t, reader, "written by the second"); !strings.Contains(got, "new.md") {
		t.Errorf("after the first had closed: %s", got)
	}
}

// TestWriterShowsItsWait indexes while a process on another machine writes to the store.
func TestWriterShowsItsWait(t *testing.T) {
	o := clustered(t, qdranttest.New(t, nil).Addr(), "docs")
	client, err := o.Store.Dial(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	lease, _, err := client.Lease(t.Context(), "process 7 on anns-laptop", nil)
	if err != nil {
		t.Fatal(err)
	}
	var phases []string
	_, err = index.IndexOp.Call(t.Context(), open(t, folder(t), Owning, o).Folder, index.IndexRequest{}, func(p index.Progress) {
		if phases = append(phases, p.String()); strings.Contains(p.Phase, "process 7 on anns-laptop") {
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil || !slices.Contains(phases, "copy: 3 of 3") {
		t.Errorf("steps of a writer that waited: %q, %v, want the copy as well", phases, err)
	}
}

func TestClusterOfAnotherModel(t *testing.T) {
	addr := qdranttest.New(t, nil).Addr()
	o := clustered(t, addr, "docs")
	fill(t, open(t, folder(t), Owning, o), index.IndexRequest{})
	o.Description.ID, o.Description.Dimension = "other@1", 7
	o.Stateless = true
	_, err := Open(t.Context(), config.Selection{Root: t.TempDir(), Rule: config.RuleFlag}, config.Default(), Owning, o)
	if err == nil || !strings.Contains(err.Error(), "was made with model") || !strings.Contains(err.Error(), "other@1") {
		t.Errorf("another model: %v, want an error that names both", err)
	}
}
