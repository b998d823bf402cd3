package toolsearch

import (
	"slices"
	"strings"
	"testing"
)

func TestParts(t *testing.T) {
	for _, c := range []struct {
		intent string
		want   []string
	}{
		{"", nil},
		{" \n ", nil},
		{"list files", []string{"list files"}},
		{"Book a flight to Rome and send the ticket to Ann.", []string{"Book a flight to Rome", "send the ticket to Ann"}},
		{"Find a good hotel, then rent a small car. Tell my boss about it!", []string{"Find a good hotel", "rent a small car", "Tell my boss about it"}},
		{"salt and pepper", []string{"salt and pepper"}}, // too short to split
		{"read the config file\nprint its first line", []string{"read the config file", "print its first line"}},
		{"version 1.2.3 of it all", []string{"version 1.2.3 of it all"}},
	} {
		var got []string
		for _, p := range Parts(c.intent) {
			got = append(got, p.Text)
			if c.intent[p.Start:p.End] != p.Text {
				t.Errorf("%q: part %q stands at %q", c.intent, p.Text, c.intent[p.Start:p.End])
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("Parts(%q) = %q, want %q", c.intent, got, c.want)
		}
	}
	if n := len(Parts(strings.Repeat("do this one thing. ", 40))); n != maxParts {
		t.Errorf("%d parts, want %d", n, maxParts)
	}
}

func FuzzParts(f *testing.F) {
	f.Add("a and b, then c. d\ne")
	f.Add("“x” and \xff then")
	f.Fuzz(func(t *testing.T, s string) {
		last := 0
		for _, p := range Parts(s) {
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
