package workspace

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cairn/graphrank"
	"cairn/internal/store/qdrant/qdranttest"
	"cairn/internal/testutil"
	"cairn/internal/toolsearch"
	"cairn/internal/usage"
	"cairn/retriever"
)

// storeBox opens the toolbox of a store for a server without a disk.
func storeBox(t *testing.T, o Options) *Toolbox {
	t.Helper()
	box, err := OpenSharedToolbox(Selection{Root: "/nowhere"}, DefaultConfig().Usage, o.Store, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	return box
}

const storedTools = `{"server":"fs","name":"read_file","description":"Reads a file"}
{"server":"fs","name":"delete_file","description":"Removes a file"}
{"server":"net","name":"fetch","description":"Fetches a page"}`

func used(intent string, tools ...string) usage.Trace {
	t := usage.Trace{Intent: intent}
	for _, id := range tools {
		t.Calls = append(t.Calls, usage.Call{Tool: id})
	}
	return t
}

// within asks until it is so, and fails after the two seconds that servers may
// differ for.
func within(t *testing.T, what string, so func() bool) {
	t.Helper()
	for begun := time.Now(); !so(); {
		if time.Since(begun) > 2*time.Second {
			t.Fatalf("%s: not within 2 s", what)
		}
	}
}

// TestTwoServersKnowTheSameTools: what one server imports and learns ranks in the
// other as well, within two seconds, and is embedded once.
func TestTwoServersKnowTheSameTools(t *testing.T) {
	o := clustered(t, qdranttest.New(t, nil).Addr(), "docs")
	one, two := storeBox(t, o), storeBox(t, o)
	e1, e2 := &testutil.HashEmbedder{}, &testutil.HashEmbedder{}
	modelOf(one, e1)
	modelOf(two, e2)
	importTools(t, one, "s", storedTools)
	searchTools(t, one, "file")
	if err := one.WaitVectors(t.Context(), nil); err != nil || e1.Embedded() != 6 {
		t.Fatalf("%d texts embedded, %v, want 6", e1.Embedded(), err)
	}
	within(t, "imported tools", func() bool { return len(searchTools(t, two, "reads a file").Tools) > 0 })
	if err := two.WaitVectors(t.Context(), nil); err != nil || e2.Embedded() != 0 {
		t.Errorf("%d texts embedded by the second server, %v, want none", e2.Embedded(), err)
	}
	// What was never said of fetch.
	const query = "tidy up the cellar"
	for range 4 {
		if _, err := one.Learn(t.Context(), used(query, "fetch", "delete_file")); err != nil {
			t.Fatal(err)
		}
	}
	ranks := func(box *Toolbox, query string) string {
		a := searchTools(t, box, query)
		b, err := json.Marshal(a.Tools)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(a.Degraded, " ") + string(b)
	}
	within(t, "what was learnt", func() bool {
		a := searchTools(t, two, query)
		return slices.ContainsFunc(a.Tools, func(h toolsearch.Found) bool { return h.ID == "net:fetch" })
	})
	for _, box := range []*Toolbox{one, two} {
		if err := box.WaitVectors(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, q := range []string{query, "file", "reads a page", "removes"} {
		if diff := cmp.Diff(ranks(one, q), ranks(two, q)); diff != "" {
			t.Errorf("%q: (- first server, + second)\n%s", q, diff)
		}
	}
	if e1.Embedded()+e2.Embedded() > 8 { // the tools, and the intent by each that waited for it
		t.Errorf("%d and %d texts embedded, want each about once", e1.Embedded(), e2.Embedded())
	}
	if _, err := two.Catalog.Forget("s"); err != nil {
		t.Fatal(err)
	}
	within(t, "what was forgotten", func() bool { return len(searchTools(t, one, "file").Tools) == 0 })
}

// TestServersShareCoUsage lifts on one server the document that was read on the other.
func TestServersShareCoUsage(t *testing.T) {
	sel, o := folder(t), clustered(t, qdranttest.New(t, nil).Addr(), "docs")
	index(t, open(t, sel, Owning, o), IndexRequest{})
	one, two := server(t, o), server(t, o)
	score := func(w *Workspace) (s float64) {
		a, err := w.Search(t.Context(), retriever.Query{Text: "copy the folder", Context: []string{"auth.md"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range a.Results {
			if r.Path == "docs/backup.md" {
				s = max(s, r.Score)
			}
		}
		return s
	}
	before := score(one)
	if got := score(two); got != before || before == 0 {
		t.Fatalf("two servers score %v and %v", before, got)
	}
	box := storeBox(t, o)
	for range 3 {
		if err := box.Usage.Observe(t.Context(), usage.Sight{From: usage.DocumentID("auth.md"), To: usage.DocumentID("docs/backup.md"), Type: graphrank.Sequence}); err != nil {
			t.Fatal(err)
		}
	}
	within(t, "what was read", func() bool { return score(one) > before && score(two) > before })
}

// TestCopyToolbox copies to a store and back to another folder.
func TestCopyToolbox(t *testing.T) {
	o := clustered(t, qdranttest.New(t, nil).Addr(), "docs")
	from, to, usage := t.TempDir(), t.TempDir(), DefaultConfig().Usage
	source := openToolbox(t, from)
	importTools(t, source, "s", storedTools)
	importTools(t, source, "later", `{"server":"fs","name":"read_file","description":"Reads it all"}`)
	if _, err := source.Learn(t.Context(), used("read it", "read_file", "fetch", "doc:a.md"), used("remove it", "delete_file")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(to, ".cairn", "index"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 { // again changes nothing
		if n, err := CopyToolbox(Selection{Root: from}, usage, o.Store, false, nil); n != 3 || err != nil {
			t.Fatalf("copying out: %d tools, %v, want 3", n, err)
		}
		if n, err := CopyToolbox(Selection{Root: to}, usage, o.Store, true, nil); n != 3 || err != nil {
			t.Fatalf("copying back: %d tools, %v, want 3", n, err)
		}
	}
	// An empty folder takes nothing away.
	if n, err := CopyToolbox(Selection{Root: t.TempDir()}, usage, o.Store, false, nil); n != 3 || err != nil {
		t.Fatalf("copying an empty toolbox: %d tools, %v, want 3 still", n, err)
	}
	all := func(box *Toolbox) (got struct{ Tools, Sources, Edges, Intents string }) {
		t.Helper()
		tools, err := box.Catalog.Tools()
		if err != nil {
			t.Fatal(err)
		}
		sources, err := box.Catalog.Sources()
		if err != nil {
			t.Fatal(err)
		}
		intents, err := box.Usage.Intents()
		if err != nil {
			t.Fatal(err)
		}
		text := func(v any) string {
			b, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		got.Tools, got.Sources, got.Intents = text(tools), text(sources), text(intents)
		if err := box.Usage.Read(func(g *graphrank.Graph) error {
			for e := range g.Edges() {
				e.Count = 0 // ages
				got.Edges += text(e)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return got
	}
	back, shared := openToolbox(t, to), storeBox(t, o)
	want := all(source)
	for name, box := range map[string]*Toolbox{"store": shared, "folder": back} {
		if diff := cmp.Diff(want, all(box)); diff != "" || want.Edges == "" {
			t.Errorf("(- copied, + %s)\n%s", name, diff)
		}
	}
	// An import into the copy is newer than all that came along.
	importTools(t, back, "s", `{"server":"fs","name":"read_file","description":"Reads anew"}`)
	if tool, err := back.Catalog.Lookup("read_file"); err != nil || tool.Description != "Reads anew" {
		t.Errorf("after an import into the copy: %+v, %v", tool, err)
	}
}
