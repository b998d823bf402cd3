package docs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/store"
	"cairn/internal/store/kv"
	"cairn/models"
)

var background = context.Background()

func openStore(t testing.TB, path string, o *Options) *Store {
	t.Helper()
	db, err := kv.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s, err := Open(db, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// page makes a document whose sections have the given anchors and numbers of
// chunks: "intro:2" is a section with two chunks.
func page(path string, sections ...string) Put {
	text := strings.Repeat("x", 100*len(sections))
	p := Put{Text: []byte(text), Document: store.Document{
		Path: path, Title: "Title of " + path, Hash: hash(path + strings.Join(sections, " ")), Size: int64(len(text)), ModTime: 7,
		Labels: store.Labels{Found: true, Tags: []string{"a", "b"}, Priority: "high", Assignee: "@ann", Status: "todo"},
	}}
	for i, spec := range sections {
		anchor, chunks, _ := strings.Cut(spec, ":")
		s := store.Section{
			Level: 1 + i%6, Heading: "About " + anchor, Anchor: anchor, Parent: i - 1,
			Start: 100 * i, OwnEnd: 100*i + 100, End: len(text), StartLine: i + 1, OwnEndLine: i + 1, EndLine: len(sections),
			Hash: hash(anchor), Fingerprint: 1<<63 | uint64(i),
		}
		s.Trail = trailBelow(p.Document.Sections, s.Parent, s.Heading)
		for n := range len(chunks) {
			s.Chunks = append(s.Chunks, store.Chunk{Start: 100*i + n, End: 100*i + n + 1, Fence: strings.Repeat("`", 3*(n%2))})
		}
		p.Document.Sections = append(p.Document.Sections, s)
	}
	return p
}

func mustPut(t *testing.T, s *Store, puts ...Put) {
	t.Helper()
	if err := s.Put(background, puts); err != nil {
		t.Fatal(err)
	}
}

func pending(t *testing.T, s *Store, kind Kind) []PendingDoc {
	t.Helper()
	p, err := pendingAfter(s, kind, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func pendingAfter(s *Store, kind Kind, after string, limit int) ([]PendingDoc, error) {
	return view(s, func(r *Reader) ([]PendingDoc, error) { return r.Pending(kind, after, limit) })
}

func TestRoundTrip(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "docs.db"), nil)
	odd := page("docs/odd.md", "", "über:..", "c:.")
	odd.Document.Sections[0] = store.Section{Parent: -1, Trail: nil, OwnEnd: 100, End: 100, Hash: hash("")}
	odd.Document.Sections[2].Trail = []string{"another", "trail"}
	odd.Document.Labels = store.Labels{}
	empty := Put{Document: store.Document{Path: "empty.txt", Title: "empty", Hash: hash("")}}
	for _, p := range []Put{page("a.md", "one:..", "two:."), odd, empty} {
		mustPut(t, s, p)
		got, err := s.Document(p.Document.Path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&p.Document, got); diff != "" {
			t.Errorf("%s after a round trip (-want +got):\n%s", p.Document.Path, diff)
		}
		text, ok, err := s.Text(p.Document.Path)
		if err != nil || !ok || string(text) != string(p.Text) {
			t.Errorf("Text(%s): %q, %v, %v, want %q", p.Document.Path, text, ok, err, p.Text)
		}
	}
	if d, err := s.Document("absent"); d != nil || err != nil {
		t.Errorf("Document(absent): %v, %v, want nil, nil", d, err)
	}
	if _, ok, err := s.Text("absent"); ok || err != nil {
		t.Errorf("Text(absent): %v, %v, want false, nil", ok, err)
	}
}

func TestStale(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "docs.db"), nil)
	check := func(step string, kind Kind, want ...string) {
		t.Helper()
		var got []string
		for _, p := range pending(t, s, kind) {
			got = append(got, fmt.Sprintf("%s deleted=%v chunks=%d %v", p.Path, p.Deleted, p.Chunks, p.Stale))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: pending %v (-want +got):\n%s", step, kind, diff)
		}
	}
	mustPut(t, s, page("p", "a:..", "b:."))
	check("first", Keyword, "p deleted=false chunks=3 []")
	early := pending(t, s, Keyword)
	mustPut(t, s, page("p", "a:.", "c:."))
	check("second", Keyword, "p deleted=false chunks=2 [p#a.1 p#b.0]")
	if err := s.Done(background, Keyword, []Mark{early[0].Mark, {Path: "absent", Seq: 1}}, 7); err != nil {
		t.Fatal(err)
	}
	check("an old mark must not clear a new one", Keyword, "p deleted=false chunks=2 [p#a.1 p#b.0]")
	if err := s.Done(background, Keyword, []Mark{pending(t, s, Keyword)[0].Mark}, 7); err != nil {
		t.Fatal(err)
	}
	check("cleared", Keyword)
	mustPut(t, s, page("p", "b:."))
	check("after clearing, only the last version's", Keyword, "p deleted=false chunks=1 [p#a.0 p#c.0]")
	check("never cleared: all but what is there again", Vectors, "p deleted=false chunks=1 [p#a.0 p#a.1 p#c.0]")
	if err := s.Delete(background, []string{"p", "absent"}); err != nil {
		t.Fatal(err)
	}
	check("deleted", Vectors, "p deleted=true chunks=0 [p#a.0 p#a.1 p#b.0 p#c.0]")
	mustPut(t, s, page("p", "a:."))
	check("back again", Vectors, "p deleted=false chunks=1 [p#a.1 p#b.0 p#c.0]")
	if err := s.Done(background, Keyword, []Mark{pending(t, s, Keyword)[0].Mark}, 7); err != nil {
		t.Fatal(err)
	}
	if meta, err := s.Meta(); err != nil || meta.Positions != [2]uint64{Keyword: 7} {
		t.Errorf("positions %v, %v, want 7 for keywords", meta.Positions, err)
	}
	if err := s.Renew(background, Keyword); err != nil {
		t.Fatal(err)
	}
	if meta, err := s.Meta(); err != nil || meta.Positions != [2]uint64{} {
		t.Errorf("positions %v, %v after Renew, want none", meta.Positions, err)
	}
	check("renewed", Keyword, "p deleted=false chunks=1 []")
}

