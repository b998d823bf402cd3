package term

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/face/view"
	"cairn/internal/folder/index"
	"cairn/internal/stage"
	"cairn/internal/text/walk"
	"cairn/retriever"
)

// broken is a stream whose writes fail.
type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

func TestMark(t *testing.T) {
	s := style{width: 80, colour: true}
	for _, c := range []struct{ query, line, want string }{
		{"rotate the token", "Rotating a Token, tokens", match + "Rotating" + reset + " a " + match + "Token" + reset + ", " + match + "tokens" + reset},
		{"retry", "see retry_after_seconds", "see " + match + "retry_after_seconds" + reset},
		{"walrus", "no such word", "no such word"},
		{"", "anything", "anything"},
	} {
		if got := s.mark(view.NewMarker(c.query), c.line); got != c.want {
			t.Errorf("mark(%q) for %q = %q, want %q", c.line, c.query, got, c.want)
		}
	}
	if got := (style{width: 80}).mark(view.NewMarker("token"), "a token"); got != "a token" {
		t.Errorf("without colour: %q, want the line as it is", got)
	}
}

func TestWrapCutPick(t *testing.T) {
	if diff := cmp.Diff([]string{"one two", "three", "fourteen-runes", "five"}, wrap("one  two three fourteen-runes five ", 8)); diff != "" {
		t.Errorf("wrap (-want +got):\n%s", diff)
	}
	if got := Cut("a\x1b[31m\tb\u202ec", 80); got != "a[31m bc" {
		t.Errorf("cut leaves %q, want no control characters", got)
	}
	if got := Cut("日本語のテキスト", 4); got != "日本語…" {
		t.Errorf("cut = %q, want four runes", got)
	}
	lines := []string{"first", "second", "a token here", "fourth", "more tokens"}
	if diff := cmp.Diff([]string{"first", "a token here", "more tokens"}, view.NewMarker("token").Pick(lines, 3)); diff != "" {
		t.Errorf("pick (-want +got):\n%s", diff)
	}
}

func TestResultKeepsItsWidth(t *testing.T) {
	r := &retriever.Result{
		Path: "docs/auth.md", Anchor: "login", Headings: []string{"Auth", strings.Repeat("long heading ", 20)}, Score: .5,
		LineRange: retriever.Lines{Start: 3, End: 9}, Snippet: strings.Repeat("a token and more ", 30), Duplicates: []string{strings.Repeat("copy/", 60)},
	}
	var b bytes.Buffer
	for _, width := range []int{minWidth, defaultWidth, maxWidth} {
		b.Reset()
		shown(&b, width, defaultHeight, *r, *r)
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("width %d: a line of %d: %s", width, n, line)
			}
		}
	}
	r.Path = strings.Repeat("folder/", 20) + "auth.md"
	b.Reset()
	shown(&b, minWidth, defaultHeight, *r)
	if !strings.Contains(b.String(), r.Path+":3 #login  0.500\n") {
		t.Errorf("a long place is cut:\n%s", &b)
	}
	b.Reset()
	r.Path = "page.html"
	shown(&b, minWidth, defaultHeight, *r)
	if !strings.HasPrefix(b.String(), " 1. page.html #login ") {
		t.Errorf("a file that is converted:\n%s", &b)
	}
}

// shown writes results on a screen of that size.
func shown(w io.Writer, width, height int, results ...retriever.Result) {
	(&Writer{w: w, style: style{width: width, height: height}}).Results(&retriever.Answer{Results: results}, "token", 0, asStored)
}

// TestTenResultsFitAScreen: ten results and the notes need at most 24 rows. The best has its
// text, and each other one its best line.
func TestTenResultsFitAScreen(t *testing.T) {
	r := retriever.Result{Path: "a.md", Headings: []string{"Auth"}, Snippet: strings.Repeat("more words of the text ", 40) + "a token " + strings.Repeat("at the end ", 10), More: []retriever.SectionRef{{Anchor: "b"}}}
	for height, want := range map[int]int{24: 0, 60: 58, 5: 0} {
		var b bytes.Buffer
		shown(&b, minWidth, height, slices.Repeat([]retriever.Result{r}, 10)...)
		lines := strings.Count(b.String(), "\n")
		if height >= 24 && lines > height-2 || lines < want {
			t.Errorf("%d lines on a screen of %d rows:\n%s", lines, height, &b)
		}
		if texts := strings.Count(b.String(), "\n    | "); texts < 2 || strings.Count(b.String(), "Auth  | ") != (map[int]int{24: 9, 60: 2, 5: 9}[height]) {
			t.Errorf("%d rows: %d lines of text, want two, and one with each other result:\n%s", height, texts, &b)
		}
	}
}

// asStored is the root of the workspace /notes.
var asStored = NewPlaces([]walk.Root{{Dir: "/notes"}}, "")

