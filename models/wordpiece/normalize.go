package wordpiece

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// classes maps each code point to its class; a comment in the file describes the format.
// Package unicode cannot replace it, because BERT's ids depend on the old Unicode data of
// one library and must not change with the Go toolchain.
//
//go:embed classes.txt
var classes string

// The actions for a rune. An action of actFold or more replaces the rune by
// folds[act-actFold].
const (
	actKeep uint16 = iota
	actDrop
	actSpace
	actAlone // the rune is a separate word
	actFold
)

// actions are those of the classes, but for fold.
var actions = map[string]uint16{"drop": actDrop, "mark": actDrop, "space": actSpace, "alone": actAlone}

// The actions for a byte. Any other value is the byte that replaces it, which is above
// actMaybeAdded, such as a lower-case letter or a digit.
const (
	actMultiByte  byte = iota + byte(actFold) // part of a longer rune
	actMaybeAdded                             // an added token may begin here
)

const pageSize = 256

type page [pageSize]uint16

// fold is the replacement of a rune: UTF-8 text, a separate word or not.
type fold struct {
	text  string
	alone bool
}

// normalizer maps every rune to the action of the model's normaliser and pre-tokenizer.
// It is a table of pages, most of which are shared.
type normalizer struct {
	pages   [(utf8.MaxRune + 1) / pageSize]*page
	folds   []fold
	uncased bool
}

// newNormalizer expands classes.txt, which takes half a millisecond. If uncased is set,
// the normalizer strips accents and lowers letters.
func newNormalizer(uncased bool) (*normalizer, error) {
	n := &normalizer{uncased: uncased}
	uniform := map[uint16]*page{}
	for act := range actFold {
		p := new(page)
		for i := range p {
			p[i] = act
		}
		uniform[act] = p
	}
	for i := range n.pages {
		n.pages[i] = uniform[actKeep]
	}
	own := map[*page]bool{}
	set := func(first, last rune, act uint16) {
		for r := first; r <= last; {
			i := r / pageSize
			if r%pageSize == 0 && last-r >= pageSize-1 && act < actFold {
				n.pages[i] = uniform[act]
				r += pageSize
				continue
			}
			if !own[n.pages[i]] {
				p := *n.pages[i]
				n.pages[i] = &p
				own[&p] = true
			}
			n.pages[i][r%pageSize] = act
			r++
		}
	}
	for line := range strings.Lines(classes) {
		kind, args, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if kind == "#" || !uncased && (kind == "mark" || kind == "fold") {
			continue
		}
		head, tail, _ := strings.Cut(args, " ")
		first, err := hexRune(head)
		if err != nil {
			return nil, err
		}
		if kind == "fold" {
			var text []byte
			var alone bool
			for tail != "" {
				head, tail, _ = strings.Cut(tail, " ")
				to, err := hexRune(head)
				if err != nil {
					return nil, err
				}
				// In the file, all classes precede the folds.
				alone = alone || n.act(first) == actAlone || n.act(to) == actAlone
				text = utf8.AppendRune(text, to)
			}
			set(first, first, actFold+uint16(len(n.folds)))
			n.folds = append(n.folds, fold{string(text), alone})
			continue
		}
		last, err := hexRune(tail)
		if err != nil {
			return nil, err
		}
		act, ok := actions[kind]
		if !ok {
			return nil, fmt.Errorf("classes.txt: unknown class %q", kind)
		}
		set(first, last, act)
	}
	return n, nil
}

func hexRune(s string) (rune, error) {
	v, err := strconv.ParseUint(s, 16, 32)
	if err != nil || v > utf8.MaxRune {
		return 0, fmt.Errorf("classes.txt: %q is not a code point", s)
	}
	return rune(v), nil
}

// act returns the action for r, which must be a valid code point.
func (n *normalizer) act(r rune) uint16 { return n.pages[r/pageSize][r%pageSize] }

// bytes returns the action for each byte, or the byte that replaces it in a word.
func (n *normalizer) bytes() (table [256]byte) {
	for b := range table {
		switch act := n.act(rune(b)); {
		case b >= utf8.RuneSelf:
			table[b] = actMultiByte
		case act == actKeep:
			table[b] = byte(b)
		case act < actFold:
			table[b] = byte(act)
		default:
			table[b] = n.folds[act-actFold].text[0]
		}
	}
	return table
}

// hangul returns the decomposition of a Hangul syllable into n letters (Unicode 3.12,
// conjoining jamo behaviour); n is 0 if r is not a Hangul syllable.
func hangul(r rune) (jamo [3]rune, n int) {
	const first, last, vowels, tails = 0xAC00, 0xD7A3, 21, 28
	if r < first || r > last {
		return jamo, 0
	}
	i := r - first
	jamo = [3]rune{0x1100 + i/(vowels*tails), 0x1161 + i/tails%vowels, 0x11A7 + i%tails}
	if i%tails == 0 {
		return jamo, 2
	}
	return jamo, 3
}
