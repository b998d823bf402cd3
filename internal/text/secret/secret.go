// Package secret masks keys, tokens and passwords in text. Package walk decides which
// files may be read.
package secret

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

// Masks are patterns of secrets. A nil *Masks masks nothing.
type Masks struct{ patterns []pattern }

// pattern is one kind of secret.
type pattern struct {
	*regexp.Regexp
	// may reports quickly whether a text can match, so that Mask does not search most
	// texts. It is nil except for the common patterns. Mask keeps the groups at the start
	// and the end of a common pattern, so that the kind of the secret stays visible.
	may func(text []byte) bool
}

// common are the secrets that are masked by default.
var common = []pattern{
	{regexp.MustCompile(`(-----BEGIN [A-Z ]*PRIVATE KEY-----)[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)`), contains("PRIVATE KEY-----")},
	{regexp.MustCompile(`\b(eyJ)[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`), contains("eyJ")}, // JSON web tokens
	{regexp.MustCompile(`\b(sk-)[A-Za-z0-9_-]{20,}`), contains("sk-")},
	{regexp.MustCompile(`\b(gh[pousr]_)[A-Za-z0-9]{36,}`), contains("ghp_", "gho_", "ghu_", "ghs_", "ghr_")},
	{regexp.MustCompile(`\b(github_pat_)[A-Za-z0-9_]{22,}`), contains("github_pat_")},
	{regexp.MustCompile(`\b(AKIA)[0-9A-Z]{16}\b`), contains("AKIA")},
	{regexp.MustCompile(`\b(xox[baprs]-)[A-Za-z0-9-]{8,}`), contains("xox")},
	{regexp.MustCompile(`\b([a-z][a-z0-9+.-]*://[^\s/:@"'<>]*:)[^\s/@"'<>]+(@)`), hasUser}, // the password of a URL
}

// New returns Masks for the common secrets and the given patterns, which are regular
// expressions in the syntax of package regexp.
func New(patterns ...string) (*Masks, error) {
	m := &Masks{patterns: common[:len(common):len(common)]}
	for _, p := range patterns {
		re, err := regexp.Compile(p)
		if err != nil {
			return nil, fmt.Errorf("pattern of a secret %q: %w", p, err)
		}
		m.patterns = append(m.patterns, pattern{Regexp: re})
	}
	return m, nil
}

// Rules returns a hash of the patterns. Masks with equal Rules mask a text in the same
// way.
func (m *Masks) Rules() string {
	if m == nil {
		return "none"
	}
	sum := sha256.New()
	for _, p := range m.patterns {
		fmt.Fprintf(sum, "%q", p.String())
	}
	return hex.EncodeToString(sum.Sum(nil)[:4])
}

// Mask replaces each secret in text by three stars, and returns the result and the number
// of secrets. It keeps the line breaks of a secret, so that line numbers do not change. It
// returns text itself if there are no secrets.
func (m *Masks) Mask(text []byte) ([]byte, int) {
	n := 0
	if m == nil {
		return text, 0
	}
	for _, p := range m.patterns {
		if p.may != nil && !p.may(text) {
			continue
		}
		var masked []byte
		end := 0 // of the last match
		for _, at := range p.FindAllSubmatchIndex(text, -1) {
			if at[0] == at[1] {
				continue
			}
			n++
			from, to := at[0], at[1]
			if p.may != nil {
				from = at[3]
				if len(at) > 4 {
					to = at[4]
				}
			}
			masked = append(append(masked, text[end:from]...), "***"...)
			masked = append(masked, bytes.Repeat([]byte("\n"), bytes.Count(text[from:to], []byte("\n")))...)
			end = to
		}
		if end > 0 {
			text = append(masked, text[end:]...)
		}
	}
	return text, n
}

// contains returns a function that reports whether a text contains one of the literals.
func contains(literals ...string) func(text []byte) bool {
	return func(text []byte) bool {
		return slices.ContainsFunc(literals, func(l string) bool { return bytes.Contains(text, []byte(l)) })
	}
}

// hasUser reports whether a URL in text has user information before its host. Many texts
// contain URLs, but few of the URLs do.
func hasUser(text []byte) bool {
	for {
		_, rest, ok := bytes.Cut(text, []byte("://"))
		if !ok {
			return false
		}
		host := rest
		if end := bytes.IndexAny(rest, " \t\r\n/'\"<>"); end >= 0 {
			host = rest[:end]
		}
		if bytes.IndexByte(host, '@') >= 0 {
			return true
		}
		text = rest
	}
}

// named matches the names of arguments whose values are secrets.
var named = regexp.MustCompile(`(?i)(pass(word|phrase|wd)|secret|token|api_?-?key|authorization|credential|private_?-?key|cookie)`)

// Arguments returns arguments as JSON, with secrets masked: those that Mask finds, and the
// texts under names such as "password".
func (m *Masks) Arguments(arguments map[string]any) json.RawMessage {
	masked, _ := json.Marshal(m.argument(arguments, false)) // never fails: the values were JSON
	return masked
}

// argument masks the texts in a value; all of them if hide is set.
func (m *Masks) argument(v any, hide bool) any {
	switch v := v.(type) {
	case string:
		if hide {
			return "***"
		}
		text, _ := m.Mask([]byte(v))
		return string(text)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = m.argument(v[i], hide)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for name := range v {
			object[name] = m.argument(v[name], hide || named.MatchString(name))
		}
		return object
	}
	return v
}
