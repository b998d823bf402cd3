package web

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cairn/graphrank"
	"cairn/internal/base/job"
	"cairn/internal/base/observe"
	"cairn/internal/base/owner"
	"cairn/internal/base/testutil"
	"cairn/internal/face/view"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/usage"
	"cairn/models"
	"cairn/models/minilm"
)

// hostile is a document with content that a browser must not run.
const hostile = `---
title: "<script>alert(1)</script>"
---
# Rotate <script>alert(2)</script> a token

<script>alert(3)</script>
<img src="http://elsewhere.example/x.png" onerror="alert(4)">
<a href="javascript:alert(5)" onclick="alert(6)">rotate</a> [rotate](javascript:alert(7)) ![picture](http://elsewhere.example/y.png)
<iframe src="http://elsewhere.example/"></iframe><style>body{display:none}</style>

## Rotate a token

Rotate the <b>token</b> of ` + "`a<b`" + `. See [another](other.md#part-two), [outside](../../etc/passwd) and [the world](https://example.com).

## Rotate a token

Again.
`

// kinds has all kinds of Markdown, and headings with the names of parts of the page.
const kinds = `---
title: Every kind of thing
tags: [kinds]
---
# Main

Plain, *slanted*, **bold**, ~~struck~~ and ` + "`code`" + `, a [link](other.md), a https://example.com address.

- a list
  1. in a list
- [ ] to do
- [x] done

> A quotation with a [link](#said).

| one | two | three | four | five | six | seven | eight | nine | ten | eleven | twelve |
|:----|----:|-------|------|------|-----|-------|-------|------|-----|--------|--------|
| a table | that is | wider than | a telephone | can be | scrolled | by | the | keyboard | as | any | other |

` + "```go\nfunc main() { println(\"a line that is longer than a telephone is wide, and cannot be broken\") }\n```" + `

---

# Said {#what-was-said}

> ## Quoted

### Deep

### Preview

### Uses

###### Deepest

<!-- a comment -->

<details><summary>More</summary>

Folded with <kbd>Enter</kbd>. The area is $\pi r^2$, and

$$\sum_{i=1}^n i = \frac{n(n+1)}{2}$$

</details>
`

// guide has what people write in notes.
const guide = `---
title: Start here
tags: [guide, "begin here"]
---
## Start here

![The wall](wall.png "Built last year") ![Elsewhere](https://elsewhere.example/y.png)

> [!WARNING] Mind the step
> It is *high*.

A paragraph that is long enough to fill more than one line of the page shows how many letters stand on each of them, which should be eighty at most, because longer lines are hard to read: the eye does not find the beginning of the next.

See [[other#Part two|the other part]], [[er]] and [[nowhere]].[^why]

` + "```go\n// wall has a <height>.\nfunc wall() string { return \"high\" + 12 }\n```" + `

[^why]: Because of the view.
`

// source is a file with symbols, and a line that is longer than the screen.
const source = "package src\n\n// Height returns how high the wall is.\nfunc Height() string {\n\treturn \"high <b>\"\n}\n\n// wide is wide.\nconst wide = \"a line that is longer than a telephone is wide, and longer than a desk is wide as well, so that it has to continue on the next line, or after a while\"\n"

// wall is a picture of one pixel.
var wall = func() []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewRGBA(image.Rect(0, 0, 1, 1))); err != nil {
		panic(err) // unreachable: a buffer takes everything
	}
	return b.Bytes()
}()

const catalogue = `[
{"name": "read_file", "server": "files", "description": "Read the text of a file.", "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}, "outputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}},
{"name": "translate", "server": "words", "description": "Translate a text into another language.", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}, "outputSchema": {"type": "object", "properties": {"translation": {"type": "string"}}}},
{"name": "send_mail", "server": "mail", "description": "Send a mail with a translation to somebody.", "inputSchema": {"type": "object", "properties": {"translation": {"type": "string"}}, "required": ["translation"]}},
{"name": "<b>alert(1)</b>", "server": "bad", "description": "<img src=x onerror=alert(2)>"}
]`

