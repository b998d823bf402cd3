package retriever

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/base/testutil"
	"cairn/internal/store/docs"
	"cairn/internal/text/markdown"
	"cairn/models/bpe"
)

const guide = "---\ntitle: Guide\n---\n\n# Intro\n\nhello\n\n## Set *up*\n\ninstall\n\n### Details\n\nmore\n\n```sh\n# not a heading\n```\n\n## Usage\n\nrun\n\n# Last\n\nend\n\n"

func read(t *testing.T, f *folder, q ReadRequest) *Reading {
	t.Helper()
	r, err := f.Read(context.Background(), q)
	if err != nil {
		t.Fatalf("Read(%+v): %v", q, err)
	}
	return r
}

func TestReadPlaces(t *testing.T) {
	f := open(t, map[string]string{"docs/g.md": guide, "docs/C# notes.md": "# Sharp\n", "docs/crlf.md": "# A\r\n\r\ntext\r\n\r\n# B\r\n", "docs/late.md": "\n\n# Late\n\nend\n"}, nil)
	for _, c := range []struct {
		path, anchor string
		content      string
		start, end   int // 0: no line range
		parent, prev string
		next         string
	}{
		{"docs/g.md", "", strings.TrimSpace(guide), 0, 0, "", "", ""},
		{"./docs//g.md", "", strings.TrimSpace(guide), 0, 0, "", "", ""},
		{"docs/g.md#intro", "", guide[strings.Index(guide, "# Intro"):strings.Index(guide, "\n\n# Last")], 5, 23, "", "", "last"},
		{"docs/g.md", "Set up", guide[strings.Index(guide, "## Set"):strings.Index(guide, "\n\n## Usage")], 9, 19, "intro", "", "usage"},
		{"docs/g.md", "SET UP", guide[strings.Index(guide, "## Set"):strings.Index(guide, "\n\n## Usage")], 9, 19, "intro", "", "usage"},
		{"docs/g.md#usage", "", "## Usage\n\nrun", 21, 23, "intro", "set-up", "last"},
		{"docs/g.md#last", "", "# Last\n\nend", 25, 27, "", "intro", ""},
		{"docs/g.md:5-7", "", "# Intro\n\nhello", 5, 7, "", "", "last"},
		{"docs/g.md:7", "", "hello", 7, 7, "", "", "last"},
		{"docs/g.md:27-9999", "", "end", 27, 27, "", "intro", ""},
		{"docs/C# notes.md", "", "# Sharp", 0, 0, "", "", ""},
		{"docs/C# notes.md:1", "", "# Sharp", 1, 1, "", "", ""},
		{"docs/late.md", "", "# Late\n\nend", 3, 5, "", "", ""},
		{"docs/crlf.md#a", "", "# A\r\n\r\ntext", 1, 3, "", "", "b"},
	} {
		r := read(t, f, ReadRequest{Path: c.path, Anchor: c.anchor})
		if r.Content != c.content {
			t.Errorf("%s %s is %q, want %q", c.path, c.anchor, r.Content, c.content)
		}
		if c.start == 0 != (r.LineRange == nil) || r.LineRange != nil && *r.LineRange != (Lines{c.start, c.end}) {
			t.Errorf("%s %s: lines %v, want %d-%d", c.path, c.anchor, r.LineRange, c.start, c.end)
		}
		if r.Tokens != len(r.Content)/4 {
			t.Errorf("%s: %d tokens for %d bytes", c.path, r.Tokens, len(r.Content))
		}
		for _, link := range []struct {
			name, want string
			got        *Link
		}{{"parent", c.parent, r.Links.Parent}, {"previous", c.prev, r.Links.Previous}, {"next", c.next, r.Links.Next}} {
			got := ""
			if link.got != nil {
				got = link.got.Path[strings.LastIndexByte(link.got.Path, '#')+1:]
			}
			if got != link.want {
				t.Errorf("%s %s: %s is %q, want %q", c.path, c.anchor, link.name, got, link.want)
			}
		}
	}
}

