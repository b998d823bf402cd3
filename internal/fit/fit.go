// Package fit shortens answers until they fit into a budget of tokens. It decides
// nothing about what matters: the caller orders the parts.
package fit

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Budget bounds an answer.
type Budget struct {
	Tokens int                   // 0 is no bound
	Count  func(text string) int // the tokens of a text
}

// Part is something of an answer that may be shortened: the lines of a text, or the
// entries of a list.
type Part struct {
	// Units is how many lines or entries there are.
	Units int
	// Unit returns what unit i adds to the answer.
	Unit func(i int) any
	// Keep makes the answer hold the first n units and say where the rest is.
	Keep func(n int)
	// Half leaves half of what is left to the parts after this one.
	Half bool
	// Share gives all parts that have it an equal share of what is left before the
	// first of them gets more. They come last.
	Share bool
	// Absent, when not nil, reports that an earlier part left this one out.
	Absent func() bool

	text bool // units are pieces of one string
}

// Lines is the part that a text is. rest is called with the number of lines that are
// kept, or with All.
func Lines(text *string, rest func(kept int)) Part {
	lines := strings.SplitAfter(*text, "\n")
	return Part{
		text:  true,
		Units: len(lines),
		Unit:  func(i int) any { return lines[i] },
		Keep: func(n int) {
			if *text = strings.Join(lines[:n], ""); n == len(lines) {
				rest(All)
				return
			}
			*text = strings.TrimRight(*text, "\r\n")
			rest(n)
		},
	}
}

// All is the number of lines of a text that is kept as a whole.
const All = -1

// TooSmallError reports a budget that the answer exceeds with every part left out.
type TooSmallError struct{ Limit, Need int }

func (e *TooSmallError) Error() string {
	return fmt.Sprintf("max_tokens is %d, and this answer takes at least %d", e.Limit, e.Need)
}

// longestToken is more bytes than any token has, so that a text that is far too long
// need not be counted.
const longestToken = 128

// cost is the tokens of v as JSON; more than limit if it is far longer.
func (b Budget) cost(v any, limit int) int {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("marshalling %T: %v", v, err)) // unreachable: answers hold nothing that does not marshal
	}
	if len(text) > longestToken*max(limit, 1) {
		return limit + len(text)/longestToken
	}
	return b.Count(string(text))
}

// Fit shortens the parts of an answer, a pointer, until its JSON is within the budget.
// Parts are kept whole in their order, those with a Share last. The first that does not
// fit is cut, and those after it keep what still fits. It fails with a *TooSmallError.
func (b Budget) Fit(answer any, parts []Part) error {
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	// No token is shorter than a byte.
	if b.Tokens == 0 || len(text) <= b.Tokens || b.cost(answer, b.Tokens) <= b.Tokens {
		return nil
	}
	for _, p := range parts {
		p.Keep(0)
	}
	least := b.cost(answer, b.Tokens)
	if least > b.Tokens {
		return &TooSmallError{b.Tokens, least}
	}
	left := b.Tokens - least
	for range 4 { // the whole may take more tokens than the sum of its units
		b.spend(left, parts)
		over := b.cost(answer, b.Tokens) - b.Tokens
		if over <= 0 {
			return nil
		}
		left -= over + len(parts)
	}
	for _, p := range parts {
		p.Keep(0)
	}
	return nil
}

// spend gives the parts as many units as fit into left tokens.
func (b Budget) spend(left int, parts []Part) {
	var shared []Part
	for _, p := range parts {
		switch {
		case p.Absent != nil && p.Absent():
		case p.Share:
			shared = append(shared, p)
		default:
			budget := left
			if p.Half {
				budget /= 2
			}
			n, spent := b.take(p, 0, budget)
			left -= spent
			p.Keep(n)
		}
	}
	kept := make([]int, len(shared))
	for i, share := 0, left/max(1, len(shared)); i < len(shared); i++ {
		n, spent := b.take(shared[i], 0, share)
		kept[i], left = n, left-spent
	}
	for i, p := range shared {
		n, spent := b.take(p, kept[i], left)
		left -= spent
		p.Keep(n)
	}
}

// take returns how many units of p, of which it has n, fit when another budget tokens
// are spent, and how many tokens they take.
func (b Budget) take(p Part, n, budget int) (kept, spent int) {
	for ; n < p.Units; n++ {
		c := b.cost(p.Unit(n), budget-spent)
		if p.text {
			c -= 2 // the quotes, which the string has once
		} else {
			c++ // a comma
		}
		if spent+c > budget {
			break
		}
		spent += c
	}
	return n, spent
}
