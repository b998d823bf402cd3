package markdown

import (
	"cmp"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Target is a link or reference to a document of the workspace.
type Target struct {
	// Path is relative to the root of the workspace and may leave it with "../". The
	// file may not exist.
	Path   string
	Anchor string // without "#"
	Raw    string // as written
	Line   int    // from 1
	Start  int    // byte offset of the link
	// A Wiki target may be the bare name of a document, a Rooted one a page of a site.
	Wiki, Rooted bool
}

// external matches the start of a URL with a scheme or host: https:, mailto:, data:.
var external = regexp.MustCompile(`^([a-zA-Z][a-zA-Z0-9+.-]*:|//)`)

// Targets returns the targets of the links and references in a Markdown document at path
// from, in text order. It omits URLs and templates.
func Targets(from string, src []byte) []Target {
	var all []Target
	for _, l := range Links(src) {
		if l.Target == "" || external.MatchString(l.Target) || strings.ContainsAny(l.Target, "<>{}") {
			continue
		}
		target, anchor, _ := strings.Cut(l.Target, "#")
		target, _, _ = strings.Cut(target, "?")
		if plain, err := url.PathUnescape(target); err == nil {
			target = plain
		}
		t := Target{Anchor: anchor, Raw: l.Target, Line: l.Line, Start: l.Start, Wiki: l.Wiki, Rooted: strings.HasPrefix(target, "/")}
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