func TestReadRefuses(t *testing.T) {
	f := open(t, map[string]string{"docs/auth.md": "# Login flow\n\n# Token check\n", "docs/api.md": "x\n"}, nil)
	outside := filepath.Join(t.TempDir(), "secret.md")
	must(t, os.WriteFile(outside, []byte("# secret\n"), 0o644))
	must(t, os.Symlink(outside, filepath.Join(f.dir, "link.md")))
	must(t, os.WriteFile(filepath.Join(f.dir, "key.pem"), []byte("k"), 0o644))
	must(t, os.WriteFile(filepath.Join(f.dir, "koi8.md"), []byte("\xf0\xd2\xc9"), 0o644))
	must(t, os.WriteFile(filepath.Join(f.dir, ".hidden.md"), []byte("# h\n"), 0o644))
	must(t, os.Mkdir(filepath.Join(f.dir, "folder.md"), 0o755))
	for _, c := range []struct{ path, anchor, want string }{
		{"", "", "invalid"}, {".", "", "invalid"}, {"//docs/auth.md", "", "invalid"}, {"/../x.md", "", "invalid"}, {"../x.md", "", "invalid"},
		{"docs/../../x.md", "", "invalid"}, {`docs\auth.md`, "", "invalid"}, {"docs/auth.md\x00", "", "invalid"},
		{"link.md", "", "invalid"}, {"key.pem", "", "invalid"}, {"koi8.md", "", "invalid"}, {"folder.md", "", "invalid"},
		{"docs/auth.md:9", "", "invalid"}, {"docs/auth.md:2-1", "", "invalid"}, {"docs/auth.md:0-1", "", "invalid"},
		{"docs/auth.md", strings.Repeat("x", 101), "invalid"}, {"docs/auth.md:1-2", "login-flow", "invalid"},
		{" docs/auth.md", "", "invalid"}, {".hidden.md", "", "invalid"},
		{outside, "", ""}, {"/etc/passwd", "", ""},
		{"docs/aut.md", "", "docs/auth.md"}, {"docs/auth.md#login-flwo", "", "login-flow"}, {"docs/auth.md", "Tokn check", "token-check"},
	} {
		_, err := f.Read(context.Background(), ReadRequest{Path: c.path, Anchor: c.anchor})
		var bad *InvalidError
		var missing *NotFoundError
		switch {
		case c.want == "invalid":
			if !errors.As(err, &bad) {
				t.Errorf("Read(%q, %q) = %v, want an InvalidError", c.path, c.anchor, err)
			}
		case c.want == "" && errors.As(err, &missing):
		case !errors.As(err, &missing) || len(missing.Nearest) == 0 || missing.Nearest[0] != c.want:
			t.Errorf("Read(%q, %q) = %v, want a NotFoundError that offers %s", c.path, c.anchor, err, c.want)
		case missing.Anchor != "" && !slices.Equal(missing.Anchors, []string{"login-flow", "token-check"}):
			t.Errorf("available anchors are %v", missing.Anchors)
		}
	}
}

// A file that is not indexed is refused with the reason of the last run, also source code.
func TestReadSaysWhyAFileIsNotIndexed(t *testing.T) {
	f := open(t, map[string]string{"a.md": "# A\n"}, nil)
	for _, name := range []string{"gen/a.pb.go", "third_party/a.c", "src/a.go", "a.png"} {
		f.write(name, "x\n")
	}
	must(t, f.docs.SetSkipped(context.Background(), []docs.Skipped{{Path: "gen/a.pb.go", Reason: "generated code"}, {Path: "third_party/a.c", Reason: "vendored code"}}))
	for name, reason := range map[string]string{
		"gen/a.pb.go": "generated code", "third_party/a.c": "vendored code", "src/a.go": "the setting parser.code", "a.png": "only ",
	} {
		if _, err := f.Read(context.Background(), ReadRequest{Path: name}); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("Read(%q) = %v, want the reason %q", name, err, reason)
		}
	}
}