func TestPendingPages(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "docs.db"), nil)
	for _, path := range []string{"c", "a", "a/b", "b"} {
		mustPut(t, s, page(path, "x:."))
	}
	var got []string
	for after := ""; ; {
		p, err := pendingAfter(s, Vectors, after, 3)
		if err != nil {
			t.Fatal(err)
		}
		if len(p) == 0 {
			break
		}
		for _, d := range p {
			got = append(got, d.Path)
		}
		got = append(got, "|")
		after = p[len(p)-1].Path
	}
	if got, want := strings.Join(got, " "), "a a/b b | c |"; got != want {
		t.Errorf("paths by threes: %q, want %q", got, want)
	}
}

func TestTouchReachesCachedDocument(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "docs.db"), nil)
	mustPut(t, s, page("p", "a:."))
	if d, err := s.Document("p"); err != nil || d.ModTime != 7 {
		t.Fatalf("Document: %v, %v", d, err)
	}
	if err := s.Done(background, Keyword, []Mark{pending(t, s, Keyword)[0].Mark}, 7); err != nil {
		t.Fatal(err)
	}
	if err := s.Touch(background, []File{{Path: "p", Size: 11, ModTime: 12}, {Path: "absent"}}); err != nil {
		t.Fatal(err)
	}
	d, err := s.Document("p")
	if err != nil || d.Size != 11 || d.ModTime != 12 {
		t.Errorf("after Touch: size %d, time %d, %v, want 11, 12", d.Size, d.ModTime, err)
	}
	if p := pending(t, s, Keyword); len(p) != 0 {
		t.Errorf("after Touch %d documents are pending, want 0", len(p))
	}
	files, err := s.Files()
	if err != nil || len(files) != 1 || files["p"].ModTime != 12 {
		t.Errorf("Files: %v, %v", files, err)
	}
	if f := files["p"]; f.HexHash() != d.Hash {
		t.Errorf("HexHash: %s, want %s", f.HexHash(), d.Hash)
	}
}

