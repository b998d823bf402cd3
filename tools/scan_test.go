package tools

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"cairn/internal/folder/scan"
	"cairn/internal/text/fit"
	"cairn/models/bpe"
)

// TestReadGlob: a path that is no document's name, and looks like a glob, is read as one.
func TestReadGlob(t *testing.T) {
	s := newSession(t, (&fake{}).folder(), &Options{Scan: (&fake{}).Scan, NoRateLimit: true})
	s.send(request(1, "read_doc", `{"path":"docs/*.md"}`))
	if line := s.receive(); !strings.Contains(line, `"failed":[{"path":"docs/*.md"`) {
		t.Errorf("a glob is answered with %s", line)
	}
	s.send(request(2, "read_doc", `{"path":"docs/nothing-like-it.md"}`))
	if line := s.receive(); !strings.Contains(line, `"File Not Found"`) {
		t.Errorf("a missing document is answered with %s", line)
	}
	s.close()
}

// TestExhaustive: read_context finds every line, and says how many it leaves out.
func TestExhaustive(t *testing.T) {
	counter := &bpe.Counter{}
	s := newSession(t, (&fake{}).folder(), &Options{Scan: (&fake{}).Scan, NoRateLimit: true, Budget: fit.Budget{Tokens: 2000, Count: counter.CountTokens}})
	for i, c := range []struct{ args, want string }{
		{`{"query":"ERR_42","exhaustive":true,"limit":2}`, `"result":{"query":"ERR_42","lines":["docs/auth.md:1:ERR_42 false","docs/auth.md:2:ERR_42 false"],"total":200,"files":2,"files_searched":3,"truncated":true`},
		{`{"query":"^x$","mode":"regexp"}`, `docs/auth.md:1:^x$ true`},
		{`{"query":"x","exhaustive":true,"filters":{"path_prefix":"a/"}}`, `"a/docs/auth.md:1:x false"`},
		{`{"query":"some rather long text that takes tokens","exhaustive":true,"max_tokens":300}`, `of 200 lines are shown: set max_tokens`},
		{`{"query":"(","mode":"regexp","exhaustive":true}`, `query: missing closing )`},
		{`{"query":"x","exhaustive":true,"filters":{"tags":["a"]}}`, `takes path_prefix alone`},
		{`{"query":"x","exhaustive":true,"cursor":"c"}`, `has one answer`},
		{`{"query":"login flow","exhaustive":true}`, `"related":["docs/`},
		{`{"query":"x","mode":"regex"}`, `unknown mode`},
	} {
		s.send(request(i+1, "read_context", c.args))
		line := s.receive()
		if !strings.Contains(line, c.want) {
			t.Errorf("%s is answered with %s, want %s in it", c.args, line, c.want)
		}
		if n := counter.CountTokens(line); n > 2100 {
			t.Errorf("%s is answered with %d tokens", c.args, n)
		}
	}
	s.close()
}

// TestWarningsOfLines: a line of an outdated note is never shown without the warning about it,
// however little fits.
func TestWarningsOfLines(t *testing.T) {
	for tokens := 60; tokens < 900; tokens += 40 {
		a := &scan.Answer{Lines: []string{}, Total: 40, Outdated: map[string]string{}}
		for i := range 10 {
			note := fmt.Sprintf(".cairn/notes/note%02d.md", i)
			for line := range 4 {
				a.Lines = append(a.Lines, fmt.Sprintf("%s:%d:mind the limit", note, line+1))
			}
			if i%2 == 0 {
				a.Outdated[note] = "outdated, docs/limits.md:3-5 changed"
			}
		}
		want := maps.Clone(a.Outdated)
		if err := fitLines(fit.Budget{Tokens: tokens, Count: (&bpe.Counter{}).CountTokens}, a); err != nil {
			t.Fatal(err)
		}
		shown := map[string]string{}
		for _, l := range a.Lines {
			if note := scan.Warned(want, l); note != "" {
				shown[note] = want[note]
			}
		}
		if !maps.Equal(shown, a.Outdated) {
			t.Errorf("%d tokens: %d lines with the warnings %v, want %v", tokens, len(a.Lines), a.Outdated, shown)
		}
		if text := a.Text(); len(shown) > 0 && !strings.Contains(text, "\nwarning: .cairn/notes/note00.md: outdated, docs/limits.md:3-5 changed\n") {
			t.Errorf("the text has no warning: %s", text)
		}
	}
}