// TestReadFolds: a path may begin with a slash, be in any case, or be the short one of a card.
func TestReadFolds(t *testing.T) {
	f := open(t, map[string]string{"docs/api.md": "# API\n\n## Keys\n\nx\n", ".cairn/cards/abc123.md": "---\ntitle: C\n---\n# C\n"}, nil)
	for spec, want := range map[string]string{
		"/docs/api.md": "docs/api.md", "/docs/api.md#keys": "docs/api.md", "/docs/api.md:1-2": "docs/api.md", "Docs/API.md": "docs/api.md",
		"cards/abc123.md": ".cairn/cards/abc123.md", "/cards/ABC123.md": ".cairn/cards/abc123.md", "/.cairn/cards/abc123.md": ".cairn/cards/abc123.md",
	} {
		if got := read(t, f, ReadRequest{Path: spec}); got.Path != want {
			t.Errorf("Read(%q) is of %s, want %s", spec, got.Path, want)
		}
	}
	// A plan and a card that are too young for the index.
	must(t, os.MkdirAll(filepath.Join(f.dir, ".cairn/plans"), 0o755))
	must(t, os.WriteFile(filepath.Join(f.dir, ".cairn/plans/late.md"), []byte("# Late\n"), 0o644))
	if got := read(t, f, ReadRequest{Path: ".cairn/plans/late.md"}); got.Title != "Late" {
		t.Errorf("a new plan: %s", got.Title)
	}
	must(t, os.WriteFile(filepath.Join(f.dir, ".cairn/cards/def456.md"), []byte("---\ntitle: D\n---\n"), 0o644))
	if got := read(t, f, ReadRequest{Path: "cards/def456.md"}); got.Path != ".cairn/cards/def456.md" {
		t.Errorf("a new card: %s", got.Path)
	}
}

// Characters that show nothing, or change the direction of text, are flagged in what
// agents read and find, as in the descriptions of tools.
func TestInvisibleCharactersAreFlagged(t *testing.T) {
	f := open(t, map[string]string{"a.md": "# Zebra\n\nplain\U000e0041\U000e0042 text\n", "b.md": "# Plain\n\ntext\n"}, nil)
	if got := read(t, f, ReadRequest{Path: "a.md"}).Flags; len(got) != 1 || got[0].Kind != "hidden" {
		t.Errorf("reading: flags %v, want hidden", got)
	}
	if got := read(t, f, ReadRequest{Path: "b.md"}).Flags; len(got) > 0 {
		t.Errorf("reading plain text: flags %v, want none", got)
	}
	for _, budget := range []int{0, 1000} {
		a, err := f.Search(t.Context(), Query{Text: "zebra", Mode: Keyword, MaxTokens: budget})
		if err != nil || len(a.Results) == 0 || len(a.Results[0].Flags) != 1 {
			t.Errorf("searching with budget %d: %+v, %v, want a flag", budget, a, err)
		}
	}
}

func TestReadCache(t *testing.T) {
	f := open(t, map[string]string{"a.md": "# A\n\nfirst\n", "empty.md": ""}, nil)
	first := read(t, f, ReadRequest{Path: "a.md"})
	second := read(t, f, ReadRequest{Path: "a.md"})
	if first.Cached || !second.Cached || first.Hash != second.Hash {
		t.Errorf("cached is %v, then %v", first.Cached, second.Cached)
	}
	f.write("a.md", "# A\n\nother\n") // the same size, maybe within the clock's tick
	third := read(t, f, ReadRequest{Path: "a.md"})
	if third.Cached || third.Hash == first.Hash || !strings.Contains(third.Content, "other") {
		t.Errorf("after an edit: cached %v, content %q", third.Cached, third.Content)
	}
	old := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(filepath.Join(f.dir, "a.md"), old, old))
	if r := read(t, f, ReadRequest{Path: "a.md"}); r.Cached && r.Hash != third.Hash {
		t.Errorf("after a touch: %+v", r)
	}
	if r := read(t, f, ReadRequest{Path: "a.md"}); !r.Cached {
		t.Error("an old file is not cached on its second read")
	}
	if r := read(t, f, ReadRequest{Path: "empty.md"}); r.Tokens != 0 || r.Content != "" || r.Hash != "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" {
		t.Errorf("an empty file gives %+v", r)
	}
	var stale *StaleError
	if _, err := f.Read(context.Background(), ReadRequest{Path: "a.md", ExpectedHash: first.Hash}); !errors.As(err, &stale) || stale.Actual != third.Hash {
		t.Errorf("an old expected hash gives %v, want a StaleError", err)
	}
	read(t, f, ReadRequest{Path: "a.md#a", ExpectedHash: third.Hash})
}

