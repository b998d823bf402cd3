package secret

import (
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