// Change times come and go with what is written, and leave with the document.
func TestChangeTimes(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "docs.db"), nil)
	put := page("p", "a:.")
	put.ChangeTime = 8
	mustPut(t, s, put, page("q", "a:."))
	check := func(after string, want map[string]int64) {
		t.Helper()
		files, err := s.Files()
		if err != nil || len(files) != len(want) {
			t.Fatalf("after %s: %v, %v, want %d files", after, files, err, len(want))
		}
		for path, at := range want {
			if got := files[path].ChangeTime; got != at {
				t.Errorf("after %s: %s was changed at %d, want %d", after, path, got, at)
			}
		}
	}
	check("Put", map[string]int64{"p": 8, "q": 0})
	if err := s.Touch(background, []File{{Path: "p", Size: 1, ModTime: 2}, {Path: "q", Size: 1, ModTime: 2, ChangeTime: 3}}); err != nil {
		t.Fatal(err)
	}
	check("Touch", map[string]int64{"p": 0, "q": 3})
	if err := s.Delete(background, []string{"q"}); err != nil {
		t.Fatal(err)
	}
	check("Delete", map[string]int64{"p": 0})
	mustPut(t, s, page("q", "a:."))
	check("another document of that path", map[string]int64{"p": 0, "q": 0})
}

func TestSkipped(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "docs.db"), nil)
	for _, want := range [][]Skipped{
		{{Path: "a", Reason: "binary"}, {Path: "b", Reason: "too large"}},
		{{Path: "b", Reason: "not UTF-8", Size: 256, ModTime: 1e18}, {Path: "c", Reason: "symlink"}},
		{{Path: "b", Reason: "not UTF-8", Size: 256, ModTime: 1e18 + 1}, {Path: "c", Reason: "symlink"}},
		{{Path: "b", Reason: "not UTF-8", Size: 256, ModTime: 1e18 + 1, ChangeTime: 1e18 + 2}},
		nil,
	} {
		if err := s.SetSkipped(background, want); err != nil {
			t.Fatal(err)
		}
		got, err := s.Skipped()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("skipped (-want +got):\n%s", diff)
		}
		if c, err := s.Counts(); err != nil || c.Skipped != len(want) {
			t.Errorf("Counts.Skipped: %d, %v, want %d", c.Skipped, err, len(want))
		}
	}
}

func TestOpenVersions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "docs.db")
	open := func(readOnly bool) *kv.DB {
		t.Helper()
		db, err := kv.Open(path, &kv.Options{ReadOnly: readOnly})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	}
	db := open(false)
	// reading calls fn with the file open for reading alone.
	reading := func(fn func(reader *kv.DB)) {
		t.Helper()
		db.Close()
		reader := open(true)
		fn(reader)
		reader.Close()
		db = open(false)
	}
	reading(func(reader *kv.DB) {
		if _, err := Open(reader, nil); !errors.Is(err, ErrNoIndex) {
			t.Errorf("read-only Open of a fresh database: %v, want %v", err, ErrNoIndex)
		}
	})
	mini := &Options{Model: models.Description{Name: "mini", ID: "mini@1", Dimension: 3}}
	for _, o := range []*Options{nil, mini, mini, nil} { // a store without a model takes the first it is given
		if _, err := Open(db, o); err != nil {
			t.Fatal(err)
		}
	}
	at := time.Unix(1, 2)
	writer, err := Open(db, nil)
	if err != nil {
		t.Fatal(err)
	}
	if g, err := writer.Advance(background, []string{"/one", "/two"}, at); g != 1 || err != nil {
		t.Errorf("Advance: %d, %v, want 1", g, err)
	}
	meta := func() (m Meta, err error) {
		reading(func(reader *kv.DB) {
			s, openErr := Open(reader, mini)
			if openErr != nil {
				t.Fatal(openErr)
			}
			m, err = s.Meta()
		})
		return m, err
	}
	m, err := meta()
	if err != nil {
		t.Fatal(err)
	}
	want := Meta{Format: FormatVersion, Model: mini.Model, Generation: 1, Roots: []string{"/one", "/two"}, BuiltAt: at}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("Meta (-want +got):\n%s", diff)
	}
	var model *ModelError
	for _, chunks := range []string{"", "chunks-1", "chunks-1", ""} { // as with the model
		if _, err := Open(db, &Options{Model: mini.Model, Chunks: chunks}); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := meta(); err != nil || m.Chunks != "chunks-1" || m.Model != mini.Model {
		t.Errorf("Meta: %+v, %v, want chunks-1 and the model", m, err)
	}
	var cut *ChunksError
	otherChunks := func(d *kv.DB) {
		if _, err := Open(d, &Options{Model: mini.Model, Chunks: "chunks-2"}); !errors.As(err, &cut) || *cut != (ChunksError{Have: "chunks-1", Want: "chunks-2"}) {
			t.Errorf("Open with other chunks: %v, want *ChunksError naming both", err)
		}
	}
	otherChunks(db)
	reading(otherChunks)
	if _, err := Open(db, &Options{Model: models.Description{ID: "bge@2"}}); !errors.As(err, &model) || *model != (ModelError{Have: "mini@1", Want: "bge@2"}) {
		t.Errorf("Open with another model: %v, want *ModelError naming both", err)
	}
	for have, change := range map[uint32]func(b *kv.Bucket) error{
		9: func(b *kv.Bucket) error { return b.Put(metaKey, []byte(`{"Format":9}`)) },
		6: func(b *kv.Bucket) error {
			return errors.Join(b.Delete(metaKey), b.Put([]byte("format"), []byte{6, 0, 0, 0}))
		},
	} {
		if err := db.Update(func(tx *kv.Tx) error {
			b, err := tx.Bucket("meta")
			if err != nil {
				return err
			}
			return change(b)
		}); err != nil {
			t.Fatal(err)
		}
		var format *FormatError
		if _, err := Open(db, mini); !errors.As(err, &format) || *format != (FormatError{Have: have, Want: FormatVersion}) {
			t.Errorf("Open of format %d: %v, want *FormatError naming both", have, err)
		}
	}
}