// TestReadReturnsIndexedBytes reads every section of generated documents back.
func TestReadReturnsIndexedBytes(t *testing.T) {
	files := map[string]string{}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 40 {
		files[fmt.Sprintf("d%d.md", i)] = testutil.Markdown(r, 3000)
		if i%4 == 0 {
			files[fmt.Sprintf("d%d.md", i)] = "\ufeff" + strings.ReplaceAll(files[fmt.Sprintf("d%d.md", i)], "\n", "\r\n")
		}
	}
	f := open(t, files, nil)
	n := 0
	for path, text := range files {
		doc, err := f.docs.Document(path)
		must(t, err)
		for _, s := range doc.Sections {
			if s.Level == 0 {
				continue
			}
			got := read(t, f, ReadRequest{Path: path + "#" + s.Anchor})
			want := string(markdown.TrimBlankLines([]byte(text)[s.Start:s.End]))
			sum := sha256.Sum256([]byte(got.Content))
			if got.Content != want || got.SectionHash != s.Hash || hex.EncodeToString(sum[:]) != s.Hash || *got.LineRange != (Lines{s.StartLine, s.EndLine}) {
				t.Fatalf("%s#%s: lines %v and %d bytes, want %d-%d and %d bytes", path, s.Anchor, got.LineRange, len(got.Content), s.StartLine, s.EndLine, len(want))
			}
			n++
		}
	}
	if n < 100 {
		t.Fatalf("only %d sections", n)
	}
}

func TestReadLimit(t *testing.T) {
	f := open(t, map[string]string{"big.md": "# A\n\n" + strings.Repeat("word ", 1000)}, &Options{TokenLimit: 1000})
	var large *TokenLimitError
	if _, err := f.Read(context.Background(), ReadRequest{Path: "big.md"}); !errors.As(err, &large) || large.Limit != 1000 || large.Tokens != 1251 {
		t.Errorf("a large document gives %v, want a TokenLimitError", err)
	}
	read(t, f, ReadRequest{Path: "big.md", MaxTokens: 500})
}

// TestReadParts reads documents in parts of every size and puts them together. Each part but
// the last takes half of its budget, also the title before a long section.
func TestReadParts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	files := map[string]string{"long.md": strings.Repeat("endless", 3000) + "\n", "cjk.md": strings.Repeat("文書検索", 2000), "title.md": "# Title\n\n## One\n\n" + strings.Repeat("one line\n\n", 3000) + "## Two\n\nend\n"}
	for i := range testutil.Few(6) {
		files[fmt.Sprintf("d%d.md", i)] = testutil.Markdown(r, 12000)
	}
	f := open(t, files, nil)
	count := (&bpe.Counter{}).CountTokens
	for path, text := range files {
		for _, budget := range []int{300, 1000, 5000, 25000} {
			var all strings.Builder
			parts := 0
			for next := ""; ; parts++ {
				part := read(t, f, ReadRequest{Path: path, MaxTokens: budget, Next: next})
				if n := count(renderJSON(part)); n > budget || part.Next != "" && 2*n < budget {
					t.Errorf("%s: a part has %d tokens, budget %d", path, n, budget)
				}
				if part.Content == "" {
					t.Fatalf("%s with budget %d: part %d is empty", path, budget, parts)
				}
				all.WriteString(part.Content)
				if part.Next == "" {
					break
				}
				next = part.Next
			}
			if got, want := squeeze(all.String()), squeeze(text); got != want {
				t.Errorf("%s with budget %d: %d parts have %d bytes, want %d", path, budget, parts, len(got), len(want))
			}
		}
	}
	part := read(t, f, ReadRequest{Path: "long.md", MaxTokens: 300})
	var bad *InvalidError
	if _, err := f.Read(context.Background(), ReadRequest{Path: "long.md", MaxTokens: 300, Next: "x" + part.Next}); !errors.As(err, &bad) {
		t.Errorf("a damaged token gives %v", err)
	}
	f.write("long.md", "other\n")
	var stale *StaleError
	if _, err := f.Read(context.Background(), ReadRequest{Path: "long.md", MaxTokens: 300, Next: part.Next}); !errors.As(err, &stale) {
		t.Errorf("a token of the version before gives %v", err)
	}
}

// squeeze removes what parts may lose: white space at their ends.
func squeeze(s string) string { return strings.Join(strings.Fields(s), "") }

