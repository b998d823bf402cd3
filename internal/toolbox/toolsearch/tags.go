package toolsearch

import (
	_ "embed"
	"encoding/binary"
	"math"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Tag is the role of a word in an intent.
type Tag uint8

// The roles of words.
const (
	Begins  Tag = iota // the first word of a part
	Within             // a further word of a part
	Outside            // in no part: "and then", a reason, a greeting
	Tags    = 3
)

// The weights are those of a linear-chain conditional random field (Lafferty, McCallum and Pereira,
// "Conditional Random Fields", ICML 2001). The score of the tags of an intent is the sum of the
// weights of the features of each word for its tag, of each tag after the one before, and of the
// first tag. The functions below return the place of a weight among all.

// StartWeight returns the place of the weight of the first tag.
func StartWeight(t Tag) int { return int(t) * (Tags + 1) }

// AfterWeight returns the place of the weight of tag b after tag a.
func AfterWeight(a, b Tag) int { return StartWeight(a) + 1 + int(b) }

// FeatureWeight returns the place of the weight of a feature for a tag. Features are numbered from
// 0 in the order of their hashes.
func FeatureWeight(feature int, t Tag) int { return Tags*(Tags+1) + feature*Tags + int(t) }

// PossibleTag reports whether a word can have tag b after a word with tag a. The first word of an
// intent follows one outside.
func PossibleTag(a, b Tag) bool { return a != Outside || b != Within }

// TagUnit is the unit of the weights in tags.weights, which are signed bytes.
const TagUnit = 1.0 / 16

// tags.weights has the weights of the tags, and for each feature its hash and three weights. It is
// written by `cairn bench parts`.
//
//go:embed tags.weights
var storedTags []byte

// headSize and entrySize are the bytes of the weights of the tags, and of a feature.
const (
	headSize  = Tags * (Tags + 1)
	entrySize = 4 + Tags
)

// storedWeight returns a weight of tags.weights.
func storedWeight(at int) float64 {
	if at >= headSize {
		feature, tag := (at-headSize)/Tags, (at-headSize)%Tags
		at = headSize + feature*entrySize + 4 + tag
	}
	return float64(int8(storedTags[at])) * TagUnit
}

// storedFeatures returns the numbers of the features that tags.weights has, by word.
func storedFeatures(hashes [][]uint32) [][]int {
	hash := func(n int) uint32 { return binary.LittleEndian.Uint32(storedTags[headSize+n*entrySize:]) }
	entries := (len(storedTags) - headSize) / entrySize
	features := make([][]int, len(hashes))
	for i, list := range hashes {
		for _, h := range list {
			if n := sort.Search(entries, func(n int) bool { return hash(n) >= h }); n < entries && hash(n) == h {
				features[i] = append(features[i], n)
			}
		}
	}
	return features
}

// TagFile returns the bytes of tags.weights. hashes are those of the features in ascending order.
func TagFile(hashes []uint32, weights []float64) []byte {
	var b []byte
	add := func(list []float64) {
		for _, w := range list {
			b = append(b, byte(int8(math.Round(max(-127, min(127, w/TagUnit))))))
		}
	}
	add(weights[:headSize])
	for n, h := range hashes {
		b = binary.LittleEndian.AppendUint32(b, h)
		add(weights[FeatureWeight(n, 0):FeatureWeight(n+1, 0)])
	}
	return b
}

// BestTags returns the tags with the highest score by Viterbi's algorithm, and their probability.
// weight returns the weight at a place.
func BestTags(features [][]int, weight func(at int) float64) (tags []Tag, probability float64) {
	type state struct {
		score, all float64 // of the best tags up to the word, and the logarithm of the sum of all
		from       Tag
	}
	lattice := make([][Tags]state, len(features))
	for i, list := range features {
		for b := Tag(0); b < Tags; b++ {
			best := state{score: math.Inf(-1), all: math.Inf(-1)}
			for a := Tag(0); a < Tags; a++ {
				if i == 0 && a != Outside || !PossibleTag(a, b) {
					continue
				}
				var before state
				at := StartWeight(b)
				if i > 0 {
					before, at = lattice[i-1][a], AfterWeight(a, b)
				}
				w := weight(at)
				if best.all = logSum(best.all, before.all+w); before.score+w > best.score {
					best.score, best.from = before.score+w, a
				}
			}
			for _, f := range list {
				w := weight(FeatureWeight(f, b))
				best.score, best.all = best.score+w, best.all+w
			}
			lattice[i][b] = best
		}
	}
	tags = make([]Tag, len(features))
	last, all := Outside, math.Inf(-1)
	for i := len(tags) - 1; i >= 0; i-- {
		if i == len(tags)-1 {
			for t, s := range lattice[i] {
				if all = logSum(all, s.all); s.score > lattice[i][last].score {
					last = Tag(t)
				}
			}
			probability = math.Exp(lattice[i][last].score - all)
		}
		tags[i] = last
		last = lattice[i][last].from
	}
	return tags, probability
}

// logSum returns the logarithm of the sum of two numbers that are given by their logarithms.
func logSum(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(b, -1) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}

// tagWord is a word with what its features depend on.
type tagWord struct {
	text, end string // in lower case without punctuation, and its last three letters
	shape     string // such as "d" with digits, "U" with a capital first, "f" for names of files
	mark      string // the punctuation mark after it, "n" at the end of a line
	verb      string // "v" for a verb, "g" for one in -ing
	quoted    bool
}

// maxFillers bounds the words such as "please" before the first verb of a clause.
const maxFillers = 8

// TagFeatures returns the hashes of the features of each word of an intent, and the words' places
// as byte offsets, half-open.
func TagFeatures(intent string) (hashes [][]uint32, places [][2]int) {
	words := fields(intent)
	for _, w := range words {
		places = append(places, [2]int{w.at, w.at + len(w.text)})
	}
	return tagFeatures(intent, words), places
}

func tagFeatures(intent string, list []field) (hashes [][]uint32) {
	quoted := quotedWords(intent, list)
	words := make([]tagWord, len(list))
	for i, f := range list {
		w := &words[i]
		w.text, w.shape, w.mark, w.quoted = bare(f.text), shape(f.text), mark(f.text), quoted[i]
		w.end = w.text[max(0, len(w.text)-3):]
		if v, ok := verbForms[w.text]; ok && v == w.text {
			w.verb = "v"
		} else if ok {
			w.verb = "g"
		}
		if i > 0 && words[i-1].mark == "" && strings.Contains(intent[list[i-1].at+len(list[i-1].text):f.at], "\n") {
			words[i-1].mark = "n"
		}
	}
	first, next := make([]int, len(words)), make([]int, len(words)) // of the words without a mark between them
	for i := range words {
		if i > 0 && words[i-1].mark == "" {
			first[i] = first[i-1]
		} else {
			first[i] = i
		}
	}
	for i := len(words) - 1; i >= 0; i-- {
		if next[i] = i; i+1 < len(words) && words[i].mark == "" {
			next[i] = next[i+1]
		}
	}
	none := tagWord{text: "^", end: "^", shape: "^", mark: "^"}
	at := func(i int) *tagWord {
		if i < 0 || i >= len(words) {
			return &none
		}
		return &words[i]
	}
	count := func(n int) string { return string(rune('0' + min(n, 4))) }
	for i := range words {
		w, a, b, aa, bb := &words[i], at(i-1), at(i+1), at(i-2), at(i+2)
		p, left, right := a.mark, i-first[i], next[i]-i
		lead := "" // of the words before without a mark between them, whether the first begins a request
		for k := first[i]; k < min(i, first[i]+maxFillers); k++ {
			if !slices.Contains(fillers, words[k].text) {
				lead = words[k].verb + "."
				if slices.Contains(questions, words[k].text) {
					lead = "q."
				}
				break
			}
		}
		quotes := []byte("000")
		for k, o := range []*tagWord{a, w, b} {
			if o.quoted {
				quotes[k] = '1'
			}
		}
		var features []uint32
		for kind, values := range [...][4]string{{w.text}, {a.text}, {b.text}, {bb.text}, {aa.text}, {p}, {w.mark}, {w.shape}, {a.shape}, {b.shape}, {w.end}, {b.end},
			{p, w.text}, {a.text, w.text}, {w.text, b.text}, {p, w.shape, b.shape}, {p, b.text}, {a.shape, w.shape, a.text}, {p, a.text}, {aa.mark, a.text, w.shape},
			{w.verb}, {p, w.verb}, {a.text, w.verb}, {w.verb, b.shape, p}, {w.verb, b.text}, {a.text, b.verb}, {w.text, b.verb}, {p, a.text, w.verb},
			{string(quotes)}, {count(left)}, {count(right)}, {count(min(right, 3)), words[next[i]].mark}, {count(min(left, 1)), words[first[i]].text}, {p, at(next[i] + 1).text}, {count(min(i, 2))},
			{lead, a.text, w.verb}, {lead, p, w.verb, b.shape}, {a.text, b.text}, {lead, w.verb, count(left)}} {
			features = append(features, hashOf(kind, values))
		}
		hashes = append(hashes, features)
	}
	return hashes
}

// hashOf hashes a feature (FNV-1a).
func hashOf(kind int, values [4]string) uint32 {
	h := (2166136261 ^ uint32(kind)) * 16777619
	for _, v := range values {
		for i := range len(v) {
			h = (h ^ uint32(v[i])) * 16777619
		}
		h = (h ^ 0xff) * 16777619
	}
	return h
}

// shape describes the form of a word.
func shape(word string) string {
	inner := strings.TrimFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if inner == "" {
		return "p"
	}
	s := ""
	if strings.ContainsFunc(word, unicode.IsDigit) {
		s += "d"
	}
	if strings.ContainsAny(strings.TrimRight(word, ".,;:!?"), "./_@#\\") {
		s += "f"
	}
	if r, _ := utf8.DecodeRuneInString(strings.TrimLeft(word, "\"'“(")); unicode.IsUpper(r) {
		s += "U"
	}
	if strings.ContainsAny(inner, "'’") {
		s += "a"
	}
	return s
}

// mark returns the punctuation mark at the end of a word, before quotes and parentheses.
func mark(word string) string {
	if abbreviations[strings.ToLower(word)] || listNumber(word) {
		return ""
	}
	word = strings.TrimRight(word, "\"'”’)")
	r, size := utf8.DecodeLastRuneInString(word)
	if !strings.ContainsRune(".,;:!?—–-", r) {
		return ""
	}
	return word[len(word)-size:]
}