// taught fills a toolbox with tools, one of them hostile, and with co-usage.
func taught(t *testing.T, box *owner.Folder) {
	t.Helper()
	batch, err := catalog.Read(t.Context(), strings.NewReader(catalogue), "")
	if err != nil || len(batch.Tools) != 4 {
		t.Fatalf("%+v, %v, want 4 tools", batch, err)
	}
	if _, err := toolbox.ImportOp.Call(t.Context(), box, toolbox.ImportRequest{Source: "test", Tools: batch.Tools}, nil); err != nil {
		t.Fatal(err)
	}
	trace := usage.Trace{Intent: "translate a file and mail it", Calls: []usage.Call{{Tool: "files:read_file"}, {Tool: "words:translate"}, {Tool: "mail:send_mail"}, {Tool: "bad:<b>alert(1)</b>"}}, Edges: [][2]int{{0, 1}, {1, 2}, {2, 3}}}
	if _, err := toolbox.LearnOp.Call(t.Context(), box, []usage.Trace{trace, trace, trace}, nil); err != nil {
		t.Fatal(err)
	}
}

// folder returns an indexed workspace with documents and cards, and its pages.
func folder(t *testing.T, fill ...func(*testing.T, *owner.Folder)) (*Handler, string) {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"hostile.md":             hostile,
		"other.md":               "# Other\n\nText of the other one.\n\n## Part two\n\nThe second part tells how to revoke a key.\n",
		"kinds.md":               kinds + "\n```mermaid\nflowchart TD\n  a[Ask] -->|again| a --> b{Found?}\n```\n",
		"untitled.md":            "Text without any heading.\n",
		"notes.txt":              "Text that is no Markdown.\n",
		"guide/start.md":         guide,
		"guide/deep/er.md":       "# Part of the guide\n\n## Below\n\nDeeper.\n",
		"src/wall.go":            source,
		"src/use.go":             "\n\npackage src\n\nfunc use() string { return Height() }\n",
		"guide/wall.png":         string(wall),
		"guide/.hidden.png":      string(wall),
		"guide/fake.png":         "<html><script>alert(1)</script>",
		".cairn/cards/aaa111.md": "---\nid: aaa111\ntitle: Build the <wall>\nstatus: todo\npriority: high\n---\n",
		".cairn/cards/bbb222.md": "---\nid: bbb222\ntitle: Paint it\nstatus: todo\ndepends_on: [aaa111]\n---\n",
		".cairn/cards/ccc333.md": "---\nid: ccc333\ntitle: Draw a plan\nstatus: done\n---\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	sel, err := config.Select(root)
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	w, err := workspace.Open(t.Context(), sel, cfg, workspace.Owning, workspace.Options{
		Command: "test", Settings: index.Settings{Model: func() (models.Embedder, error) { return minilm.Open(nil) }, Description: minilm.Description()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	if _, err := index.IndexOp.Call(t.Context(), w.Folder, index.IndexRequest{}, func(job.Progress) {}); err != nil {
		t.Fatal(err)
	}
	tasks, err := w.Tasks(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tasks.Close() })
	box := owner.Local(func(s *owner.Server) owner.Service {
		box := toolbox.New(toolbox.Options{Place: w.Place(), HalfLife: cfg.Usage.HalfLife(), Reader: testutil.Tagger})
		box.Serve(s)
		return box
	})
	t.Cleanup(func() { box.Close() })
	for _, f := range fill {
		f(t, box)
	}
	return New(Site{
		Name: "notes", Root: root, Folder: w.Folder, Tasks: tasks, Toolbox: box, Logger: slog.New(slog.DiscardHandler),
		Prefix: func(*http.Request) string { return "/w/notes" },
		Scan:   w.Scan,
		Folders: func(*http.Request) []Served {
			return []Served{{"notes", w.Folder}, {"empty", w.Folder}} // the second folder has the same documents
		},
		MayWrite: func(*http.Request) bool { return true },
	}), root
}

func get(t *testing.T, h http.Handler, target string, header ...string) (int, http.Header, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Header(), w.Body.String()
}

// stages counts the stages that the pages report.
type stages struct {
	observe.Silent
	n atomic.Int32
}

func (s *stages) Stage(context.Context, observe.Stage, time.Time, time.Duration) { s.n.Add(1) }

// TestPagesAreObserved: searches and readings report their stages, searches what they lack.
func TestPagesAreObserved(t *testing.T) {
	h, _ := folder(t)
	s, reports := &stages{}, 0
	h.site.Listener, h.site.Lacked = s, func([]string) { reports++ }
	for _, target := range []string{"/?q=revoke", "/doc?path=other.md"} {
		before := s.n.Load()
		if get(t, h, target); s.n.Load() == before {
			t.Errorf("%s reports no stage", target)
		}
	}
	if reports != 1 {
		t.Errorf("%d reports of what the index lacks, want 1", reports)
	}
}

func TestPages(t *testing.T) {
	h, _ := folder(t)
	for _, c := range []struct {
		target string
		status int
		holds  []string
	}{
		{"/", 200, []string{`placeholder="Search notes"`, `href="/w/notes/tasks"`, "<footer>", "12 documents", `href="?in=guide%2F"`, "guide/ <small>2</small>", `href="?tag=kinds"`, "Changed last", ">Part of the guide</a>"}},
		{"/?in=guide/", 200, []string{`aria-label="Remove the filter guide/"`, `href="?in=guide%2Fdeep%2F"`, ">Start here</a>"}},
		{"/?tag=kinds", 200, []string{`aria-label="Remove the filter #kinds"`, ">Every kind of thing</a>"}},
		{"/?q=revoke+key", 200, []string{`href="/w/notes/doc?from=q%3Drevoke%2Bkey&amp;path=other.md#part-two"`, "<mark>revoke</mark>", "Why this result", `data-copy="other.md#part-two"`, `href="?all=yes&amp;q=revoke&#43;key"`, `data-part="/w/notes/doc?path=other.md&amp;part=part-two"`}},
		{"/?q=other+text&mode=keyword", 200, []string{`<p class="more">`, "#part-two"}},
		{"/?q=revoke&mode=keyword", 200, []string{"1 document with these words, the best first", `aria-label="Remove the filter words only"`}},
		{"/?q=revoke&all=yes", 200, []string{"in all folders", `href="/w/empty/doc?from=all%3Dyes%26q%3Drevoke&amp;path=other.md#part-two"`, `aria-label="Remove the filter in all folders"`, "<strong>empty</strong> · other.md:5"}},
		{"/?q=part", 200, []string{`href="?in=guide%2F&amp;q=part">guide/ <small>`}},
		{"/?q=rotate+wall+plan", 200, []string{`documents <small>`, `cards <small>`}},
		{"/?q=revoke&kind=code", 200, []string{"0 documents", `aria-label="Remove the filter source code"`, `name="kind" value="code"`}},
		{"/?kind=docs", 200, []string{`aria-label="Remove the filter documents"`, "guide/ <small>2</small>"}},
		{"/?kind=code", 200, []string{`aria-label="Remove the filter source code"`, "2 documents"}},
		{"/?q=revoke&mode=nonsense", 200, []string{"the best first"}},
		{"/?q=" + strings.Repeat("x", 4001), 200, []string{`role="alert"`}},
		{"/?q=revoke&in=nowhere/", 200, []string{"0 documents"}},
		{"/doc?path=other.md", 200, []string{`<h2 id="part-two">Part two</h2>`, `href="#part-two"`}},
		{"/doc?path=kinds.md", 200, []string{"<h1>Every kind of thing</h1>", `<h2 id="main">Main</h2>`, `<h6 id="deepest">`, `<h2 id="what-was-said">Said</h2>`, `<pre tabindex="0"`, `<div class="wide" tabindex="0"`, `aria-label="done"`, `aria-label="to do"`}},
		{"/doc?path=guide/start.md&from=q%3Dwall", 200, []string{
			`<h1 id="start-here">Start here</h1>`, // once
			`<img loading="lazy" src="/w/notes/picture?path=guide%2Fwall.png" alt="The wall" title="Built last year"`,
			`>Elsewhere (external picture)</a>`,
			`<blockquote class="callout warning">`, "<strong>Mind the step</strong>", "It is <em>high</em>.",
			`<a href="/w/notes/doc?path=other.md#part-two" rel="nofollow noreferrer">the other part</a>`, `<a href="/w/notes/doc?path=guide%2Fdeep%2Fer.md" rel="nofollow noreferrer">er</a>`, `<a href="/w/notes/?q=nowhere" rel="nofollow noreferrer">nowhere</a>`,
			`<sup id="fnref:1"><a href="#fn:1"`, `<li id="fn:1">`, "Because of the view.",
			`<span class="c1">// wall has a &lt;height&gt;.</span>`, `<span class="c4">func</span> wall() <span class="c4">string</span>`, `<span class="c2">&#34;high&#34;</span>`, `<span class="c3">12</span>`,
			`<a href="/w/notes/?q=wall">← results for “wall”</a>`, `<input name="q" type="search" aria-label="Search notes" placeholder="Search notes" value="wall"`,
			`<a href="/w/notes/?in=guide%2F">guide</a> / start.md`, `<a href="/w/notes/doc?path=guide%2Fstart.md" aria-current="page">Start here</a>`, `<a href="/w/notes/?in=guide%2Fdeep%2F">deep/</a> <small>1</small>`, `">Other</a>`,
		}},
		{"/doc?path=kinds.md", 200, []string{`<a rel="prev" href="/w/notes/doc?path=hostile.md">`, `rel="next"`}},
		{"/doc?path=.cairn/cards/bbb222.md", 200, []string{"<dt>Status</dt><dd>todo</dd>", "<dt>Priority</dt><dd>medium</dd>", "<dd>no one</dd>", `<dt>Waits for</dt><dd><a href="/w/notes/doc?path=.cairn%2Fcards%2Faaa111.md">Build the &lt;wall&gt;</a> (todo)`}},
		{"/doc?path=.cairn/cards/aaa111.md", 200, []string{`todo, <span class="good">ready to start</span>`, "<dd>high</dd>", `<dt>Needed for</dt>`}},
		{"/doc?path=src/wall.go&line=5", 200, []string{`<span class="line" id="line:4"><a class="no" href="#line:4" tabindex="-1">4</a><span class="c4">func</span> Height()`, `<span class="line marked" id="line:5">`, `<i id="Height"></i>`, `<a href="#Height">Height</a>`, `<span class="c2">&#34;high &lt;b&gt;&#34;</span>`}},
		{"/?q=how+high+the+wall+is&kind=code", 200, []string{`href="/w/notes/doc?line=3&amp;from=kind%3Dcode%26q%3Dhow%2Bhigh%2Bthe%2Bwall%2Bis&amp;path=src%2Fwall.go#Height"`, `<span class="line marked"><span class="no">3</span>`, `<mark>high</mark>`}},
		{"/names?name=Height", 200, []string{"1 definition of <code>Height</code>", `<a class="hit mono" href="/w/notes/doc?path=src%2Fwall.go#Height">func Height() string</a>`, "3 lines with it", `<a class="no" href="/w/notes/doc?path=src%2Fuse.go#line:5">5</a>`}},
		{"/doc?path=src/use.go&line=5", 200, []string{`<span class="line" id="line:3">`, `<span class="line marked" id="line:5"><i id="use"></i>`}},
		{"/names?name=%3Cb%3E", 400, []string{"is no name of source code"}},
		{"/doc?path=other.md", 200, []string{"changed today</time>", "Linked from", `<a href="doc?path=guide%2fstart.md">Start here</a>`, "Similar"}},
		{"/doc?path=untitled.md", 200, []string{"<h1>untitled.md</h1>"}},
		{"/doc?path=othe.md", 404, []string{"other.md", `role="alert"`}},
		{"/doc?path=../../etc/passwd", 0, []string{`role="alert"`}},
		{"/tasks", 200, []string{"Build the &lt;wall&gt;", "ready to start", `after <a href="/w/notes/doc?path=.cairn%2Fcards%2Faaa111.md">Build the &lt;wall&gt;</a>`, "<svg", "<title>Build the &lt;wall&gt;</title>"}},
		{"/tasks?text=WALL", 200, []string{"Build the &lt;wall&gt;", "todo <small>1</small>"}},
		{"/tasks?assignee=zoe", 200, []string{"todo <small>0</small>"}},
		{"/tasks?sort=title", 200, []string{`<option value="title" selected>`, `aria-label="Move Paint it to"`}},
		{"/graph", 200, []string{"Documents that link to each other", `href="/w/notes/graph?around=other.md"`, "guide/start.md"}},
		{"/graph?around=GUIDE", 200, []string{"<td>guide/start.md</td>"}},
		{"/graph?around=nothing", 200, []string{"No document links"}},
		{"/tools", 200, []string{"No tools are imported"}},
		{"/tools?intent=send+a+mail", 200, []string{"No tools are imported"}},
		{"/tasks", 200, []string{`<summary aria-label="Folder notes, choose another">`, `<a href="/w/empty/tasks">empty</a>`, `<a href="/w/notes/tasks" aria-current="true">notes</a>`}},
		{"/index", 200, []string{"ready", "all-MiniLM-L6-v2", "<polyline", "12 (9 Markdown, 2 source code, 1 text)", "<li>guide/wall.png</li>", "extension not indexed <small>2</small>", "<li>guide/.hidden.png</li>", `class="axis"`}},
		{"/assets/style.css", 200, []string{"color-scheme"}},
		{"/assets/../web.go", 404, nil},
		{"/nothing", 404, []string{"There is no page at /nothing.", `href="/w/notes/?q=nothing"`, `href="/w/notes/index"`, "viewport"}},
	} {
		status, header, body := get(t, h, c.target, "Accept", "text/html")
		if c.status == 0 && status < 400 || c.status != 0 && status != c.status && !(c.status == 404 && status == 307) {
			t.Errorf("%s: status %d, want %d", c.target, status, c.status)
		}
		if header.Get("Content-Security-Policy") != policy {
			t.Errorf("%s: policy %q", c.target, header.Get("Content-Security-Policy"))
		}
		for _, want := range c.holds {
			if !strings.Contains(body, want) {
				t.Errorf("%s: no %q in\n%s", c.target, want, body)
			}
		}
	}
}

// TestPictures: pictures of the folder are sent, with a policy that lets them run
// nothing; other files, and files that are not what their name says, are not found.
func TestPictures(t *testing.T) {
	h, root := folder(t)
	if err := os.WriteFile(filepath.Join(root, "drawing.svg"), []byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(root, "link.png")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, kind string }{
		{"guide/wall.png", "image/png"},
		{"drawing.svg", "image/svg+xml"},
		{"guide/.hidden.png", ""},
		{"guide/fake.png", ""},
		{"guide/nothing.png", ""},
		{"link.png", ""},
		{"other.md", ""},
		{"../other.png", ""},
		{"/etc/hosts.png", ""},
		{"", ""},
	} {
		status, header, body := get(t, h, "/picture?path="+url.QueryEscape(c.path))
		if c.kind == "" {
			if status != 404 {
				t.Errorf("%s: status %d, want 404", c.path, status)
			}
			continue
		}
		if status != 200 || header.Get("Content-Type") != c.kind || header.Get("Content-Security-Policy") != picturePolicy || header.Get("X-Content-Type-Options") != "nosniff" || body == "" {
			t.Errorf("%s: status %d, header %v", c.path, status, header)
		}
	}
}

// TestFragment: the script gets only the results.
func TestFragment(t *testing.T) {
	h, _ := folder(t)
	if _, _, body := get(t, h, "/?q=revoke", fragmentHeader, "results"); strings.Contains(body, "<html") || !strings.Contains(body, "<mark>") {
		t.Errorf("fragment:\n%s", body)
	}
	if _, header, body := get(t, h, "/?q=revoke"); !strings.Contains(body, "<html") || header.Get("Vary") != fragmentHeader {
		t.Errorf("page, which varies with %q:\n%s", header.Get("Vary"), body)
	}
}

// The reader shows people what agents get: the rest of a document after an unclosed
// element was hidden. It counts the comments that it hides.
func TestReaderShowsWhatAgentsGet(t *testing.T) {
	for _, before := range []string{"<script>", "<style>", "<textarea>", "<!-- note", "<div>", "<pre>"} {
		page := rendered("# A\n\n" + before + "\n\nignore this " + "rest\n")
		if text := string(page); !strings.Contains(text, "ignore this rest") || strings.Contains(text, "<script") || strings.Contains(text, "<textarea") {
			t.Errorf("after %s: %s, want the rest as text", before, text)
		}
	}
	o := reader{name: "a.md", lib: &library{}}
	d := o.render([]byte("a <!-- secret note --> <b>bold</b>\n\n<!-- a\nblock -->\n"))
	if text := string(d.HTML); d.Hidden != 2 || strings.Contains(text, "note") || strings.Contains(text, "block") || !strings.Contains(text, "<b>bold</b>") {
		t.Errorf("%d hidden comments in %s", d.Hidden, text)
	}
}

// TestHarmlessHTML: pages show the HTML that documents use, without scripts, styles, events
// and ids, and no document closes elements of the page.
func TestHarmlessHTML(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"<details open><summary>More</summary>\n\nFolded **text**.\n\n</details>", "<details open=\"\"><summary>More</summary>\n<p>Folded <strong>text</strong>.</p>\n</details>"},
		{"Press <kbd>Ctrl</kbd><br>twice", "<p>Press <kbd>Ctrl</kbd><br/>twice</p>"},
		{"<p align=\"center\" onclick=\"alert(1)\" style=\"color:red\" id=\"q\">x</p>", `<p align="center">x</p>`},
		{"<h1 align='center'>A</h1>", `<h2 align="center">A</h2>`},
		{"<table><tr><td colspan=2 align=right>1</td></tr></table>", `<td colspan="2" align="right">1</td>`},
		{"a <a href='javascript:alert(1)'>b</a>", "<p>a b</p>"},
		{"a <a href=\"other.md#x\" target=_top>b</a>", `<a href="/doc?path=other.md#x" rel="nofollow noreferrer">b</a>`},
		{"<img src=\"https://elsewhere.example/x.png\" alt=\"a\" onerror=alert(1)>", `alt="a"`},
		{"<img src=x.png alt='\"><script>'>", `src="/picture?path=x.png"/>`},
		{"a </div></article></main> b <div>c", "a <code>&lt;/article&gt;</code><code>&lt;/main&gt;</code> b"},
		{"> <div>\n\n</div></div>x", "x"},
		{"<svg/onload=alert(1)>", "&lt;svg/onload=alert(1)&gt;"},
		{"<iframe srcdoc=\"<script>\">", "<code>&lt;iframe"},
		{"a <style>x</style>", "<code>&lt;style&gt;</code>x<code>&lt;/style&gt;</code>"},
		{"costs $5 and $6, so $x^2$ and\n$$\na<b\n$$", "costs $5 and $6, so <code class=\"math\">x^2</code> and\n<code class=\"math display\">a&lt;b</code>"},
		{"```math\n\\frac12\n```", `<code class="math display">\frac12</code>`},
	} {
		page := rendered(c.source)
		if !strings.Contains(page, c.want) {
			t.Errorf("%s: %s, want %s", c.source, page, c.want)
		}
		if strings.Count(page, "<div") != strings.Count(page, "</div>") || regexp.MustCompile(`(?i)<script|<style|\son\w+=|javascript:|id="q"|elsewhere`).MatchString(page) {
			t.Errorf("%s: %s", c.source, page)
		}
	}
}

