package store

import (
	"slices"
	"strings"
	"unicode"
)

// Fold maps two labels that are equal under strings.EqualFold to the same string:
// each rune becomes the least of its case orbit. Indexes fold the labels that
// Filter.Match compares.
func Fold(label string) string { return strings.Map(leastFold, label) }

// FoldAll returns the labels folded and sorted, each once.
func FoldAll(labels ...string) []string {
	folded := make([]string, len(labels))
	for i, l := range labels {
		folded[i] = Fold(l)
	}
	slices.Sort(folded)
	return slices.Compact(folded)
}

// leastFold returns the least rune of r's case orbit (unicode.SimpleFold).
func leastFold(r rune) rune {
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	return least
}
