// Package fit shortens answers until they fit into a budget of tokens. The caller orders
// the parts of an answer by importance.
package fit

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Budget is the maximum size of an answer.
type Budget struct {
	Tokens int                   // 0 means no limit
	Count  func(text string) int // counts the tokens of a text
}

// Part is a part of an answer that can be shortened: the lines of a text, or the entries
// of a list.
type Part struct {
	// Units is the number of lines or entries.
	Units int
	// Unit returns the content of unit i.
	Unit func(i int) any
	// Keep shortens the part to its first n units and notes in the answer where to read
	// the rest.
	Keep func(n int)
	// Half limits the part to half of the remaining budget.
	Half bool
	// Share divides the remaining budget equally among the parts with Share, before it
	// distributes the unused rest in order. These parts come last.
	Share bool
	// Absent, if not nil, reports that an earlier part removed this one.
	Absent func() bool

	text bool // units are pieces of one string
}

// Lines returns a part that consists of the lines of a text. Keep calls rest with the
// number of lines kept and the number of all lines.
func Lines(text *string, rest func(kept, all int)) Part {
	lines := strings.SplitAfter(*text, "\n")
	return Part{
		text:  true,
		Units: len(lines),
		Unit:  func(i int) any { return lines[i] },
		Keep: func(n int) {
			if *text = strings.Join(lines[:n], ""); n < len(lines) {
				*text = strings.TrimRight(*text, "\r\n")
			}
			rest(n, len(lines))
		},
	}
}

// Cut shortens a text to at most n bytes and an ellipsis, at a character boundary.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// TooSmallError reports a budget that the answer exceeds even without its parts.
type TooSmallError struct{ Limit, Need int }

func (e *TooSmallError) Error() string {
	return fmt.Sprintf("max_tokens is %d, and this answer takes at least %d", e.Limit, e.Need)
}

// longestToken is larger than the size of any token in bytes. A text longer than limit
// tokens of this size exceeds the limit, so cost does not count its tokens.
const longestToken = 128

// cost returns the number of tokens of v as JSON, or any number above limit if v is far
// longer.
func (b Budget) cost(v any, limit int) int {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("marshalling %T: %v", v, err)) // unreachable: all values of answers can be marshalled
	}
	if len(text) > longestToken*max(limit, 1) {
		return limit + len(text)/longestToken
	}
	return b.Count(string(text))
}

// Fit shortens the parts of an answer, a pointer, until its JSON is within the budget. It
// keeps parts whole in their order, those with Share last. It cuts the first part that
// does not fit, and keeps as many units of the later parts as still fit. The error is a
// *TooSmallError, or an error of encoding/json.
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
	for range 4 { // the answer may have more tokens than the sum of its units
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

// spend keeps as many units of the parts as fit into left tokens.
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

// take returns the number of units of p that can be kept if n are kept already and budget
// more tokens are available, and the number of tokens spent.
func (b Budget) take(p Part, n, budget int) (kept, spent int) {
	for ; n < p.Units; n++ {
		c := b.cost(p.Unit(n), budget-spent)
		if p.text {
			c -= 2 // the quotes, which occur only once around the string
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
