package support

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cairn/models/minilm"
)

const rotation = `## What not to do

- Do not share one token between two clients: you could not revoke one without the other.
- Keep the old token for 14 days after the new one works everywhere, then delete it.
- Ann Miller signs every request of the gateway.
- The gateway makes its backup at night.`

// TestCheck: statements of the text are supported, and differences are reported.
func TestCheck(t *testing.T) {
	e, err := minilm.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, c := range []struct {
		answer    string
		supported bool
		problem   string
	}{
		{"The old token is kept for 14 days after the new one works everywhere.", true, ""},
		{"Ann Miller signs the gateway's requests.", true, ""},
		{"Two clients do not share one token.", true, ""},
		{"Do not share one token between two clients [1][doc:access/Rotate-99.md#what-not-to-do].", true, ""},
		{"Bananas are yellow.", false, "the text does not say so"},
		{"asdf qwer zxcv uiop", false, "the text does not say so"},
		{"Peter Pan and Captain Hook.", false, "Captain is not in the text"},
		{"The old token is kept for 30 days after the new one works everywhere.", false, "the number 30 is not in the text"},
		{"The old token is kept for 14 hours after the new one works everywhere.", false, "the text has 14 days, not hours"},
		{"The gateway makes its backup in the morning.", false, "the text says the opposite: The gateway makes its backup at night"},
		{"The gateway makes its backup at night.", true, ""},
		{"Every request of the gateway is signed by Bob Stone.", false, "Bob is not in the text"},
		{"Share one token between two clients.", false, "the text says the opposite: Do not share one token"},
	} {
		r, err := Check(t.Context(), e, "What about tokens?", c.answer, []Source{{"Tokens", rotation}})
		if err != nil || len(r.Sentences) != 1 {
			t.Fatalf("%q: %+v, %v", c.answer, r, err)
		}
		s := r.Sentences[0]
		named := c.problem == "" || slices.ContainsFunc(s.Problems, func(p string) bool { return strings.HasPrefix(p, c.problem) })
		if s.Supported != c.supported || !named {
			t.Errorf("%q: %+v, want supported %v, %q", c.answer, s, c.supported, c.problem)
		}
	}
	r, err := Check(t.Context(), e, "", "The old token is kept for 14 days. Bananas are yellow.", []Source{{"Tokens", rotation}})
	if err != nil || len(r.Sentences) != 2 || len(r.Unsupported()) != 1 || r.Unsupported()[0].Text != "Bananas are yellow." {
		t.Errorf("a mixed answer: %+v, %v", r, err)
	}
	for _, answer := range []string{"", "?!", "the of"} {
		if r, err := Check(t.Context(), e, "", answer, nil); err != nil || len(r.Unsupported()) != len(r.Sentences) {
			t.Errorf("%q without a source: %+v, %v", answer, r, err)
		}
	}
}

func TestSentences(t *testing.T) {
	for text, want := range map[string][]string{
		"One. Two! Three? four.":                {"One.", "Two!", "Three? four."},
		"See e.g. Fig. 3 for v1.2. Then go on.": {"See e.g. Fig. 3 for v1.2.", "Then go on."},
		"Short line\nAnother\n\nEnd":            {"Short line", "Another", "End"},
		"A line that is long enough to have been wrapped by its editor at\nsome column. Next.": {"A line that is long enough to have been wrapped by its editor at some column.", "Next."},
		"日本語。そうです。": {"日本語。", "そうです。"},
		"":          nil,
	} {
		if diff := cmp.Diff(want, sentences(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestNumbers(t *testing.T) {
	for text, want := range map[string]string{"1,000 of 1000": "1000", "5.0 and 5": "5", "v1.2.3": "1.2.3", "007": "7", "10GB 0": "0 10", "none": ""} {
		var got []string
		for n := range numbersOf(text) {
			got = append(got, n)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %v, want %s", text, got, want)
		}
	}
}

// FuzzCheck: no text makes the comparison fail.
func FuzzCheck(f *testing.F) {
	f.Add("The answer is 42.", rotation)
	f.Add("n't. not", "’ not never 1,,,2.. \xff")
	f.Fuzz(func(t *testing.T, answer, source string) {
		r, err := Check(t.Context(), nil, answer, answer, []Source{{source, source}})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range r.Sentences {
			if !(s.Support >= 0 && s.Support <= 1) {
				t.Errorf("%q: %+v", answer, s)
			}
		}
	})
}
