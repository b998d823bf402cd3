package markdown

import (
	"cmp"
	"iter"
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
	Start  int    // byte offset of the opening bracket or the "@"
	// A Wiki target is in double brackets and may be the bare name of a document, a Rooted
	// one may be a page of a site.
	Wiki, Rooted bool
}

// external matches the start of a URL with a scheme or host: https:, mailto:, data:.
var external = regexp.MustCompile(`^([a-zA-Z][a-zA-Z0-9+.-]*:|//)`)

// Targets returns the targets of the links and references in a Markdown document at path
// from, in text order. It omits URLs and templates.
func Targets(from string, src []byte) []Target {
	var all []Target
	for _, t := range Links(src) {
		if t.Raw == "" || external.MatchString(t.Raw) || strings.ContainsAny(t.Raw, "<>{}") {
			continue
		}
		target, anchor, _ := strings.Cut(t.Raw, "#")
		target, _, _ = strings.Cut(target, "?")
		if plain, err := url.PathUnescape(target); err == nil {
			target = plain
		}
		t.Anchor, t.Rooted = anchor, strings.HasPrefix(target, "/")
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
	for _, t := range References(src) {
		t.Path = cmp.Or(t.Path, from)
		all = append(all, t)
	}
	slices.SortStableFunc(all, func(a, b Target) int { return cmp.Compare(a.Start, b.Start) })
	return all
}

// Places finds the documents that links lead to.
type Places struct {
	known map[string]bool
	names map[string]string // path by lower-case file name without extension; "" for several
}

// NewPlaces returns the places of documents with the given paths.
func NewPlaces(paths iter.Seq[string]) *Places {
	p := &Places{map[string]bool{}, map[string]string{}}
	for file := range paths {
		if p.known[file] {
			continue
		}
		p.known[file] = true
		name := strings.ToLower(strings.TrimSuffix(path.Base(file), path.Ext(file)))
		if _, taken := p.names[name]; taken {
			file = ""
		}
		p.names[name] = file
	}
	return p
}

// Find returns the document that a link in the document from leads to. A link can omit the
// extension of a page, or name a folder instead of its first page. A wiki link, and a page of
// a site, can be only a name; of several documents with that name, Find returns "".
func (p *Places) Find(from string, t Target) (file string, ok bool) {
	bases := []string{t.Path}
	if t.Wiki {
		bases = []string{path.Join(path.Dir(from), t.Path), t.Path}
	}
	for _, base := range bases {
		base = path.Clean(base)
		for _, end := range []string{"", ".md", "/index.md", "/_index.md", "/README.md"} {
			if p.known[base+end] {
				return base + end, true
			}
		}
	}
	if t.Wiki || t.Rooted && !strings.Contains(t.Path, "/") {
		file, ok = p.names[strings.TrimSuffix(strings.ToLower(path.Base(t.Path)), ".md")]
	}
	return file, ok
}
