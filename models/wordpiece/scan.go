package wordpiece

import "unicode/utf8"

// scan is the state of one pass over a text. It is allocated on the caller's stack.
type scan struct {
	dst  []int32
	keep bool // append ids to dst; otherwise only count
	room int  // number of pieces that are still allowed

	// The current word: its normalised bytes, their number of runes, and the
	// hash of the bytes as a whole vocabulary entry.
	word  [utf8.UTFMax * (maxWordRunes + 1)]byte
	n     int
	runes int
	hash  uint64
}

// run splits text into words and words into pieces until no room is left.
func (t *Tokenizer) run(s *scan, text string) {
	s.hash = seedWhole
	for i := 0; i < len(text) && s.room > 0; {
		b := t.ascii[text[i]]
		if b > actMaybeAdded {
			s.put(b)
			i++
			continue
		}
		act := uint16(b)
		size := 1
		var r rune
		if b >= actMultiByte {
			if b == actMaybeAdded {
				if a, ok := t.addedAt(text[i:]); ok {
					t.flush(s)
					s.emit(a.id)
					i += len(a.text)
					continue
				}
			}
			// An invalid byte decodes as U+FFFD, which is dropped.
			r, size = utf8.DecodeRuneInString(text[i:])
			act = t.norm.act(r)
		} else {
			r = rune(text[i])
		}
		i += size
		switch act {
		case actKeep:
			if t.norm.uncased {
				if jamo, n := hangul(r); n > 0 {
					for _, j := range jamo[:n] {
						s.putRune(j)
					}
					continue
				}
			}
			s.putRune(r)
		case actDrop:
		case actSpace:
			t.flush(s)
		case actAlone:
			t.flush(s)
			s.putRune(r)
			t.flush(s)
		default:
			f := t.norm.folds[act-actFold]
			if f.alone {
				t.flush(s)
			}
			for _, r := range f.text {
				s.putRune(r)
			}
			if f.alone {
				t.flush(s)
			}
		}
	}
	t.flush(s)
}

// put adds an ASCII byte to the word. If the word is too long, it only counts the rune.
func (s *scan) put(b byte) {
	s.runes++
	if s.runes > maxWordRunes {
		return
	}
	s.word[s.n] = b
	s.n++
	s.hash = mix(s.hash, b)
}

// putRune adds a rune to the word.
func (s *scan) putRune(r rune) {
	s.runes++
	if s.runes > maxWordRunes {
		return
	}
	n := s.n + utf8.EncodeRune(s.word[s.n:], r)
	for _, b := range s.word[s.n:n] {
		s.hash = mix(s.hash, b)
	}
	s.n = n
}

func (s *scan) emit(id int32) {
	if s.room <= 0 {
		return
	}
	s.room--
	if s.keep {
		s.dst = append(s.dst, id)
	}
}

// flush ends the word and emits its pieces: the word itself if it is in the vocabulary,
// otherwise its longest prefix in the vocabulary, then the longest continuation, and so
// on. A word that cannot be split this way is one unknown piece.
func (t *Tokenizer) flush(s *scan) {
	if s.runes == 0 {
		return
	}
	word, hash, runes := s.word[:s.n], s.hash, s.runes
	s.n, s.runes, s.hash = 0, 0, seedWhole
	if runes > t.wordRunes {
		s.emit(t.unk)
		return
	}
	if len(word) <= t.words.longest {
		if id, ok := t.words.find(hash, word); ok {
			s.emit(id)
			return
		}
	}
	var ids [maxWordRunes]int32
	n := 0
	for seed := seedWhole; len(word) > 0; seed = seedContinued {
		id, size := t.words.longestPrefix(seed, word)
		if size == 0 {
			s.emit(t.unk)
			return
		}
		// A piece has at least one rune, so there are at most wordRunes pieces.
		ids[n] = id
		n++
		word = word[size:]
	}
	for _, id := range ids[:n] {
		s.emit(id)
	}
}
