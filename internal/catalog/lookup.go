package catalog

import (
	"fmt"
	"slices"
	"strings"
)

// maxCandidates bounds the names in an error of Lookup.
const maxCandidates = 8

// UnknownError reports a name that no tool has. Nearest are the ids of tools with
// similar names, the nearest first; it may be empty.
type UnknownError struct {
	Name    string
	Nearest []string
	// Empty is true when the catalogue has no tools.
	Empty bool
}

func (e *UnknownError) Error() string {
	if e.Empty {
		return fmt.Sprintf("no tool %q: the catalogue is empty, import tools with `cairn tools import`", e.Name)
	}
	if len(e.Nearest) == 0 {
		return fmt.Sprintf("no tool %q in the catalogue; find it with `cairn tools search` or `cairn tools list`", e.Name)
	}
	return fmt.Sprintf("no tool %q in the catalogue; similar: %s", e.Name, strings.Join(e.Nearest, ", "))
}

// AmbiguousError reports a name that tools of several servers have. Candidates are
// their ids, sorted.
type AmbiguousError struct {
	Name       string
	Candidates []string
}

func (e *AmbiguousError) Error() string {
	list := e.Candidates[:min(len(e.Candidates), maxCandidates)]
	text := fmt.Sprintf("%d tools are called %q: %s", len(e.Candidates), e.Name, strings.Join(list, ", "))
	if len(list) < len(e.Candidates) {
		text += ", …"
	}
	return text
}

// Lookup finds a tool by its id, or by its name alone if only one server has a tool of
// that name. The error is *UnknownError for no tool and *AmbiguousError for several.
func (c *Catalog) Lookup(name string) (Tool, error) {
	s, err := c.snapshot()
	if err != nil {
		return Tool{}, err
	}
	if i, ok := s.find(name); ok {
		return s.tools[i], nil
	}
	at := s.byName[name]
	switch len(at) {
	case 1:
		return s.tools[at[0]], nil
	case 0:
		return Tool{}, &UnknownError{Name: name, Nearest: s.nearest(name), Empty: len(s.tools) == 0}
	}
	e := &AmbiguousError{Name: name}
	for _, i := range at {
		e.Candidates = append(e.Candidates, s.tools[i].ID)
	}
	return Tool{}, e
}

// nearest returns the ids of similar names: first those that differ in case and
// punctuation alone, then those that contain the other, then those within an edit
// distance of a third of the letters.
func (s *snapshot) nearest(name string) []string {
	_, bare, found := strings.Cut(name, ":")
	if !found {
		bare = name
	}
	want := letters(bare)
	if want == "" || len(want) > MaxName {
		return nil
	}
	type near struct {
		rank int
		id   string
	}
	var list []near
	for i := range s.tools {
		got := letters(bareName(&s.tools[i]))
		rank := -1
		switch {
		case got == want:
			rank = 0
		case len(want) >= 3 && strings.Contains(got, want), len(got) >= 3 && strings.Contains(want, got):
			rank = 100 + len(got) - min(len(want), len(got))
		default:
			limit := len(want) / 3
			if d := len(got) - len(want); d <= limit && -d <= limit {
				if d := distance(want, got); d <= limit {
					rank = 10 * d
				}
			}
		}
		if rank >= 0 {
			list = append(list, near{rank, s.tools[i].ID})
		}
	}
	slices.SortStableFunc(list, func(a, b near) int { return a.rank - b.rank })
	var ids []string
	for _, n := range list[:min(len(list), maxCandidates)] {
		ids = append(ids, n.id)
	}
	return ids
}

// letters returns the letters and digits of s in lower case.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 0x7f {
			return r
		}
		return -1
	}, strings.ToLower(s))
}

// distance returns the number of bytes to insert, delete or replace to get from a to
// b. Levenshtein, Soviet Physics Doklady 10 (1966).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
