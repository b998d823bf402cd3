package text

import "unicode"

// leastFold returns the least rune of r's case orbit (unicode.SimpleFold), the
// same for all runes that strings.EqualFold takes for equal.
func leastFold(r rune) rune {
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	return least
}
