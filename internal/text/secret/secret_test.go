package secret

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

func TestMask(t *testing.T) {
	m, err := New(`internal-[0-9]+`)
	if err != nil {
		t.Fatal(err)
	}
	key := strings.Repeat("a1B2", 10)
	for _, c := range []struct{ text, want string }{
		{"key sk-" + key, "key sk-***"},
		{"key sk-proj-" + key, "key sk-***"},
		{"ghp_" + key[:36] + ".", "ghp_***."},
		{"AKIAABCDEFGHIJKLMNOP", "AKIA***"},
		{"xoxb-123456789-abc", "xoxb-***"},
		{"postgres://user:pass@host:5432/db", "postgres://user:***@host:5432/db"},
		{"redis://:secret@h/0", "redis://:***@h/0"},
		{"-----BEGIN RSA PRIVATE KEY-----\nabc\ndef\n-----END RSA PRIVATE KEY-----\nafter", "-----BEGIN RSA PRIVATE KEY-----***\n\n\n\nafter"},
		{"-----BEGIN PRIVATE KEY-----\ncut off", "-----BEGIN PRIVATE KEY-----***\n"},
		{"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nabc\n-----END PGP PRIVATE KEY BLOCK-----\nafter", "-----BEGIN PGP PRIVATE KEY BLOCK-----***\n\n\n\nafter"},
		{"eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeK", "eyJ***"},
		{"internal-77", "***"},
		{"a ghp_" + key[:36] + " b AKIAABCDEFGHIJKLMNOP c", "a ghp_*** b AKIA*** c"},
		{"sk-short, AKIA, https://host/path, user@host, mailto:a@b", "sk-short, AKIA, https://host/path, user@host, mailto:a@b"},
		{"http://host:80/a@b", "http://host:80/a@b"},
	} {
		got, n := m.Mask([]byte(c.text))
		if string(got) != c.want || (n > 0) != (c.text != c.want) {
			t.Errorf("Mask(%q) = %q, %d, want %q", c.text, got, n, c.want)
		}
	}
	if _, err := New("("); err == nil {
		t.Error("a pattern that is none was taken")
	}
	if got, _ := (*Masks)(nil).Mask([]byte("ghp_" + key[:36])); string(got) != "ghp_"+key[:36] {
		t.Errorf("no masks: %q", got)
	}
}

// kinds are the expressions of the common secrets. The groups at the start and the end stay.
var kinds = []string{
	`(-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----)[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\z)`,
	`\b(eyJ)[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`,
	`\b(sk-)[A-Za-z0-9_-]{20,}`,
	`\b(gh[pousr]_)[A-Za-z0-9]{36,}`,
	`\b(github_pat_)[A-Za-z0-9_]{22,}`,
	`\b(AKIA)[0-9A-Z]{16}\b`,
	`\b(xox[baprs]-)[A-Za-z0-9-]{8,}`,
	`\b([a-z][a-z0-9+.-]*://[^\s/:@"'<>]*:)[^\s/@"'<>]+(@)`,
}

// TestKinds masks random texts and compares with the expressions.
func TestKinds(t *testing.T) {
	parts := strings.Split("A B |-----BEGIN |PRIVATE KEY| BLOCK|-----|\n|-----END |-|eyJ|abcdefgh|.|eyJ|abcdefgh| |xoxb-|xox|-|abcdefgh|sk-|0123456789|_|ghp_|0123456789|ghx_|0123456789|github_pat_| |gh|AKIA|ABCDEFGH| |.|1|_|AKIA|a+|://|b|:|@|b|://|Z|b|://|é|@|:|/| |\xff|://|'|a", "|")
	rng := rand.New(rand.NewPCG(7, 8))
	masked := map[string]int{}
	for range 200_000 {
		var b strings.Builder
		few := 2 + rng.IntN(3) // different parts
		from := rng.IntN(len(parts) - few)
		for range rng.IntN(16) {
			b.WriteString(parts[from+rng.IntN(few)])
		}
		text := []byte(b.String())
		want := text
		for _, expr := range kinds {
			var out []byte
			end := 0
			for _, at := range expressions[expr].FindAllSubmatchIndex(want, -1) {
				from, to := at[3], at[1]
				if len(at) > 4 {
					to = at[4]
				}
				if from == to {
					continue // nothing to hide
				}
				masked[expr]++
				out = append(append(append(out, want[end:from]...), "***"...), strings.Repeat("\n", bytes.Count(want[from:to], []byte("\n")))...)
				end = to
			}
			want = append(out, want[end:]...)
		}
		if got, _ := (&Masks{}).Mask(text); !bytes.Equal(got, want) {
			t.Fatalf("Mask(%q) = %q, want %q", text, got, want)
		}
	}
	for _, expr := range kinds {
		if masked[expr] < 40 {
			t.Errorf("%s: %d secrets: the test shows little", expr, masked[expr])
		}
	}
}

var expressions = func() map[string]*regexp.Regexp {
	m := map[string]*regexp.Regexp{}
	for _, expr := range kinds {
		m[expr] = regexp.MustCompile(expr)
	}
	return m
}()

// TestHostile masks texts of tokens that are a secret, or nearly one. It takes memory for the
// text, not for each secret.
func TestHostile(t *testing.T) {
	for _, token := range []string{"eyJ ", "-eyJ", "sk-", "-----BEGIN ", "-----BEGIN PRIVATE KEY----- -----END ", "a://:b@", "a://b", "AKIA", "xoxb-aaaaaaaa "} {
		text := bytes.Repeat([]byte(token), 1<<20/len(token))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, secrets := (&Masks{}).Mask(text)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 5<<20 {
			t.Errorf("%q: %d bytes for 1 MiB with %d secrets", token, n, secrets)
		}
	}
}
