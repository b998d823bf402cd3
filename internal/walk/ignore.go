package walk

import (
	"bytes"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// ruleSet holds the rules of one .gitignore or .cairnignore file. It is not safe for
// concurrent use.
type ruleSet struct {
	dir   string // the folder of the file, relative to the root the walk began in, "" or ending in "/"
	up    string // for a file above the root: the path from its folder to the root, ending in "/"
	rules automaton
}

// rule is one pattern. Git documents the format in gitignore(5).
type rule struct {
	negate  bool
	dirOnly bool
	glob    []token
}

const (
	// maxIgnoreFile is the size in bytes beyond which an ignore file is not read.
	maxIgnoreFile = 1 << 20
	// maxStates bounds the states of all rules that apply to one folder, about one for
	// each of their characters, and so the time that one path takes. The ignore files of
	// large repositories have less than 20,000.
	maxStates = 1 << 16
)

// ruleSets are the rule sets that apply to one folder, outermost first.
type ruleSets []*ruleSet

// with returns the sets and the rules of one more file. cut reports that it has more
// rules than there are states for; those beyond have no effect.
func (all ruleSets) with(src []byte, dir, up string) (_ ruleSets, cut bool) {
	room := maxStates
	for _, set := range all {
		room -= len(set.rules.classes)
	}
	set := &ruleSet{dir: dir, up: up}
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	for line := range bytes.SplitSeq(src, []byte("\n")) {
		r, ok := parseRule(string(bytes.TrimSuffix(line, []byte("\r"))))
		if !ok {
			continue
		}
		if len(set.rules.classes)+1+len(r.glob) > room {
			cut = true
			break
		}
		set.rules.add(r)
	}
	if len(set.rules.classes) > 0 {
		all = append(all, set)
	}
	return all, cut
}

// CheckPattern reports why a line would have no effect in an ignore file; nil
// when it has one.
func CheckPattern(pattern string) error {
	if _, ok := parseRule(pattern); !ok || strings.Contains(pattern, "\n") {
		return fmt.Errorf("ignore pattern %q, want one line in the syntax of .gitignore, such as \"drafts/\" or \"*.tmp.md\"", pattern)
	}
	return nil
}

func parseRule(line string) (r rule, ok bool) {
	line = trimTrailingBlanks(line)
	if line == "" || line[0] == '#' {
		return r, false
	}
	if line[0] == '!' {
		r.negate = true
		line = line[1:]
	}
	if strings.HasSuffix(line, "/") && !strings.HasSuffix(line, `\/`) {
		r.dirOnly = true
		line = line[:len(line)-1]
	}
	if !strings.Contains(line, "/") { // a name, at any depth
		line = "**/" + line
	}
	r.glob, ok = parseGlob(strings.TrimPrefix(line, "/"))
	return r, ok && len(r.glob) > 0 && line != "**/"
}

// trimTrailingBlanks removes blanks at the end that no backslash quotes.
func trimTrailingBlanks(line string) string {
	for strings.HasSuffix(line, " ") {
		quotes := 0
		for i := len(line) - 2; i >= 0 && line[i] == '\\'; i-- {
			quotes++
		}
		if quotes%2 == 1 {
			break
		}
		line = line[:len(line)-1]
	}
	return line
}

// automaton is the nondeterministic automaton of a list of rules. It is simulated with
// one bit for each state (Shift-And: Baeza-Yates and Gonnet, "A New Approach to Text
// Searching", CACM 1992), so that a path costs its length times the words, whatever the
// rules are. A state is entered from the one before it by a character of its class. The
// states of a rule follow each other; the last one accepts.
type automaton struct {
	classes []class // by state
	words   []word  // sets of states, 64 a word
	now     []uint64
	ascii   [128][]uint64     // states by the character that enters them, made when needed
	other   map[rune][]uint64 // for all other characters
}

// word is a part of several sets of states.
type word struct {
	start uint64 // active before the first character
	stay  uint64 // stays active over any character but a slash
	deep  uint64 // stays active over a slash
	skip  uint64 // activates the next state as well when it is entered
	last  uint64 // of a rule
	// For the last states: of a rule that only matches folders, and of one that begins with "!".
	dirOnly, negate uint64
}

// maxOther bounds the characters outside of ASCII whose states are kept.
const maxOther = 256

// state adds a state and returns its word and bit.
func (a *automaton) state(c class) (w int, bit uint64) {
	n := len(a.classes)
	a.classes = append(a.classes, c)
	if n%64 == 0 {
		a.words = append(a.words, word{})
		a.now = append(a.now, 0)
	}
	return n / 64, 1 << (n % 64)
}

func (a *automaton) add(r rule) {
	w, bit := a.state(class{never: true})
	a.words[w].start |= bit
	for i, t := range r.glob {
		switch t.op {
		case oneOf:
			w, bit = a.state(t.class)
		case star:
			a.words[w].stay |= bit
		case folders:
			a.words[w].stay |= bit
			a.words[w].deep |= bit
			a.words[w].skip |= bit
			w, bit = a.state(class{one: '/'})
			if i == 0 {
				a.words[w].start |= bit
			}
		case rest:
			w, bit = a.state(class{set: true, negate: true})
			a.words[w].stay |= bit
			a.words[w].deep |= bit
		}
	}
	k := &a.words[w]
	k.last |= bit
	if r.dirOnly {
		k.dirOnly |= bit
	}
	if r.negate {
		k.negate |= bit
	}
}

// into returns the states that character r enters.
func (a *automaton) into(r rune) []uint64 {
	if r < rune(len(a.ascii)) && a.ascii[r] != nil {
		return a.ascii[r]
	} else if in, ok := a.other[r]; ok {
		return in
	}
	in := make([]uint64, len(a.words))
	for i := range a.classes {
		if a.classes[i].has(r) {
			in[i/64] |= 1 << (i % 64)
		}
	}
	if r < rune(len(a.ascii)) {
		a.ascii[r] = in
		return in
	}
	if a.other == nil || len(a.other) >= maxOther {
		a.other = map[rune][]uint64{}
	}
	a.other[r] = in
	return in
}

// match returns what the last rule that fits says: ignore (1), keep (-1), or
// nothing (0).
func (a *automaton) match(path string, isDir bool) int {
	for w := range a.words {
		a.now[w] = a.words[w].start
	}
	for _, r := range path {
		in := a.into(r)
		var carry, jump uint64 // from the word before
		for w := range a.words {
			k, active := &a.words[w], a.now[w]
			entered := (active<<1 | carry) & in[w]
			carry = active >> 63
			stay := k.stay
			if r == '/' {
				stay = k.deep
			}
			skipped := entered & k.skip
			a.now[w] = entered | skipped<<1 | jump | active&stay
			jump = skipped >> 63
		}
	}
	for w := len(a.words) - 1; w >= 0; w-- {
		k := &a.words[w]
		hits := a.now[w] & k.last
		if !isDir {
			hits &^= k.dirOnly
		}
		if hits == 0 {
			continue
		}
		if k.negate>>(bits.Len64(hits)-1)&1 == 1 {
			return -1
		}
		return 1
	}
	return 0
}

// match asks the sets from the innermost out; the first answer holds. path is relative
// to the root.
func (all ruleSets) match(path string, isDir bool) int {
	for _, s := range slices.Backward(all) {
		if m := s.rules.match(s.up+path[len(s.dir):], isDir); m != 0 {
			return m
		}
	}
	return 0
}