func TestPutRefuses(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "docs.db"), nil)
	change := map[string]func(*Put){
		"no path":          func(p *Put) { p.Document.Path = "" },
		"absolute path":    func(p *Put) { p.Document.Path = "/etc/passwd" },
		"path upwards":     func(p *Put) { p.Document.Path = "a/../b" },
		"hash":             func(p *Put) { p.Document.Hash = "abc" },
		"upper hash":       func(p *Put) { p.Document.Hash = strings.ToUpper(p.Document.Hash) },
		"section hash":     func(p *Put) { p.Document.Sections[1].Hash = strings.Repeat("g", 64) },
		"size":             func(p *Put) { p.Document.Size = -1 },
		"level":            func(p *Put) { p.Document.Sections[0].Level = 7 },
		"parent":           func(p *Put) { p.Document.Sections[1].Parent = 1 },
		"start":            func(p *Put) { p.Document.Sections[0].Start = -1 },
		"end":              func(p *Put) { p.Document.Sections[1].End = 201 },
		"own end":          func(p *Put) { p.Document.Sections[0].OwnEnd = 250 },
		"line":             func(p *Put) { p.Document.Sections[0].EndLine = -1 },
		"anchor":           func(p *Put) { p.Document.Sections[0].Anchor = "a#b" },
		"repeated anchor":  func(p *Put) { p.Document.Sections[0].Anchor = "b" },
		"chunk beyond":     func(p *Put) { p.Document.Sections[1].Chunks[0].End = 201 },
		"chunk turned":     func(p *Put) { p.Document.Sections[1].Chunks[0].End = 1 },
		"short fence":      func(p *Put) { p.Document.Sections[1].Chunks[0].Fence = "``" },
		"fence of letters": func(p *Put) { p.Document.Sections[1].Chunks[0].Fence = "abc" },
		"text not as long": func(p *Put) { p.Text = p.Text[:150] },
	}
	for name, change := range change {
		p := page("p", "a:.", "b:.")
		change(&p)
		if err := s.Put(background, []Put{page("good", "a:."), p}); err == nil {
			t.Errorf("%s: Put accepted it", name)
		}
	}
	if c, err := s.Counts(); err != nil || c != (Counts{}) {
		t.Errorf("after refused puts: %+v, %v, want nothing", c, err)
	}
	cancelled, cancel := context.WithCancel(background)
	cancel()
	if err := s.Put(cancelled, []Put{page("good", "a:.")}); !errors.Is(err, context.Canceled) {
		t.Errorf("Put with a cancelled context: %v", err)
	}
	if c, err := s.Counts(); err != nil || c != (Counts{}) {
		t.Errorf("after a cancelled put: %+v, %v, want nothing", c, err)
	}
}

