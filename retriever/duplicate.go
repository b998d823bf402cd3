package retriever

import (
	"math/bits"
	"strings"

	"cairn/internal/store"
)

// Near-duplicates are sections with one heading whose fingerprints differ in
// at most nearBits of 64 (Manku, Jain and Das Sarma, WWW 2007) and whose
// lengths differ by at most a tenth. Shorter ones than nearBytes are left
// alone: a few words in common prove nothing.
const (
	nearBits  = 3
	nearBytes = 200
)

// original is a section that a later one may be a near-duplicate of.
type original struct {
	path, heading string
	fingerprint   uint64
	length        int // bytes of the own text
}

func newOriginal(doc *store.Document, n int) original {
	s := &doc.Sections[n]
	o := original{doc.Path, s.Heading, s.Fingerprint, s.OwnEnd - s.Start}
	if o.heading == "" {
		o.heading = doc.Title
	}
	return o
}

// near reports whether two sections say nearly the same.
func (o original) near(other original) bool {
	short, long := min(o.length, other.length), max(o.length, other.length)
	return short >= nearBytes && long-short <= long/10 &&
		o.fingerprint != 0 && bits.OnesCount64(o.fingerprint^other.fingerprint) <= nearBits &&
		strings.EqualFold(o.heading, other.heading)
}
