package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cairn/internal/text/markdown"
)

// maxCandidates bounds the names in an error of Lookup.
const maxCandidates = 8

// UnknownError reports a name that no tool has.
type UnknownError struct {
	Name string
	// Nearest lists the IDs of tools with similar names, the nearest first.
	Nearest []string
	// Empty reports that the catalogue has no tools.
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

// AmbiguousError reports a name that tools of several servers have. Candidates lists their
// IDs, sorted.
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

// Lookup returns the tool with an ID, or with a name if only one server has a tool of that
// name. It fails with an *UnknownError if there is none and with an *AmbiguousError if there
// are several.
func (c *Catalog) Lookup(name string) (Tool, error) {
	s, err := c.Snapshot()
	if err != nil {
		return Tool{}, err
	}
	if i, ok := slices.BinarySearchFunc(s.Tools, name, func(t Tool, id string) int { return strings.Compare(t.ID, id) }); ok {
		return s.Tools[i], nil
	}
	at := s.byName[name]
	switch len(at) {
	case 1:
		return s.Tools[at[0]], nil
	case 0:
		return Tool{}, &UnknownError{Name: name, Nearest: s.nearest(name), Empty: len(s.Tools) == 0}
	}
	e := &AmbiguousError{Name: name}
	for _, i := range at {
		e.Candidates = append(e.Candidates, s.Tools[i].ID)
	}
	return Tool{}, e
}

// nearest returns the IDs of tools with similar names.
func (s *Snapshot) nearest(name string) []string {
	if _, bare, found := strings.Cut(name, ":"); found {
		name = bare
	}
	ids := map[string][]string{}
	for i := range s.Tools {
		n := letters(s.Tools[i].BareName())
		ids[n] = append(ids[n], s.Tools[i].ID)
	}
	return similar(ids, name, maxCandidates)
}

// similar returns at most n of the values whose keys, in letters, are similar to a name. It
// ignores case and punctuation.
func similar(values map[string][]string, name string, n int) (near []string) {
	for _, k := range markdown.Nearest(slices.Sorted(maps.Keys(values)), letters(name), n) {
		near = append(near, values[k]...)
	}
	return near[:min(len(near), n)]
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
