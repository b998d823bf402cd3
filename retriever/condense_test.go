package retriever

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestPastedTrace checks that a stack trace of 4,000 characters finds the page about the
// only line that occurs in the folder.
func TestPastedTrace(t *testing.T) {
	f := open(t, map[string]string{
		"tls.md":  "# Certificates\n\nThe handshake fails with x509: certificate signed by unknown authority until the bundle is mounted.\n",
		"main.md": "# Main\n\nThe program starts in main and runs the server.\n",
		"run.md":  "# Run\n\nThe server runs in a goroutine.\n",
	}, nil)
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, "goroutine %d [running]: main.(*server).run(0xc%06x) /srv/app/main.go:%d\n", i, i*7919, i)
	}
	b.WriteString("tls: handshake failed: x509: certificate signed by unknown authority\n")
	for i := range 10 {
		fmt.Fprintf(&b, "created by \"main.run\" -in goroutine %d\n", i)
	}
	if n := utf8.RuneCountInString(b.String()); n <= condensedQuery || n > MaxQuery {
		t.Fatalf("the trace has %d characters", n)
	}
	a, err := f.Search(t.Context(), Query{Text: b.String(), Mode: Keyword})
	if err != nil || len(a.Results) == 0 || a.Results[0].Path != "tls.md" {
		t.Fatalf("%v, %+v, want tls.md first", err, a)
	}
	if !strings.Contains(a.Searched, "x509: certificate signed by unknown authority") || utf8.RuneCountInString(a.Searched) > condensedQuery {
		t.Errorf("searched for %q", a.Searched)
	}
	if a, err = f.Search(t.Context(), Query{Text: strings.Repeat("zqx ", 900), Mode: Keyword}); err != nil || len(a.Results) != 0 || utf8.RuneCountInString(a.Searched) != condensedQuery {
		t.Errorf("a text without a known word: %v, %+v", err, a)
	}
}

// TestLongQueryIsText: quotes and dashes in pasted text require and exclude nothing.
func TestLongQueryIsText(t *testing.T) {
	f := open(t, map[string]string{"a.md": "# Alpha\n\nThe alpha page.\n"}, nil)
	text := `alpha -page "no such phrase" ` + strings.Repeat("word ", 50)
	if a, err := f.Search(t.Context(), Query{Text: text, Mode: Keyword}); err != nil || len(a.Results) != 1 || a.Searched != "" {
		t.Errorf("%v, %+v, want a.md and no other text searched for", err, a)
	}
}
