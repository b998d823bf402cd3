package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/base/home"
	"cairn/internal/base/job"
	"cairn/internal/base/owner"
	"cairn/internal/base/testutil"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/internal/folder/scan"
	"cairn/models"
	"cairn/retriever"
)

// folder makes a workspace of three documents.
func folder(t testing.TB) config.Selection {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "auth.md"), "# Auth\n\n## Login\n\nThe login flow asks for a token.\n\n## Logout\n\nEnds the session.\n")
	write(t, filepath.Join(root, "docs/backup.md"), "# Backup\n\nCopy the folder every night.\n")
	write(t, filepath.Join(root, "docs/restore.md"), "# Restore\n\nCopy it back.\n")
	return config.Selection{Root: root, Rule: config.RuleFlag}
}

// hashed are options with an embedder that needs no model.
func hashed() Options {
	e := &testutil.HashEmbedder{}
	return Options{Settings: index.Settings{Description: e.Description(), Model: func() (models.Embedder, error) { return e, nil }}, Command: "test"}
}

func open(t testing.TB, sel config.Selection, access Access, o Options) *Workspace {
	t.Helper()
	w, err := Open(t.Context(), sel, config.Default(), access, o)
	if err != nil {
		t.Fatalf("Open(%s): %v", sel.Root, err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func fill(t testing.TB, w *Workspace, r index.IndexRequest) *index.IndexReport {
	t.Helper()
	report, err := index.IndexOp.Call(t.Context(), w.Folder, r, nil)
	if err != nil {
		t.Fatalf("Index: %v", err)
	}
	return report
}

func first(t *testing.T, w *Workspace, query string) string {
	t.Helper()
	a, err := index.SearchOp.Call(t.Context(), w.Folder, retriever.Query{Text: query}, nil)
	if err != nil {
		t.Fatalf("Search(%q): %v", query, err)
	}
	if len(a.Results) == 0 {
		t.Fatalf("Search(%q) found nothing: %+v", query, a)
	}
	return a.Results[0].Path
}

// TestScanWithoutIndexing: a process that neither indexes nor has a store scans the folder.
func TestScanWithoutIndexing(t *testing.T) {
	o := hashed()
	o.Stateless = true
	w := open(t, folder(t), Owning, o)
	if a, err := w.Scan(t.Context(), scan.Request{Pattern: "token"}); err != nil || a.Total != 1 || a.Searched != 3 {
		t.Errorf("Scan = %+v, %v, want a line of three files", a, err)
	}
}

func TestReadingAMissingIndexMakesNone(t *testing.T) {
	sel := folder(t)
	w := open(t, sel, Reading, hashed())
	a, err := index.SearchOp.Call(t.Context(), w.Folder, retriever.Query{Text: "login"}, nil)
	if err != nil || a.Reason != "not_indexed" || a.Index.State != "missing" || !strings.Contains(a.Hint, "index") {
		t.Errorf("Search = %+v, %v, want not_indexed with a hint", a, err)
	}
	if s, err := index.StatusOp.Call(t.Context(), w.Folder, index.StatusRequest{Selection: w.Selection()}, nil); err != nil || s.State != "missing" || !cmp.Equal(s.Workspace, sel) {
		t.Errorf("Status = %+v, %v, want missing", s, err)
	}
	if _, err := index.ReadOp.Call(t.Context(), w.Folder, retriever.ReadRequest{Path: "auth.md"}, nil); !errors.Is(err, index.ErrNoIndex) {
		t.Errorf("Read = %v, want ErrNoIndex", err)
	}
	if _, err := os.Stat(filepath.Join(sel.Root, ".cairn")); err == nil {
		t.Error("reading made .cairn")
	}
	// The same workspace indexes when it is asked to.
	if report := fill(t, w, index.IndexRequest{}); report.Files != 3 || report.Added != 3 || report.Pending != 0 {
		t.Errorf("Index = %+v, want 3 files and nothing pending", report)
	}
	if got := first(t, w, "login flow"); got != "auth.md" {
		t.Errorf("first result %s, want auth.md", got)
	}
}

// TestFreshFolderIsNotStale: the files are milliseconds old when they are indexed.
func TestFreshFolderIsNotStale(t *testing.T) {
	w := open(t, folder(t), Owning, hashed())
	fill(t, w, index.IndexRequest{})
	a, err := index.SearchOp.Call(t.Context(), w.Folder, retriever.Query{Text: "copy login"}, nil)
	if err != nil || len(a.Results) == 0 || len(a.Degraded) != 0 {
		t.Fatalf("Search = %+v, %v, want results and nothing degraded", a, err)
	}
	for _, r := range a.Results {
		if r.Stale {
			t.Errorf("%s is called stale", r.Path)
		}
	}
}

// TestFirstSearchWaitsForItsFiles searches while the first run has only begun.
func TestFirstSearchWaitsForItsFiles(t *testing.T) {
	sel := folder(t)
	for i := range 1000 {
		write(t, filepath.Join(sel.Root, fmt.Sprintf("a/%04d.md", i)), fmt.Sprintf("# Page %d\n\nNothing about it.\n", i))
	}
	o := hashed()
	o.Background = true
	w := open(t, sel, Owning, o)
	a, err := index.SearchOp.Call(t.Context(), w.Folder, retriever.Query{Text: "login flow", Mode: retriever.Keyword}, nil)
	if err != nil || len(a.Results) == 0 || a.Results[0].Path != "auth.md" {
		t.Fatalf("Search = %+v, %v, want auth.md", a, err)
	}
	if lacks := slices.Contains(a.Degraded, "files"); lacks != (a.Index.Unindexed > 0) {
		t.Errorf("degraded %v with %d files not indexed", a.Degraded, a.Index.Unindexed)
	}
}

func TestIndexSearchReadAgain(t *testing.T) {
	sel := folder(t)
	w := open(t, sel, Owning, hashed())
	var phases []string
	report, err := index.IndexOp.Call(t.Context(), w.Folder, index.IndexRequest{}, func(p job.Progress) { phases = append(phases, p.Phase) })
	if err != nil || report.Files != 3 || report.Embedded == 0 {
		t.Fatalf("Index = %+v, %v", report, err)
	}
	if len(phases) == 0 {
		t.Error("no progress was told")
	}
	if again := fill(t, w, index.IndexRequest{}); again.Embedded != 0 || again.Added != 0 || again.Unchanged != 3 {
		t.Errorf("the second run did %+v, want nothing", again)
	}
	w.Close()
	r := open(t, sel, Reading, hashed())
	if got := first(t, r, "copy the folder"); got != "docs/backup.md" {
		t.Errorf("first result %s, want docs/backup.md", got)
	}
	reading, err := index.ReadOp.Call(t.Context(), r.Folder, retriever.ReadRequest{Path: "auth.md#login"}, nil)
	if err != nil || !strings.HasPrefix(reading.Content, "## Login") {
		t.Errorf("Read = %+v, %v", reading, err)
	}
	s, err := index.StatusOp.Call(t.Context(), r.Folder, index.StatusRequest{Selection: r.Selection()}, nil)
	if err != nil || s.State != "ready" || s.Files != 3 || s.Owner != nil {
		t.Errorf("Status = %+v, %v, want ready without an owner", s, err)
	}
	if _, err := os.Stat(filepath.Join(sel.Root, ".cairn")); err == nil {
		t.Error("indexing made .cairn in the folder")
	}
}

// TestSecondWorkspaceAsksTheOwner opens one folder three times; only the first
// has the stores.
func TestSecondWorkspaceAsksTheOwner(t *testing.T) {
	sel := folder(t)
	holder := open(t, sel, Owning, hashed())
	fill(t, holder, index.IndexRequest{})
	for _, access := range []Access{Reading, Owning} {
		w := open(t, sel, access, hashed())
		if got := first(t, w, "login flow"); got != "auth.md" {
			t.Errorf("first result %s, want auth.md", got)
		}
		if w.Folder.Owns() {
			t.Error("the second workspace owns the folder, want it to ask the owner")
		}
		_, err := index.ReadOp.Call(t.Context(), w.Folder, retriever.ReadRequest{Path: "auth.md#log"}, nil)
		if missing, ok := errors.AsType[*retriever.NotFoundError](err); !ok || missing.Anchor != "log" || len(missing.Nearest) == 0 {
			t.Errorf("Read = %v, want the owner's *NotFoundError with its evidence", err)
		}
		if _, err := index.SearchOp.Call(t.Context(), w.Folder, retriever.Query{}, nil); err == nil || !strings.Contains(err.Error(), "query") {
			t.Errorf("Search = %v, want an error about the query", err)
		}
		all, err := index.ReadAllOp.Call(t.Context(), w.Folder, retriever.ReadRequest{Paths: []string{"auth.md", "no.md"}}, nil)
		if err != nil || len(all.Documents) != 1 || len(all.Failed) != 1 {
			t.Errorf("ReadAll = %+v, %v, want one document and one failure", all, err)
		}
		if report := fill(t, w, index.IndexRequest{}); report.Unchanged != 3 {
			t.Errorf("Index through the owner = %+v, want 3 unchanged", report)
		}
	}
	// When the owner goes away, the others open the folder themselves.
	w := open(t, sel, Owning, hashed())
	first(t, w, "login flow")
	holder.Close()
	if got := first(t, w, "login flow"); got != "auth.md" {
		t.Errorf("first result %s, want auth.md", got)
	}
	if !w.Folder.Owns() {
		t.Error("after the owner ended, the second workspace does not own the folder")
	}
}

// blocked is an embedder that waits, so that a run does not end by itself.
type blocked struct {
	testutil.HashEmbedder
	entered chan struct{}
}

func (b *blocked) EmbedDocuments(ctx context.Context, _ []string) ([][]float32, error) {
	select {
	case b.entered <- struct{}{}:
	default:
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestOneRunAtATime(t *testing.T) {
	sel := folder(t)
	e := &blocked{entered: make(chan struct{}, 1)}
	o := hashed()
	o.Model = func() (models.Embedder, error) { return e, nil }
	o.Command, o.Background = "cairn index", true
	holder := open(t, sel, Owning, o)
	<-e.entered
	other := open(t, sel, Owning, hashed())
	_, err := index.IndexOp.Call(t.Context(), other.Folder, index.IndexRequest{}, nil)
	lock, ok := errors.AsType[*owner.LockError](err)
	if !ok || lock.Holder.PID != os.Getpid() || lock.Holder.Command != "cairn index" || lock.Doing != "indexing" {
		t.Errorf("Index beside a run = %v, want a *LockError with its holder", err)
	}
	// Keyword answers meanwhile, and says what is missing.
	a, err := index.SearchOp.Call(t.Context(), other.Folder, retriever.Query{Text: "login flow", Mode: retriever.Keyword}, nil)
	if err != nil || len(a.Results) == 0 || a.Index.State != "building" {
		t.Errorf("Search beside a run = %+v, %v, want results and state building", a, err)
	}
	s, err := index.StatusOp.Call(t.Context(), other.Folder, index.StatusRequest{Selection: other.Selection()}, nil)
	if err != nil || s.Progress == nil || s.Owner == nil || s.Owner.PID != os.Getpid() {
		t.Errorf("Status beside a run = %+v, %v, want progress and owner", s, err)
	}
	// Who joins the run can stop waiting for it.
	ctx, cancel := context.WithCancel(t.Context())
	searchable := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		_, err := index.IndexOp.Call(ctx, other.Folder, index.IndexRequest{Join: true}, func(p job.Progress) {
			if p.Searchable {
				close(searchable)
			}
		})
		done <- err
	}()
	<-searchable
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Index after its context ended = %v, want context.Canceled", err)
	}
	if s, err := index.StatusOp.Call(t.Context(), holder.Folder, index.StatusRequest{Selection: holder.Selection()}, nil); err != nil || s.Progress == nil {
		t.Error("the run ended with one who waited for it")
	}
	// The run ends with its owner, and the other takes over and completes it.
	holder.Close()
	if report := fill(t, other, index.IndexRequest{}); report.Pending != 0 || report.Files != 3 {
		t.Errorf("the run after = %+v, want it complete", report)
	}
}

// described is another model with the same vectors.
type described struct {
	testutil.HashEmbedder
	d models.Description
}

func (d *described) Description() models.Description { return d.d }

// TestOtherChunksAreRebuilt: a reader finds no index that it can use, and the owner makes
// it again.
func TestOtherChunksAreRebuilt(t *testing.T) {
	sel := folder(t)
	w := open(t, sel, Owning, hashed())
	fill(t, w, index.IndexRequest{})
	w.Close()

	// The same model, but it is read to another length, as if the rules had changed.
	e := &testutil.HashEmbedder{Tokens: 128}
	o := Options{Settings: index.Settings{Description: e.Description(), Model: func() (models.Embedder, error) { return e, nil }}}
	reader := open(t, sel, Reading, o)
	if answer, err := index.SearchOp.Call(t.Context(), reader.Folder, retriever.Query{Text: "login"}, nil); err != nil || answer.Reason != "not_indexed" {
		t.Errorf("Search of a reader = %+v, %v, want the reason not_indexed", answer, err)
	}
	reader.Close()
	w = open(t, sel, Owning, o)
	fill(t, w, index.IndexRequest{})
	if got := first(t, w, "login flow"); got != "auth.md" {
		t.Errorf("first result %s, want auth.md", got)
	}
	w.Close()
}

func TestAnotherModelNeedsARebuild(t *testing.T) {
	sel := folder(t)
	w := open(t, sel, Owning, hashed())
	fill(t, w, index.IndexRequest{})
	w.Close()

	e := &described{}
	e.d = e.HashEmbedder.Description()
	was := e.d.ID
	e.d.Name, e.d.ID = "other", "other@123456789abc"
	o := hashed()
	o.Description, o.Model = e.d, func() (models.Embedder, error) { return e, nil }
	check := func(what string, err error) {
		t.Helper()
		if _, ok := errors.AsType[*index.RebuildError](err); !ok || !strings.Contains(err.Error(), was) || !strings.Contains(err.Error(), e.d.ID) || !strings.Contains(err.Error(), "cairn index --rebuild") {
			t.Errorf("%s = %v, want a *RebuildError with both models and the command", what, err)
		}
	}
	w = open(t, sel, Reading, o)
	_, err := index.SearchOp.Call(t.Context(), w.Folder, retriever.Query{Text: "login"}, nil)
	check("Search of a reader", err)
	if s, err := index.StatusOp.Call(t.Context(), w.Folder, index.StatusRequest{Selection: w.Selection()}, nil); err != nil || s.State != "unusable" || !strings.Contains(s.Problem, was) {
		t.Errorf("Status of a reader = %+v, %v, want the problem in it", s, err)
	}
	w.Close()

	w = open(t, sel, Owning, o)
	_, err = index.SearchOp.Call(t.Context(), w.Folder, retriever.Query{Text: "login"}, nil)
	check("Search", err)
	_, err = index.IndexOp.Call(t.Context(), w.Folder, index.IndexRequest{}, nil)
	check("Index", err)
	if s, err := index.StatusOp.Call(t.Context(), w.Folder, index.StatusRequest{Selection: w.Selection()}, nil); err != nil || !strings.Contains(s.Problem, was) {
		t.Errorf("Status = %+v, %v, want the problem in it", s, err)
	}
	if report := fill(t, w, index.IndexRequest{Rebuild: true}); report.Files != 3 {
		t.Errorf("rebuilding = %+v, want 3 files", report)
	}
	if got := first(t, w, "login flow"); got != "auth.md" {
		t.Errorf("first result %s, want auth.md", got)
	}

	// A process that insists on its model does not ask an owner with another.
	o = hashed()
	o.ModelChosen = true
	if _, err := Open(t.Context(), sel, config.Default(), Reading, o); err == nil || !strings.Contains(err.Error(), e.d.ID) || !strings.Contains(err.Error(), was) {
		t.Errorf("Open beside an owner with another model = %v, want an error with both", err)
	}
}

func TestModelThatDoesNotOpen(t *testing.T) {
	sel := folder(t)
	o := hashed()
	broken := errors.New("model.onnx is corrupted")
	o.Model = func() (models.Embedder, error) { return nil, broken }
	w := open(t, sel, Owning, o)
	if _, err := index.IndexOp.Call(t.Context(), w.Folder, index.IndexRequest{}, nil); !errors.Is(err, broken) {
		t.Errorf("Index = %v, want the model's error", err)
	}
}

func TestLongPathsGetAShortSocket(t *testing.T) {
	sel := folder(t)
	t.Setenv(home.Variable, filepath.Join(t.TempDir(), strings.Repeat("long/", 25)))
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	w := open(t, sel, Owning, hashed())
	fill(t, w, index.IndexRequest{})
	other := open(t, sel, Reading, hashed())
	if other.Folder.Owns() {
		t.Error("the second workspace owns the folder, want it to ask the owner")
	}
	paths, err := filepath.Glob(filepath.Join(temp, "cairn-*", "*.sock"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("sockets %v, %v, want one in %s", paths, err, temp)
	}
	path := paths[0]
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 || !strings.HasPrefix(path, temp) {
		t.Errorf("socket %s: %v, %v, want mode 0600 in %s", path, info, err, temp)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the socket's folder: %v, %v, want mode 0700", info, err)
	}
	w.Close()
	if _, err := os.Stat(path); err == nil {
		t.Error("the socket is there after the end of its owner")
	}
}

func TestFurtherRootsAreSearched(t *testing.T) {
	sel, other := folder(t), folder(t)
	write(t, filepath.Join(other.Root, "walrus.md"), "# Walrus\n\nThe walrus lives on ice.\n")
	sel.Further = []config.Root{{Name: "zoo", Dir: other.Root}}
	w := open(t, sel, Owning, hashed())
	if report := fill(t, w, index.IndexRequest{}); report.Files != 7 {
		t.Errorf("Index = %+v, want 7 files", report)
	}
	if got := first(t, w, "walrus on ice"); got != "zoo/walrus.md" {
		t.Errorf("first result %s, want zoo/walrus.md", got)
	}
	if r, err := index.ReadOp.Call(t.Context(), w.Folder, retriever.ReadRequest{Path: "zoo/walrus.md"}, nil); err != nil || !strings.Contains(r.Content, "ice") {
		t.Errorf("Read = %+v, %v", r, err)
	}
}

// TestWorkspacesAreApart makes sure that one folder's answers never hold another's documents.
func TestWorkspacesAreApart(t *testing.T) {
	a, b := folder(t), folder(t)
	write(t, filepath.Join(b.Root, "walrus.md"), "# Walrus\n\nThe walrus lives on ice.\n")
	wa, wb := open(t, a, Owning, hashed()), open(t, b, Owning, hashed())
	fill(t, wa, index.IndexRequest{})
	fill(t, wb, index.IndexRequest{})
	if got := first(t, wb, "walrus"); got != "walrus.md" {
		t.Errorf("first result %s, want walrus.md", got)
	}
	answer, err := index.SearchOp.Call(t.Context(), wa.Folder, retriever.Query{Text: "walrus", Mode: retriever.Keyword}, nil)
	if err != nil || len(answer.Results) != 0 {
		t.Errorf("Search = %+v, %v, want nothing of the other folder", answer, err)
	}
}

// indexedFolder is a folder with an index that no process has open.
func indexedFolder(t *testing.T) config.Selection {
	t.Helper()
	sel := folder(t)
	w := open(t, sel, Owning, hashed())
	fill(t, w, index.IndexRequest{})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return sel
}