// rendered returns a document of an empty folder as HTML.
func rendered(text string) string {
	o := reader{name: "a.md", lib: &library{}}
	return string(o.render([]byte(text)).HTML)
}

// TestHostile: no page passes on the scripts of a hostile document.
func TestHostile(t *testing.T) {
	h, _ := folder(t)
	bad := regexp.MustCompile(`(?i)<script>|<script [^>]*(alert|elsewhere)|\son[a-z]+\s*=|=["']?\s*javascript:|<iframe|<style|=["'][^"']*elsewhere\.example|etc/passwd`)
	for _, target := range []string{
		"/?q=" + url.QueryEscape("rotate a token"),
		"/?q=" + url.QueryEscape(`"><script>alert(8)</script>`),
		"/?in=" + url.QueryEscape(`"><script>alert(8)</script>`) + "&q=token&tag=" + url.QueryEscape(`"onfocus="alert(9)`),
		"/doc?path=hostile.md",
		"/doc?path=" + url.QueryEscape(`<script>alert(1)</script>`),
		"/tasks", "/tools?intent=" + url.QueryEscape(`<script>alert(1)</script>`),
	} {
		_, _, body := get(t, h, target)
		escaped := strings.ReplaceAll(body, "&#34;onfocus=&#34;", "") // shown as text
		escaped = regexp.MustCompile(`(?s)<code>[^<]*</code>`).ReplaceAllString(escaped, "")
		if m := bad.FindString(escaped); m != "" {
			t.Errorf("%s: %q in\n%s", target, m, body)
		}
	}
	_, _, body := get(t, h, "/doc?path=hostile.md")
	for _, want := range []string{`id="rotate-a-token"`, `id="rotate-a-token-1"`, `href="/w/notes/doc?path=other.md#part-two"`, `href="https://example.com"`, "<code>a&lt;b</code>"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
}

// TestAnchors: the reader and the index agree on every anchor.
func TestAnchors(t *testing.T) {
	h, _ := folder(t)
	_, _, body := get(t, h, "/?q=rotate&in=hostile")
	for _, m := range regexp.MustCompile(`path=hostile\.md#([^"]+)"`).FindAllStringSubmatch(body, -1) {
		_, _, page := get(t, h, "/doc?path=hostile.md")
		anchor, err := url.PathUnescape(m[1])
		if err != nil || !strings.Contains(page, `id="`+anchor+`"`) {
			t.Errorf("the page has no %q", anchor)
		}
	}
}

// TestChangedDocument: the token of a further part is not an error of the server after the document
// has changed.
func TestChangedDocument(t *testing.T) {
	h, root := folder(t)
	long := filepath.Join(root, "untitled.md")
	write := func(lines int) {
		if err := os.WriteFile(long, []byte(strings.Repeat("A line of a text that is too long for one page.\n", lines)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(3000)
	_, _, page := get(t, h, "/doc?path=untitled.md")
	next := regexp.MustCompile(`/doc\?next=[^"]*`).FindString(page)
	write(3001)
	status, _, body := get(t, h, strings.ReplaceAll(next, "&amp;", "&"))
	if next == "" || status != http.StatusConflict || !strings.Contains(body, "has changed since") || !strings.Contains(body, `<li><a href="/w/notes/doc?path=untitled.md">`) {
		t.Errorf("%q answers %d:\n%s", next, status, body)
	}
}

// TestSimilar: a document with several similar sections is listed once.
func TestSimilar(t *testing.T) {
	h, _ := folder(t)
	_, _, page := get(t, h, "/doc?path=src/use.go")
	_, similar, _ := strings.Cut(page, "<h2>Similar</h2>")
	if n := strings.Count(similar, ">wall.go</a>"); n != 1 {
		t.Errorf("wall.go is listed %d times in\n%s", n, similar)
	}
}

// TestOwnIDs: no id of the page of a document, other than those of its contents, can be the anchor
// of a heading or of a symbol.
func TestOwnIDs(t *testing.T) {
	h, _ := folder(t)
	for _, target := range []string{"/doc?path=other.md", "/doc?path=src/wall.go", "/doc?path=.cairn/cards/aaa111.md"} {
		_, _, page := get(t, h, target)
		around := regexp.MustCompile(`(?s)<article.*</article>`).ReplaceAllString(page, "")
		for _, id := range regexp.MustCompile(`\sid="([^"]*)"`).FindAllStringSubmatch(around, -1) {
			if !strings.Contains(id[1], ":") {
				t.Errorf("%s: the page has the id %q", target, id[1])
			}
		}
	}
}

func TestDraw(t *testing.T) {
	d := draw([]box{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "x"}, {ID: "y"}, {ID: "n", Label: strings.Repeat("ü", 60)}}, []arrow{
		{From: "a", To: "b"}, {From: "b", To: "c"}, {From: "a", To: "c"}, {From: "x", To: "y"}, {From: "y", To: "x"}, {From: "gone", To: "a"},
	}, false)
	column := map[string]int{}
	taken := map[[2]int]string{}
	for _, b := range d.Boxes {
		column[b.ID] = b.X
		if other, ok := taken[[2]int{b.X, b.Y}]; ok {
			t.Errorf("%s lies on %s", b.ID, other)
		}
		taken[[2]int{b.X, b.Y}] = b.ID
		if b.X < 0 || b.Y < 0 || b.X+b.W > d.Width || b.Y+b.H > d.Height {
			t.Errorf("%s lies outside", b.ID)
		}
	}
	if !(column["a"] < column["b"] && column["b"] < column["c"]) {
		t.Errorf("columns %v, want a before b before c", column)
	}
	if len(d.Lines) != 5 || column["x"] >= column["y"] {
		t.Errorf("%d arrows and columns %v, want 5 and x, the first of a cycle, before y", len(d.Lines), column)
	}
}

// TestCoUsage: the page shows the co-usage of all tools or of one.
func TestCoUsage(t *testing.T) {
	h, _ := folder(t, taught)
	curves := func(body string) int { return strings.Count(body, `class="curve"`) }
	_, _, all := get(t, h, "/tools")
	_, _, one := get(t, h, "/tools?around="+url.QueryEscape("mail:send_mail"))
	_, _, none := get(t, h, "/tools?around=unknown")
	_, _, plan := get(t, h, "/tools?around=unknown&intent=translate+a+file")
	_, _, words := get(t, h, "/tools?intent="+url.QueryEscape("read a file, translate it and send it by mail"))
	for _, want := range []string{"Plan with tools", "4 tools known", "3 steps, ", "takes “text” from “text” of step 1: the output has the name of the input", "needs a value for “path”", "step 1 · fits"} {
		if !strings.Contains(words, want) {
			t.Errorf("no %q in\n%s", want, words)
		}
	}
	for _, jargon := range []string{"task_0", "explicit_required", "input.", "output."} {
		if strings.Contains(words, jargon) {
			t.Errorf("%q in\n%s", jargon, words)
		}
	}
	for _, want := range []string{"files:read_file", `href="/w/notes/tools?around=mail%3Asend_mail"`, "dependency, observed, weight 1.00, seen 3", "<td>words:translate</td>"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	if a, b := curves(all), curves(one); a < 3 || b == 0 || b >= a || !strings.Contains(one, "Only around") {
		t.Errorf("%d relations in all and %d around one tool", a, b)
	}
	if curves(none) != 0 || !strings.Contains(none, "not known yet") {
		t.Errorf("around a tool that is not there:\n%s", none)
	}
	if curves(plan) != 0 || !strings.Contains(plan, "<svg") {
		t.Errorf("the plan alone:\n%s", plan)
	}
	for _, body := range []string{all, one} {
		if strings.Contains(body, "<b>alert") || strings.Contains(body, "<img") {
			t.Errorf("the name of a tool is not escaped in\n%s", body)
		}
	}
}

// TestDrawCoUsage: the heaviest relations come first, within the limits, and
// nothing is outside the drawing or overlaps.
func TestDrawCoUsage(t *testing.T) {
	var g graphrank.Graph
	for i := range 100 {
		g.Set(graphrank.Edge{From: fmt.Sprintf("t%d", i), To: fmt.Sprintf("t%d", i+1), Type: graphrank.Sequence, Source: graphrank.Inferred, Count: float64(i)})
	}
	g.Set(graphrank.Edge{From: "t0", To: "t50", Type: graphrank.Dependency, Source: graphrank.Observed, Count: 3})
	g.Set(graphrank.Edge{From: "t0", To: "doc:a.md", Type: graphrank.Dependency, Source: graphrank.Observed, Count: 3})
	u := drawCoUsage(&g, "", "")
	if len(u.Nodes) != maxNodes || u.Omitted+len(u.Curves) != 101 || u.Rows[0] != (view.UsageEdge{From: "t0", To: "t50", Type: "dependency", Source: "observed", Weight: 1, Count: 3}) || u.Rows[1].From != "t99" {
		t.Errorf("%d nodes, %d curves, %d left, first %v", len(u.Nodes), len(u.Curves), u.Omitted, u.Rows[:2])
	}
	for i, n := range u.Nodes {
		if n.X-n.R < 0 || n.Y-n.R < 0 || n.X+n.R > u.Width || n.Y+n.R > u.Height || n.LY > u.Height || n.LY < labelHeight/2 {
			t.Errorf("%s lies outside", n.ID)
		}
		for _, m := range u.Nodes[:i] {
			if math.Hypot(float64(n.X-m.X), float64(n.Y-m.Y)) < float64(n.R+m.R) {
				t.Errorf("%s lies on %s", n.ID, m.ID)
			}
		}
	}
	if got := drawCoUsage(&graphrank.Graph{}, "", ""); got != nil {
		t.Errorf("of nothing: %+v", got)
	}
}

func TestMarked(t *testing.T) {
	for _, c := range []struct{ text, query, want string }{
		{"Rotating the tokens <now>", "rotate token", "<mark>Rotating</mark> the <mark>tokens</mark> &lt;now&gt;"},
		{"a&b", "x", "a&amp;b"},
		{"größe", "größe", "<mark>größe</mark>"},
		{"", "x", ""},
		{"no match", "", "no match"},
	} {
		if got := string(marked(c.text, view.NewMarker(c.query))); got != c.want {
			t.Errorf("%q for %q: %q, want %q", c.text, c.query, got, c.want)
		}
	}
}

func FuzzRender(f *testing.F) {
	f.Add([]byte(hostile))
	f.Add([]byte("# a\n\n[x](data:text/html,<script>)"))
	bad := regexp.MustCompile(`(?i)<script|<iframe|\son[a-z]+=["']|href="(javascript|data|vbscript):`)
	f.Fuzz(func(t *testing.T, source []byte) {
		out := rendered(string(source))
		if m := bad.FindString(out); m != "" && !bytes.Contains(source, []byte("&lt;")) {
			t.Errorf("%q in %q", m, out)
		}
	})
}
