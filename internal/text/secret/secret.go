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
	"strings"
)

// Masks are patterns of secrets, besides the common ones. A nil *Masks masks nothing.
type Masks struct{ patterns []*regexp.Regexp }

// kind is a kind of secret that is masked by default. It is not a regular expression, since
// those take tens of nanoseconds a byte and memory for each match of a large hostile text.
type kind struct {
	literal string // in each secret
	// bounds returns the part of a secret that is replaced, from the place of its literal; what
	// tells its kind stays. If the literal is in no secret, both are the place from which to go
	// on, so that no byte is read more than a few times.
	bounds func(text []byte, at int) (from, to int)
}

// common are the secrets that are masked by default. TestKinds has the expression of each.
var common = slices.Concat(
	[]kind{{"-----B", privateKey}, {"eyJ", webToken}},
	words(isKey, 20, "sk-"),
	words(isAlnum, 36, "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
	words(isWord, 22, "github_pat_"),
	[]kind{{"AKIA", accessKey}},
	words(func(c byte) bool { return isAlnum(c) || c == '-' }, 8, "xoxb-", "xoxa-", "xoxp-", "xoxr-", "xoxs-"),
	[]kind{{"://", password}},
)

// byLast are the indexes of the kinds by the last byte of their literals, and lasts these bytes.
var byLast, lasts = func() (by [256][]int, lasts [256]bool) {
	for n, k := range common {
		last := k.literal[len(k.literal)-1]
		by[last], lasts[last] = append(by[last], n), true
	}
	return by, lasts
}()

// literals returns the kinds whose literals are in a text, a bit for each.
func literals(text []byte) (found uint32) {
	for i, c := range text {
		if !lasts[c] {
			continue
		}
		for _, n := range byLast[c] {
			literal := common[n].literal
			if from := i + 1 - len(literal); from >= 0 && text[i-1] == literal[len(literal)-2] && string(text[from:i+1]) == literal {
				found |= 1 << n
			}
		}
	}
	return found
}

// New returns Masks for the common secrets and the given patterns, which are regular
// expressions in the syntax of package regexp.
func New(patterns ...string) (*Masks, error) {
	m := &Masks{}
	for _, p := range patterns {
		re, err := regexp.Compile(p)
		if err != nil {
			return nil, fmt.Errorf("pattern of a secret %q: %w", p, err)
		}
		m.patterns = append(m.patterns, re)
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
	for _, k := range common {
		fmt.Fprintf(sum, "%q", k.literal)
	}
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
	stars := func(secret []byte) []byte {
		n++
		return append([]byte("***"), bytes.Repeat([]byte("\n"), bytes.Count(secret, []byte("\n")))...)
	}
	found := literals(text)
	for i, k := range common {
		if found>>i&1 == 0 {
			continue
		}
		var masked []byte
		literal, end := []byte(k.literal), 0 // end of the last secret
		for i := 0; ; {
			at := bytes.Index(text[i:], literal)
			if at < 0 {
				break
			}
			from, to := k.bounds(text, i+at)
			if i = to; from == to {
				continue
			}
			if masked == nil {
				masked = make([]byte, 0, len(text))
			}
			masked = append(append(masked, text[end:from]...), stars(text[from:to])...)
			end = to
		}
		if end > 0 {
			text = append(masked, text[end:]...)
		}
	}
	for _, p := range m.patterns {
		before := n
		masked := p.ReplaceAllFunc(text, func(secret []byte) []byte {
			if len(secret) == 0 {
				return nil
			}
			return stars(secret)
		})
		if n > before {
			text = masked
		}
	}
	return text, n
}

func isAlnum(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' }
func isWord(c byte) bool  { return isAlnum(c) || c == '_' }
func isKey(c byte) bool   { return isWord(c) || c == '-' }

// begins reports whether a word can begin at a place.
func begins(text []byte, at int) bool { return at == 0 || !isWord(text[at-1]) }

// run returns the end of the bytes of a class from a place on.
func run(text []byte, at int, in func(byte) bool) int {
	for at < len(text) && in(text[at]) {
		at++
	}
	return at
}

// words returns kinds of secrets that begin with a literal and go on with at least least bytes
// of a class.
func words(in func(byte) bool, least int, literals ...string) []kind {
	var kinds []kind
	for _, literal := range literals {
		kinds = append(kinds, kind{literal, func(text []byte, at int) (from, to int) {
			from = at + len(literal)
			if !begins(text, at) {
				return from, from
			}
			if to = run(text, from, in); to-from < least {
				return from, from
			}
			return from, to
		}})
	}
	return kinds
}

// accessKey: the ID of an access key of AWS is AKIA and 16 capitals and digits.
func accessKey(text []byte, at int) (from, to int) {
	from = at + len("AKIA")
	to = run(text, from, isWord)
	if !begins(text, at) || to-from != 16 || bytes.ContainsFunc(text[from:to], func(r rune) bool { return r == '_' || r >= 'a' }) {
		return to, to
	}
	return from, to
}

// webToken: a JSON web token is three runs of Base64 with dots between them.
func webToken(text []byte, at int) (from, to int) {
	from = at + len("eyJ")
	first := run(text, from, isKey)
	if !begins(text, at) || first-from < 8 {
		return from, from
	}
	to = first
	for range 2 {
		next := run(text, min(to+1, len(text)), isKey)
		if to == len(text) || text[to] != '.' || next-to <= 8 {
			return first, first // no other token begins in the first run
		}
		to = next
	}
	return from, to
}

// privateKey: a key in PEM or of OpenPGP without an end goes to the end of the text.
func privateKey(text []byte, at int) (from, to int) {
	title := func(at int) (end int, ok bool) {
		end = run(text, at, func(c byte) bool { return c == ' ' || 'A' <= c && c <= 'Z' })
		ok = bytes.HasSuffix(bytes.TrimSuffix(text[at:end], []byte(" BLOCK")), []byte("PRIVATE KEY")) && bytes.HasPrefix(text[end:], []byte("-----"))
		return end, ok
	}
	const begin = "-----BEGIN "
	if !bytes.HasPrefix(text[at:], []byte(begin)) {
		return at + 1, at + 1
	}
	end, ok := title(at + len(begin))
	if !ok {
		return end, end
	}
	from = end + len("-----")
	for to = from; ; to = end {
		next := bytes.Index(text[to:], []byte("-----END "))
		if next < 0 {
			return from, len(text)
		}
		if end, ok = title(to + next + len("-----END ")); ok {
			return from, end + len("-----")
		}
	}
}

func inScheme(c byte) bool {
	return isAlnum(c) && (c <= '9' || c >= 'a') || strings.IndexByte("+.-", c) >= 0
}

// password: the password of a URL is between the name of the user and the host.
func password(text []byte, at int) (from, to int) {
	scheme := at
	for scheme > 0 && inScheme(text[scheme-1]) {
		scheme--
	}
	for scheme < at && !('a' <= text[scheme] && begins(text, scheme)) {
		scheme++
	}
	outside := func(c byte) bool { return strings.IndexByte(" \t\n\f\r/@\"'<>", c) < 0 }
	after := at + len("://")
	from = run(text, after, func(c byte) bool { return c != ':' && outside(c) })
	if scheme == at || from == len(text) || text[from] != ':' {
		return from, from
	}
	from++
	if to = run(text, from, outside); to == from || to == len(text) || text[to] != '@' {
		return to - 1, to - 1 // the colon may be that of another URL
	}
	return from, to
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
