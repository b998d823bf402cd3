package scene

import (
	"fmt"
	"regexp"
)

// Masks are patterns of secrets. A nil *Masks has only the common ones.
type Masks struct{ extra []*regexp.Regexp }

// common are the secrets that are always masked. The first group stays, so that a
// reader sees what kind of secret it was.
var common = []*regexp.Regexp{
	regexp.MustCompile(`(-----BEGIN [A-Z ]*PRIVATE KEY-----)[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)`),
	regexp.MustCompile(`\b(eyJ)[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`), // JSON web tokens
	regexp.MustCompile(`\b(sk-)[A-Za-z0-9_-]{20,}`),
	regexp.MustCompile(`\b(gh[pousr]_)[A-Za-z0-9]{36,}`),
	regexp.MustCompile(`\b(github_pat_)[A-Za-z0-9_]{22,}`),
	regexp.MustCompile(`\b(AKIA)[0-9A-Z]{16}\b`),
	regexp.MustCompile(`\b(xox[baprs]-)[A-Za-z0-9-]{8,}`),
	// The password of a URL.
	regexp.MustCompile(`\b([a-z][a-z0-9+.-]*://[^\s/:@"'<>]*:)[^\s/@"'<>]+(?:@)`),
}

// NewMasks returns the common patterns and those given.
func NewMasks(patterns ...string) (*Masks, error) {
	m := &Masks{}
	for _, p := range patterns {
		re, err := regexp.Compile(p)
		if err != nil {
			return nil, fmt.Errorf("pattern of a secret %q: %w", p, err)
		}
		m.extra = append(m.extra, re)
	}
	return m, nil
}

// Mask replaces each secret by its beginning and three stars, and returns the
// number of secrets.
func (m *Masks) Mask(text string) (string, int) {
	n := 0
	for i, re := range common {
		text = re.ReplaceAllStringFunc(text, func(s string) string {
			n++
			kept := re.FindStringSubmatch(s)[1] + "***"
			if i == len(common)-1 {
				kept += "@"
			}
			return kept
		})
	}
	if m != nil {
		for _, re := range m.extra {
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