// TestReadGlob: a glob stands for the documents that it matches, at most MaxPaths; the
// name of a document that looks like one stays a name.
func TestReadGlob(t *testing.T) {
	ctx := context.Background()
	files := map[string]string{"[slug].md": "# Slug\n\ntext\n", "s.md": "# S\n\ntext\n", "docs/a.md": "# A\n\n## Usage\n\nof a\n", "docs/b.md": "# B\n\nof b\n", "docs/deep/c.md": "# C\n\n## Usage\n\nof c\n"}
	for i := range MaxPaths + 3 {
		files[fmt.Sprintf("many/%02d.md", i)] = "# Many\n\ntext\n"
	}
	f := open(t, files, nil)
	for _, c := range []struct {
		places []string
		want   string
	}{
		{[]string{"docs/*.md"}, "docs/a.md docs/b.md"},
		{[]string{"/docs/**/*.md"}, "docs/a.md docs/b.md docs/deep/c.md"},
		{[]string{"docs/{a,deep/c}.md#usage", "s.md"}, "docs/a.md#usage docs/deep/c.md#usage s.md"},
		{[]string{"**/*.md#usage"}, "docs/a.md#usage docs/deep/c.md#usage"},
		{[]string{"docs/*.md#none"}, "!docs/a.md#none !docs/b.md#none"},
		{[]string{"[slug].md"}, "[slug].md"},
		{[]string{"many/*"}, "many/00.md many/01.md many/02.md many/03.md many/04.md many/05.md many/06.md many/07.md many/08.md many/09.md +3"},
		{[]string{"none/*.md"}, "!none/*.md"},
		{[]string{"../*.md"}, "!../*.md"},
	} {
		all, err := f.ReadAll(ctx, ReadRequest{Paths: c.places})
		if err != nil {
			t.Errorf("%q: %v", c.places, err)
			continue
		}
		var got []string
		for _, d := range all.Documents {
			if d.Anchor != nil {
				d.Path += "#" + *d.Anchor
			}
			got = append(got, d.Path)
		}
		for _, failed := range all.Failed {
			got = append(got, "!"+failed.Path)
		}
		if all.More > 0 {
			got = append(got, fmt.Sprintf("+%d", all.More))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q: %q, want %q", c.places, strings.Join(got, " "), c.want)
		}
	}
	for _, bad := range []string{"docs/[a.md", strings.Repeat("**/", 9) + "*.md", strings.Repeat("*", 600)} {
		all, err := f.ReadAll(ctx, ReadRequest{Paths: []string{bad}})
		if _, ok := errors.AsType[*InvalidError](err); !ok {
			t.Errorf("%.20q: %+v, %v, want an InvalidError", bad, all, err)
		}
	}
}

func TestReadAll(t *testing.T) {
	f := open(t, map[string]string{"a.md": "# A\n\n" + strings.Repeat("alpha ", 300), "b.md": "# B\n\n" + strings.Repeat("beta ", 300)}, nil)
	ctx := context.Background()
	all, err := f.ReadAll(ctx, ReadRequest{Paths: []string{"a.md", "nope.md", "b.md#b"}})
	must(t, err)
	if len(all.Documents) != 2 || all.Documents[1].Path != "b.md" || len(all.Failed) != 1 || all.Failed[0].Path != "nope.md" {
		t.Errorf("got %d documents, failed %v", len(all.Documents), all.Failed)
	}
	for budget := 200; budget < 2000; budget += 150 {
		all, err := f.ReadAll(ctx, ReadRequest{Paths: []string{"a.md", "b.md"}, MaxTokens: budget})
		must(t, err)
		if n := (&bpe.Counter{}).CountTokens(renderJSON(all)); n > budget {
			t.Errorf("%d tokens, budget %d", n, budget)
		}
		if len(all.Documents)+len(all.Omitted) != 2 {
			t.Errorf("budget %d: %d documents and %d omitted", budget, len(all.Documents), len(all.Omitted))
		}
	}
	for _, q := range []ReadRequest{{}, {Paths: slices.Repeat([]string{"a.md"}, 11)}, {Paths: []string{"a.md"}, Anchor: "x"}} {
		var bad *InvalidError
		if _, err := f.ReadAll(ctx, q); !errors.As(err, &bad) {
			t.Errorf("ReadAll(%+v) = %v, want an InvalidError", q, err)
		}
	}
}

// The error for an indexed file that was removed does not suggest the file itself.
func TestReadOfAFileThatLeft(t *testing.T) {
	f := open(t, map[string]string{"docs/auth.md": "# Auth\n", "docs/auths.md": "# Auths\n"}, nil)
	must(t, os.Remove(filepath.Join(f.dir, "docs", "auth.md")))
	_, err := f.Read(context.Background(), ReadRequest{Path: "docs/auth.md"})
	var missing *NotFoundError
	if !errors.As(err, &missing) || !slices.Equal(missing.Nearest, []string{"docs/auths.md"}) {
		t.Errorf("reading a file that left: %v, want a NotFoundError that offers docs/auths.md alone", err)
	}
}
