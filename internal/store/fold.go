package store

import (
	"strings"
	"unicode"
)

// Fold returns label so that two labels which strings.EqualFold takes for the
// same are the same string: each rune becomes the least of its case orbit. It
// is how an index keeps what Filter.Match compares.
func Fold(label string) string { return strings.Map(leastFold, label) }

// leastFold returns the least rune of r's case orbit (unicode.SimpleFold), the
// same for all runes that strings.EqualFold takes for equal.
func leastFold(r rune) rune {
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	return least
}
