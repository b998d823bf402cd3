package store

import (
	"slices"
	"strings"
	"unicode"
)

// Fold replaces each rune of a label by the smallest rune of its case orbit. Two labels
// have the same Fold if strings.EqualFold reports them as equal. Indexes store folded
// labels, so that they match as in Filter.Match.
func Fold(label string) string { return strings.Map(leastFold, label) }

// FoldAll returns the folded labels, sorted and without repetitions.
func FoldAll(labels ...string) []string {
	folded := make([]string, len(labels))
	for i, l := range labels {
		folded[i] = Fold(l)
	}
	slices.Sort(folded)
	return slices.Compact(folded)
}

// leastFold returns the smallest rune of r's case orbit (unicode.SimpleFold).
func leastFold(r rune) rune {
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	return least
}
