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
	dir   string // the folder of the file, relative to the root: "" or a path that ends in "/"
	up    string // for a file above the root: the path from its folder to the root, with a final "/"
	rules automaton
}

// rule is one pattern. Git documents the format in gitignore(5).
type rule struct {
	negate  bool
	dirOnly bool
	states  []state
}

const (
	// maxIgnoreFile bounds the size of an ignore file in bytes. A larger one is ignored.
	maxIgnoreFile = 1 << 20
	// maxStates bounds the states of all rules that apply to one folder, and with them
	// the time of a match. A rule has about one state for each of its characters. The
	// ignore files of large repositories have less than 20,000.
	maxStates = 1 << 16
)

// ruleSets are the rule sets that apply to one folder, outermost first.
type ruleSets []*ruleSet

// with returns the sets together with the rules of one more file. cut reports that the
// rules exceed maxStates; the last ones have no effect.
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
		if len(set.rules.classes)+len(r.states) > room {
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

// CheckPattern returns an error if a line would have no effect in an ignore file.
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
	line = strings.TrimPrefix(line, "/")
	r.states = parseGlob(line)
	return r, r.states != nil && line != "" && line != "**/"
}

// trimTrailingBlanks removes trailing blanks that are not quoted by a backslash.
func trimTrailingBlanks(line string) string {
	trimmed := strings.TrimRight(line, " ")
	if quotes := len(trimmed) - len(strings.TrimRight(trimmed, `\`)); quotes%2 == 1 && len(trimmed) < len(line) {
		trimmed += " "
	}
	return trimmed
}

// automaton is the nondeterministic automaton of a list of rules. match simulates it with
// one bit for each state (Shift-And: Baeza-Yates and Gonnet, "A New Approach to Text
// Searching", CACM 1992). So the time of a match is proportional to the length of the path
// times the number of words, whatever the rules are. A character of a state's class enters
// it from the state before. The states of a rule are consecutive; the last accepts.
type automaton struct {
	classes []class // by state
	words   []word  // sets of states, 64 in a word
	now     []uint64
	ascii   [128][]uint64     // sets of the states that a character enters, computed when needed
	other   map[rune][]uint64 // the same for other characters
}

// state is a state of an automaton.
type state struct {
	class class
	flags uint8 // a bit for each set that has the state
}

// The sets of states.
const (
	setStart   = iota // active before the first character
	setStay           // stays active over any character but a slash
	setDeep           // stays active over a slash
	setSkip           // activates the next state as well when it is entered
	setLast           // is the last state of a rule
	setDirOnly        // the last state of a rule that only matches folders
	setNegate         // the last state of a rule that begins with "!"
	allSets
)

// word holds 64 states of each set.
type word [allSets]uint64

// maxOther bounds the entries of automaton.other.
const maxOther = 256

// add adds the states of a rule.
func (a *automaton) add(r rule) {
	end := &r.states[len(r.states)-1]
	end.flags |= 1 << setLast
	if r.dirOnly {
		end.flags |= 1 << setDirOnly
	}
	if r.negate {
		end.flags |= 1 << setNegate
	}
	for _, s := range r.states {
		n := len(a.classes)
		a.classes = append(a.classes, s.class)
		if n%64 == 0 {
			a.words = append(a.words, word{})
			a.now = append(a.now, 0)
		}
		for set := range allSets {
			a.words[n/64][set] |= uint64(s.flags>>set&1) << (n % 64)
		}
	}
}

// into returns the set of states that character r enters.
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

// match returns the effect of the last rule that matches: 1 to ignore the path, -1 to keep
// it, 0 if no rule matches.
func (a *automaton) match(path string, isDir bool) int {
	for w := range a.words {
		a.now[w] = a.words[w][setStart]
	}
	for _, r := range path {
		in := a.into(r)
		var carry, jump uint64 // bits of the word before
		for w := range a.words {
			k, active := &a.words[w], a.now[w]
			entered := (active<<1 | carry) & in[w]
			carry = active >> 63
			stay := k[setStay]
			if r == '/' {
				stay = k[setDeep]
			}
			skipped := entered & k[setSkip]
			a.now[w] = entered | skipped<<1 | jump | active&stay
			jump = skipped >> 63
		}
	}
	for w := len(a.words) - 1; w >= 0; w-- {
		k := &a.words[w]
		hits := a.now[w] & k[setLast]
		if !isDir {
			hits &^= k[setDirOnly]
		}
		if hits == 0 {
			continue
		}
		if k[setNegate]>>(bits.Len64(hits)-1)&1 == 1 {
			return -1
		}
		return 1
	}
	return 0
}

// match returns the effect of the innermost set with a matching rule, as automaton.match
// does. path is relative to the root.
func (all ruleSets) match(path string, isDir bool) int {
	for _, s := range slices.Backward(all) {
		if m := s.rules.match(s.up+path[len(s.dir):], isDir); m != 0 {
			return m
		}
	}
	return 0
}
