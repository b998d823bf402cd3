package workspace

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cairn/internal/base/testutil"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/internal/store/qdrant/qdranttest"
	"cairn/models"
	"cairn/retriever"
)

// TestCommandsOfTheManual runs the three commands by which the manual moves a
// folder to a store: a copy, a writer in the folder, and servers without files.
// Nothing is embedded again and no answer is degraded, neither there nor by a
// writer that has a copy of the files but no index.
func TestCommandsOfTheManual(t *testing.T) {
	addr := qdranttest.New(t, nil).Addr()
	sel := folder(t)
	if err := testutil.WriteFolder(filepath.Join(sel.Root, "many"), 80, 7); err != nil {
		t.Fatal(err)
	}
	e := &testutil.HashEmbedder{}
	alone := hashed()
	alone.Model = func() (models.Embedder, error) { return e, nil }
	owner := open(t, sel, Owning, alone)
	fill(t, owner, index.IndexRequest{})
	if err := owner.Close(); err != nil {
		t.Fatal(err)
	}
	embedded := e.Embedded()
	if embedded == 0 {
		t.Fatal("the first run embedded nothing")
	}
	o := clustered(t, addr, "docs")
	o.Model = alone.Model
	if _, err := CopyOut(t.Context(), sel, config.Default(), o.Store, alone, nil); err != nil {
		t.Fatal(err)
	}
	one := server(t, o)
	whole := func(when string, w *Workspace) {
		t.Helper()
		a, err := index.SearchOp.Call(t.Context(), w.Folder, retriever.Query{Text: "login flow"}, nil)
		if err != nil || a.Mode != retriever.Hybrid || len(a.Degraded) > 0 || a.Index.State == "partial" || a.Index.Pending > 0 || len(a.Results) == 0 {
			t.Errorf("%s: %+v, %v, want a whole answer", when, a, err)
		}
	}
	// watch asks often, while the writer announces what it finds.
	watch := func(when string, all ...*Workspace) {
		t.Helper()
		for range 75 {
			time.Sleep(20 * time.Millisecond)
			for i, w := range all {
				whole(fmt.Sprintf("%s, process %d", when, i), w)
			}
		}
	}
	whole("after the copy", one)
	writing := o
	writing.Background, writing.Watch = true, true
	writer := open(t, sel, Owning, writing)
	whole("the writer at once", writer)
	watch("while the writer runs", one, writer)
	if report := fill(t, writer, index.IndexRequest{Join: true}); report.Embedded != 0 || report.Pending != 0 {
		t.Errorf("the writer's run: %+v, want nothing embedded", report)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}

	// Another machine has the same files.
	elsewhere := folder(t)
	if err := testutil.WriteFolder(filepath.Join(elsewhere.Root, "many"), 80, 7); err != nil {
		t.Fatal(err)
	}
	second := open(t, elsewhere, Owning, o)
	if report := fill(t, second, index.IndexRequest{}); report.Embedded != 0 || report.Pending != 0 {
		t.Errorf("a writer without an index: %+v, want nothing embedded", report)
	}
	watch("while the second writer runs", one, second)
	if n := e.Embedded(); n != embedded {
		t.Errorf("%d texts were embedded again", n-embedded)
	}
}

// TestOwnerWithoutAStore refuses to write to a store through an owner that does
// not copy to it.
func TestOwnerWithoutAStore(t *testing.T) {
	sel := folder(t)
	open(t, sel, Owning, hashed())
	_, err := Open(t.Context(), sel, config.Default(), Owning, clustered(t, qdranttest.New(t, nil).Addr(), "docs"))
	if err == nil || !strings.Contains(err.Error(), "stop it first") {
		t.Errorf("an owner without a store: %v, want an error that names it", err)
	}
}
