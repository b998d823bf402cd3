package markdown

import (
	"cmp"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Target is a place in the workspace that a document links or refers to.
type Target struct {
	// Path is the path in the workspace, or one that leads out of it with "../". It is
	// not looked up.
	Path   string
	Anchor string // without "#"
	Raw    string // as written
	Line   int    // from 1
	Start  int    // byte offset of the link
	// Wiki targets may name a document by its name alone, Rooted ones a page of a site.
	Wiki, Rooted bool
}

// elsewhere matches the beginning of an address: https:, mailto:, data:.
var elsewhere = regexp.MustCompile(`^([a-zA-Z][a-zA-Z0-9+.-]*:|//)`)

// Targets returns the places that the Markdown of the document at a path links or refers
// to, in the order of the text. Addresses and templates are none.
func Targets(from string, src []byte) []Target {
	var all []Target
	for _, l := range Links(src) {
		if l.Target == "" || elsewhere.MatchString(l.Target) || strings.ContainsAny(l.Target, "<>{}") {
			continue
		}
		target, anchor, _ := strings.Cut(l.Target, "#")
		target, _, _ = strings.Cut(target, "?")
		if plain, err := url.PathUnescape(target); err == nil {
			target = plain
		}
		t := Target{Anchor: anchor, Raw: l.Target, Line: l.Line, Start: l.Start, Wiki: l.Kind == WikiLink, Rooted: strings.HasPrefix(target, "/")}
		switch {
		case target == "":
			t.Path = from
		case t.Wiki, t.Rooted:
			t.Path = strings.TrimPrefix(target, "/")
		default:
			t.Path = path.Join(path.Dir(from), target)
		}
		all = append(all, t)
	}
	for _, r := range References(src) {
		all = append(all, Target{Path: cmp.Or(r.Path, from), Anchor: r.Anchor, Raw: r.Raw, Line: r.Line, Start: r.Start})
	}
	slices.SortStableFunc(all, func(a, b Target) int { return cmp.Compare(a.Start, b.Start) })
	return all
}
