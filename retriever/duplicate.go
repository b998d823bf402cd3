package retriever

import (
	"cmp"
	"math/bits"
	"strings"

	"cairn/internal/store"
)

// Near-duplicates are sections with the same heading whose fingerprints differ in
// at most nearBits of 64 bits (Manku, Jain and Das Sarma, WWW 2007) and whose lengths
// differ by at most a tenth. Sections shorter than nearBytes are never duplicates,
// because a few words in common prove nothing.
const (
	nearBits  = 3
	nearBytes = 200
)

// Fingerprint holds the properties of a section that Near compares.
type Fingerprint struct {
	heading string
	simhash uint64
	length  int // bytes of the own text
}

// NewFingerprint returns the fingerprint of section n of a document.
func NewFingerprint(doc *store.Document, n int) Fingerprint {
	s := &doc.Sections[n]
	f := Fingerprint{s.Heading, s.Fingerprint, s.OwnEnd - s.Start}
	f.heading = cmp.Or(f.heading, doc.Title)
	return f
}

// Near reports whether two sections have nearly the same text.
func (f Fingerprint) Near(other Fingerprint) bool {
	short, long := min(f.length, other.length), max(f.length, other.length)
	return short >= nearBytes && long-short <= long/10 &&
		f.simhash != 0 && bits.OnesCount64(f.simhash^other.simhash) <= nearBits &&
		strings.EqualFold(f.heading, other.heading)
}