// TestLink: a terminal gets a link to the line of the file. A link in the text of a
// document is none, and a link that a document leaves open ends with its line.
func TestLink(t *testing.T) {
	var b bytes.Buffer
	o := &Writer{w: &b, tty: true, own: paints, style: style{width: defaultWidth, colour: true}}
	o.Results(&retriever.Answer{Results: []retriever.Result{{Path: "a b.md", LineRange: retriever.Lines{Start: 3, End: 9}, Snippet: "see \x1b]8;;http://evil.example\x1b\\here"}}}, "token", 0, asStored)
	host, _ := os.Hostname()
	start := startLink + "file://" + host + "/notes/a%20b.md#3" + endString
	if out := b.String(); !strings.Contains(out, start+bold+"a b.md:3"+reset+endLink) || strings.Count(out, startLink) != 2 {
		t.Errorf("shown: %q", out)
	}
	b.Reset()
	o.Results(&retriever.Answer{Results: []retriever.Result{{Path: "b.pdf", LineRange: retriever.Lines{Start: 3, End: 9}}}}, "token", 0, asStored)
	if out := b.String(); !strings.Contains(out, startLink+"file://"+host+"/notes/b.pdf"+endString) {
		t.Errorf("a file that is converted: %q", out)
	}
	b.Reset()
	o.Printf("%s%sx\ny", start, bold)
	if out := b.String(); out != start+bold+"x"+endLink+reset+"\ny" {
		t.Errorf("an open link: %q", out)
	}
}

// TestAnswerNotes: the notes about an answer, and the cursor of its next page, are on the
// stream of notes. The numbers of results continue those of the pages before.
func TestAnswerNotes(t *testing.T) {
	var out, notes bytes.Buffer
	next := "AQoAAAABAAAAAAAAACgcOTzbHjU7Q_fnbw" // from the tenth result
	o := &Output{Writer: New(&out), Notes: New(&notes)}
	o.Answer(&retriever.Answer{Results: []retriever.Result{{Path: "a.md"}}, Fuzzy: true, TotalCount: 7, HasMore: true, NextCursor: &next}, "token", 20, asStored)
	want := "nothing matches the words as typed; these results match near spellings\n7 documents in all; next page: --cursor 10.4952\n"
	if notes.String() != want || strings.Contains(out.String(), "cursor") || !strings.HasPrefix(out.String(), "21. a.md") {
		t.Errorf("notes %q and output %q, want the notes %q", &notes, &out, want)
	}
}

// TestWriterInPieces writes a text in pieces of any length; the output is the same.
func TestWriterInPieces(t *testing.T) {
	const text = "a\r\nb\rc \x1b[1mbold\x1b[0m \x1b[1;33mmatch\x1b[0m \x1b[2Jé日\u009b\u202e\U000e0041\xe9\xff\x1b[2mto the end\nnext \x1b["
	const want = "a\nb\\u000dc " + bold + "bold" + reset + " " + match + "match" + reset + ` \u001b[2Jé日\u009b\u202e\ue0041\xe9\xff` + dim + "to the end" + reset + "\nnext \\u001b["
	for n := 1; n <= len(text); n++ {
		var b bytes.Buffer
		o := &Writer{w: &b, tty: true, own: paints, style: style{colour: true}}
		for rest := text; rest != ""; rest = rest[min(n, len(rest)):] {
			if _, err := o.Write([]byte(rest[:min(n, len(rest))])); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.Close(); err != nil || b.String() != want {
			t.Fatalf("in pieces of %d: %v,\n%q, want\n%q", n, err, &b, want)
		}
	}
	var b bytes.Buffer
	o := &Writer{w: &b, tty: true}
	if _, err := o.Write([]byte(bold + "x")); err != nil || b.String() != `\u001b[1mx` {
		t.Errorf("without colour: %q, %v, want no sequence", &b, err)
	}
	b.Reset()
	o = &Writer{w: &b}
	if _, err := o.Write([]byte(text)); err != nil || b.String() != text {
		t.Errorf("without a terminal: %q, want %q", &b, text)
	}
}

// TestWriterKeepsItsError checks that nothing is written after the first error.
func TestWriterKeepsItsError(t *testing.T) {
	first := errors.New("the first")
	o := &Writer{w: broken{first}}
	o.Write([]byte("x"))
	var b bytes.Buffer
	o.w = &b
	o.Write([]byte("y"))
	if err := o.Close(); !errors.Is(err, first) || b.Len() > 0 {
		t.Errorf("afterwards: %v and %q, want %v and nothing", err, &b, first)
	}
}

func TestEventLine(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	for _, c := range []struct {
		e    index.WatchEvent
		want string
	}{
		{index.WatchEvent{At: at}, ""},
		{index.WatchEvent{At: at, Vectors: true}, ""},
		{index.WatchEvent{At: at, First: at.Add(-250 * time.Millisecond), Changed: 1, Removed: 2, Paths: []string{"a.md", "d"}}, "03:04:05  1 new or changed, 2 removed, found by keyword after 0.25 s  a.md d"},
		{index.WatchEvent{At: at, Vectors: true, Embedded: 3}, "03:04:05  3 texts embedded"},
		{index.WatchEvent{At: at, Problem: "no\nroom"}, "03:04:05  problem: no room"},
	} {
		if got := EventLine(c.e); got != c.want {
			t.Errorf("EventLine(%+v) = %q, want %q", c.e, got, c.want)
		}
	}
}

// TestBriefFitsAScreen: a person gets the best passages of a brief in at most 60 lines.
func TestBriefFitsAScreen(t *testing.T) {
	b := &stage.Brief{TaskID: "t", Stage: stage.ExecutorReasoning, Instructions: "Answer.", Query: "q"}
	for range 12 {
		b.Passages = append(b.Passages, stage.Passage{ID: "doc:a.md", Heading: "A", Text: strings.Repeat("line\n", 25)})
	}
	var out bytes.Buffer
	New(&out).Brief(b)
	if n := strings.Count(out.String(), "\n"); n > 60 || n < 40 || !strings.Contains(out.String(), "10 further passages") || !strings.Contains(out.String(), "cairn plan answer t") {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
}