func TestViewIsOneMoment(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "docs.db"), nil)
	mustPut(t, s, page("p", "a:."), page("q", "a:."))
	err := s.View(func(r *Reader) error {
		done := make(chan error)
		go func() { done <- s.Delete(background, []string{"p"}) }()
		if err := <-done; err != nil {
			return err
		}
		d, err := r.Document("p")
		if err != nil || d == nil || r.Text("p") == nil {
			t.Errorf("a document deleted during a View: %v, %v, want still there", d, err)
		}
		var paths []string
		err = r.Files("", func(f File) bool {
			paths = append(paths, f.Path)
			return true
		})
		if diff := cmp.Diff([]string{"p", "q"}, paths); diff != "" {
			t.Errorf("Files (-want +got):\n%s", diff)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if d, err := s.Document("p"); d != nil || err != nil {
		t.Errorf("after the View: %v, %v, want gone", d, err)
	}
}

// TestDamagedValue cuts and alters stored values: every reading must end in an
// error or in a document, never in a panic or a huge allocation.
func TestDamagedValue(t *testing.T) {
	p := page("p", "a:..", "b:.", "c:...")
	value := encodeDocument(&p.Document)
	f := &File{Path: "p"}
	for n := range value {
		if _, err := decodeDocument(f, value[:n]); err == nil {
			t.Errorf("a value cut to %d of %d bytes was accepted", n, len(value))
		}
		for _, b := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			bad := append([]byte(nil), value...)
			bad[n] = b
			d, err := decodeDocument(f, bad)
			var corrupt *CorruptError
			if (d == nil) == (err == nil) || err != nil && !errors.As(err, &corrupt) {
				t.Errorf("byte %d = %d: %v, %v, want a document or *CorruptError", n, b, d, err)
			}
		}
	}
}

// TestDamagedText flips a bit of a stored text, and of the key of a file: reading the text
// and listing the files fail instead of returning something else.
func TestDamagedText(t *testing.T) {
	for name, read := range map[string]func(s *Store) error{
		"The login flow": func(s *Store) error { _, _, err := s.Text("auth.md"); return err },
		"auth.md":        func(s *Store) error { _, err := s.Files(); return err },
	} {
		path := filepath.Join(t.TempDir(), "documents.db")
		db, err := kv.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Open(db, nil)
		if err != nil {
			t.Fatal(err)
		}
		text := "# Auth\n\nThe login flow asks for a token.\n"
		if err := s.Put(t.Context(), []Put{{Document: store.Document{Path: "auth.md", Hash: strings.Repeat("0", 64), Size: int64(len(text))}, Text: []byte(text)}}); err != nil {
			t.Fatal(err)
		}
		db.Close()
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		flipped := []byte(name)
		flipped[2] ^= 1
		if err := os.WriteFile(path, bytes.ReplaceAll(content, []byte(name), flipped), 0o600); err != nil {
			t.Fatal(err)
		}
		if db, err = kv.Open(path, nil); err != nil {
			t.Fatal(err)
		}
		if s, err = Open(db, nil); err == nil {
			err = read(s)
		}
		if _, corrupt := errors.AsType[*kv.CorruptError](err); !corrupt {
			t.Errorf("%q: %v, want a *kv.CorruptError", name, err)
		}
		db.Close()
	}
}

// TestTasksAreCounted: a document with tasks counts until it loses them or is deleted.
func TestTasksAreCounted(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "docs.db"), nil)
	for _, c := range []struct {
		put, remove string
		sections    []string
		want        int
	}{
		{put: "plan.md", sections: []string{"intro:1", "tasks:1"}, want: 1},
		{put: "tasks.go", sections: []string{"tasks:1"}, want: 1},
		{put: ".cairn/cards/a.md", sections: []string{"tasks:1"}, want: 1},
		{put: "other.md", sections: []string{"tasks:1"}, want: 2},
		{put: "plan.md", sections: []string{"intro:1"}, want: 1},
		{remove: "other.md", want: 0},
	} {
		var err error
		if c.put != "" {
			err = s.Put(background, []Put{page(c.put, c.sections...)})
		} else {
			err = s.Delete(background, []string{c.remove})
		}
		if got, countErr := s.Counts(); err != nil || countErr != nil || got.Tasks != c.want {
			t.Errorf("after %+v: %d documents with tasks, %v, %v; want %d", c, got.Tasks, err, countErr, c.want)
		}
	}
}
