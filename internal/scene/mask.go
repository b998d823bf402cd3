package scene

import (
	"fmt"
	"regexp"
)

// Masks are patterns of secrets. Nil has the usual ones.
type Masks struct{ more []*regexp.Regexp }

// usual are the secrets that are always masked. What the first group matches
// stays, so that one sees what was there.
var usual = []*regexp.Regexp{
	regexp.MustCompile(`(-----BEGIN [A-Z ]*PRIVATE KEY-----)[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)`),
	regexp.MustCompile(`\b(eyJ)[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`), // JSON web tokens
	regexp.MustCompile(`\b(sk-)[A-Za-z0-9_-]{20,}`),
	regexp.MustCompile(`\b(gh[pousr]_)[A-Za-z0-9]{36,}`),
	regexp.MustCompile(`\b(github_pat_)[A-Za-z0-9_]{22,}`),
	regexp.MustCompile(`\b(AKIA)[0-9A-Z]{16}\b`),
	regexp.MustCompile(`\b(xox[baprs]-)[A-Za-z0-9-]{8,}`),
	// A URL with credentials: the user stays, the password goes.
	regexp.MustCompile(`\b([a-z][a-z0-9+.-]*://[^\s/:@"'<>]*:)[^\s/@"'<>]+(?:@)`),
}

// NewMasks adds regular expressions to the usual ones.
func NewMasks(patterns ...string) (*Masks, error) {
	m := &Masks{}
	for _, p := range patterns {
		re, err := regexp.Compile(p)
		if err != nil {
			return nil, fmt.Errorf("pattern of a secret %q: %w", p, err)
		}
		m.more = append(m.more, re)
	}
	return m, nil
}

// Mask replaces secrets by what they begin with and three stars, and returns
// how many there were.
func (m *Masks) Mask(text string) (string, int) {
	n := 0
	for i, re := range usual {
		text = re.ReplaceAllStringFunc(text, func(s string) string {
			n++
			kept := re.FindStringSubmatch(s)[1] + "***"
			if i == len(usual)-1 {
				kept += "@"
			}
			return kept
		})
	}
	if m != nil {
		for _, re := range m.more {
			text = re.ReplaceAllStringFunc(text, func(s string) string {
				if s == "" {
					return s
				}
				n++
				return "***"
			})
		}
	}
	return text, n
}
