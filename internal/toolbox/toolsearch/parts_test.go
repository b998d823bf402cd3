package toolsearch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"cairn/internal/base/testutil"
	"cairn/models"
)

// partsBy returns the parts of an intent by the built-in reader.
func partsBy(t *testing.T, intent string) []Part {
	t.Helper()
	parts, p, err := New(nil, Options{Reader: testutil.Tagger}).Parts(t.Context(), intent)
	if err != nil || !(p > 0 && p <= 1) {
		t.Fatalf("%q: probability %v, %v", intent, p, err)
	}
	return parts
}

// TestPartsWithoutReader: an intent is one part without a reader, or if it fails, and the end of
// the caller's context is an error.
func TestPartsWithoutReader(t *testing.T) {
	const intent = "fork the repository and push files"
	for name, open := range map[string]func() (models.Reader, error){
		"none": nil, "damaged": func() (models.Reader, error) { return nil, errors.New("damaged") },
		"failing": func() (models.Reader, error) { return brokenReader{}, nil },
	} {
		if parts, p, err := New(nil, Options{Reader: open}).Parts(t.Context(), intent); len(parts) != 1 || parts[0].Text != intent || p != 1 || err != nil {
			t.Errorf("%s: %+v, %v, %v", name, parts, p, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if parts, _, err := New(nil, Options{Reader: testutil.Tagger}).Parts(ctx, intent); err == nil {
		t.Errorf("cancelled: %+v", parts)
	}
}

type brokenReader struct{ models.Reader }

func (brokenReader) Tag(context.Context, [][]string) ([]models.Tag, float64, error) {
	return nil, 0, errors.New("broken")
}

// TestSimpleIntentIsNotRead: only an intent that may have several parts opens the reader.
func TestSimpleIntentIsNotRead(t *testing.T) {
	for intent, want := range map[string]bool{
		"": false, "open a pull request": false, "open a pull request.": false, "fork the repo & star it": true, "fork the repo, star it": true,
		"fork it and star it": true, "open it once it is built": true, "open it\nstar it": true, "look up issue 42 - close it": true,
	} {
		opened := false
		x := New(nil, Options{Reader: func() (models.Reader, error) { opened = true; return nil, errors.New("closed") }})
		if _, _, err := x.Parts(t.Context(), intent); err != nil || opened != want {
			t.Errorf("%q: opened %v, want %v; %v", intent, opened, want, err)
		}
	}
}

// TestSearchWhileSplitting: the search for the whole intent does not wait for the reader.
func TestSearchWhileSplitting(t *testing.T) {
	x := newIndex(t, shop(t), nil)
	synctest.Test(t, func(t *testing.T) {
		m := &meeting{Embedder: x.options.Embedder, intent: "find the order and cancel it", embedded: make(chan struct{})}
		x.options.Embedder, x.options.Reader = m, func() (models.Reader, error) { return m, nil }
		if r, err := x.Rank(t.Context(), m.intent, Terms{}); err != nil || r.Split != .5 || len(r.Candidates) == 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// TestReaderAnswersOnce: the reader reads the same intent and the same pairs once, but again after
// it gave fewer logits than pairs.
func TestReaderAnswersOnce(t *testing.T) {
	x, r := newIndex(t, shop(t), nil), &counting{has: 1}
	x.options.Reader = func() (models.Reader, error) { return r, nil }
	const intent = "find the order and cancel it"
	ask := func(x *Index, tagged, read, logits int) {
		t.Helper()
		parts, p, err := x.Parts(t.Context(), intent)
		if err != nil || p != .5 || len(parts) != 1 {
			t.Errorf("%+v, %v, %v", parts, p, err)
		}
		if got := x.Pairs(t.Context(), intent, "", []string{"s:login", "s:checkout"}); len(got) != logits || r.tagged != tagged || r.read != read {
			t.Errorf("%v, tagged %d times, read %d times; want %d, %d, %d", got, r.tagged, r.read, logits, tagged, read)
		}
	}
	ask(x, 1, 1, 0)
	r.has = 2
	ask(x, 1, 2, 2)
	ask(x.WithUsage(nil), 1, 2, 2)
	ask(x.Uncached(x.options.Embedder), 2, 3, 2)
}

// TestLongIntent: the reader tags the first words of an intent, and the last part has the others.
func TestLongIntent(t *testing.T) {
	intent := "fork the repository and push " + strings.Repeat("files ", maxTagged) + "now"
	if parts := partsBy(t, intent); len(parts) < 2 || parts[len(parts)-1].End != len(intent) {
		t.Errorf("%d parts, the last ends at %d of %d", len(parts), parts[len(parts)-1].End, len(intent))
	}
}

// TestClauses: the pieces of past intents are about the parts.
func TestClauses(t *testing.T) {
	for intent, want := range map[string][]string{
		"":          nil,
		"and then,": nil,
		"Fork the repo, create a branch and then push it.\nTell Ann": {"Fork the repo", "create a branch", "push it", "Tell Ann"},
		"read a.b and c.d": {"read a.b", "c.d"},
	} {
		if got := clauses(intent); !slices.Equal(got, want) {
			t.Errorf("clauses(%q) = %q, want %q", intent, got, want)
		}
	}
	if n := len(clauses(strings.Repeat("push it, ", 40))); n != maxParts {
		t.Errorf("%d clauses, want %d", n, maxParts)
	}
}

func TestParts(t *testing.T) {
	for _, c := range []struct {
		intent string
		want   []string
	}{
		{"", nil},
		{" \n ", nil},
		{"list files", []string{"list files"}},
		{"Book a flight to Rome and send the ticket to Ann.", []string{"Book a flight to Rome", "send the ticket to Ann"}},
		{"Find a good hotel, then rent a small car. Send the bill to my boss!", []string{"Find a good hotel", "rent a small car", "Send the bill to my boss"}},
		{"salt and pepper", []string{"salt and pepper"}}, // too short to split
		{"read the config file\nprint its first line", []string{"read the config file", "print its first line"}},
		{"version 1.2.3 of it all", []string{"version 1.2.3 of it all"}},
		{"fork a repository, create a branch and push files", []string{"fork a repository", "create a branch", "push files"}},
		{"fork a repository, then create a branch, then push some files", []string{"fork a repository", "create a branch", "push some files"}},
		{"1. fork a repository\n2) create a branch", []string{"fork a repository", "create a branch"}},
		{"search, add to cart, then checkout the cart", []string{"search", "add to cart", "checkout the cart"}},
		{"create the file after creating the folder", []string{"create the file", "creating the folder"}},
		{"meet me after the lunch on Friday", []string{"meet me after the lunch on Friday"}},
		{"write 'list a, then delete b and c' to a file", []string{"write 'list a, then delete b and c' to a file"}},
		{`"Fork a repository. Then push some files."`, []string{"Fork a repository", "push some files"}},
		{`"fork a repository and push files"`, []string{"fork a repository", "push files"}},
		{"set the title, name and order number", []string{"set the title, name and order number"}},
		// A statement belongs to the request that it explains, in the same sentence.
		{"E-77 was 48.20 and not 42.80, fix it", []string{"E-77 was 48.20 and not 42.80, fix it"}},
		{"if the lot is full, book the garage and tell Ann", []string{"book the garage", "tell Ann"}},
		{"My laptop was stolen. Block the card", []string{"My laptop was stolen", "Block the card"}},
		// "and" between values, and before a verb and a value.
		{"load jan.json, feb.json and mar.json into the table", []string{"load jan.json, feb.json and mar.json into the table"}},
		{"clear the stale lock, tag T-205 as done", []string{"clear the stale lock", "tag T-205 as done"}},
	} {
		var got []string
		for _, p := range partsBy(t, c.intent) {
			got = append(got, p.Text)
			if c.intent[p.Start:p.End] != p.Text {
				t.Errorf("%q: part %q stands at %q", c.intent, p.Text, c.intent[p.Start:p.End])
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("Parts(%q) = %q, want %q", c.intent, got, c.want)
		}
	}
	if p := partsBy(t, "My card was stolen last night. Block it, and order a new card."); len(p) != 3 || !p[0].Statement || p[1].Statement || p[2].Statement {
		t.Errorf("%+v, want a statement and two requests", p)
	}
	if n := len(partsBy(t, strings.Repeat("Fork the repository, then push the files. ", 40))); n != maxParts {
		t.Errorf("%d parts, want %d", n, maxParts)
	}
}

// TestPartsStateOrder: what an intent says of the order of its parts, as
// "later>earlier word".
// TestVerbsWithOneObject: each verb has the object of the last one.
func TestVerbsWithOneObject(t *testing.T) {
	for intent, want := range map[string][]string{
		"fork and star the repository":                            {"fork the repository", "star the repository"},
		"list and close stale issues":                             {"list stale issues", "close stale issues"},
		"review, approve and merge the pull request":              {"review the pull request", "approve the pull request", "merge the pull request"},
		"run the tests, then commit and push the changes":         {"run the tests", "commit the changes", "push the changes"},
		"clone the repository and deploy it":                      {"clone the repository", "deploy it"},
		"list the notes of the week, including the old ones":      {"list the notes of the week, including the old ones"},
		"search, add to cart, then checkout the cart with a card": {"search", "add to cart", "checkout the cart with a card"},
	} {
		var got []string
		for _, p := range partsBy(t, intent) {
			got = append(got, p.Text)
			if !strings.HasPrefix(p.Text, intent[p.Start:p.End]) || p.Start >= p.End {
				t.Errorf("%q: part %q stands at %q", intent, p.Text, intent[p.Start:p.End])
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("Parts(%q) = %q, want %q", intent, got, want)
		}
	}
}

func TestPartsStateOrder(t *testing.T) {
	for intent, want := range map[string]string{
		"fork a repository, then create a branch, then push some files": "1>0 then, 2>1 then",
		"fork a repository, create a branch and push files":             "",
		"after creating a branch, push the files":                       "1>0 after",
		"push the files after creating a branch":                        "0>1 after",
		"run the tests before deploying the app":                        "1>0 before",
		"before deploying the app, run the tests":                       "0>1 before",
		"1. fork a repository\n2. create a branch\n3. push files":       "1>0 2., 2>1 3.",
		"Find a hotel in Rome. Finally, send the address to Ann":        "1>0 finally",
		"list the open issues and after that close the oldest one":      "1>0 after that",
		"once the build is done, send a mail. Then log out now":         "1>0 then",
	} {
		var got []string
		for n, p := range partsBy(t, intent) {
			for _, earlier := range p.After {
				got = append(got, fmt.Sprintf("%d>%d %s", n, earlier, p.Says))
			}
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%q: %q, want %q", intent, got, want)
		}
	}
	parts := partsBy(t, "read config.json and open an issue about it")
	if len(parts) != 2 || parts[1].Refers != "it" {
		t.Errorf("%+v, want a second part that refers to the first", parts)
	}
}

func FuzzParts(f *testing.F) {
	f.Add("a and b, then c. d\ne")
	f.Add("“x” and \xff then")
	f.Fuzz(func(t *testing.T, s string) {
		last := 0
		for _, p := range partsBy(t, s) {
			if p.Start < last || p.End <= p.Start || s[p.Start:p.End] != p.Text {
				t.Fatalf("%q: part [%d, %d) %q after %d", s, p.Start, p.End, p.Text, last)
			}
			last = p.End
		}
		Words(s)
		plain(s)
	})
}

func TestWords(t *testing.T) {
	for name, want := range map[string]string{
		"listUserIDs": "list user ids", "read_file": "read file", "readCoreV1NamespacedPod": "read core v1 namespaced pod", "HTTPServer": "http server",
		"git-log": "git log", "": "", "fetch": "fetch", "größeÄndern": "größe ändern",
	} {
		if got := strings.Join(Words(name), " "); got != want {
			t.Errorf("Words(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestPlain(t *testing.T) {
	for s, want := range map[string]string{`say "hi" -loud`: "say  hi  loud", "a-b": "a-b", "--x": "x"} {
		if got := plain(s); got != want {
			t.Errorf("plain(%q) = %q, want %q", s, got, want)
		}
	}
}

func TestVerbOf(t *testing.T) {
	for part, want := range map[string]string{"please list the open issues": "list", "Then I want to delete the issue": "delete", "searching for papers": "search", "run it": "run", "": ""} {
		if got := VerbOf(part); got != want {
			t.Errorf("VerbOf(%q) = %q, want %q", part, got, want)
		}
	}
}
