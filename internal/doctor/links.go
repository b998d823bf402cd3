package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"strings"

	"cairn/internal/markdown"
	"cairn/internal/walk"
	"cairn/internal/workspace"
)

// link is one that leads to a place in the workspace.
type link struct {
	from   string
	line   int
	raw    string // as written
	path   string // of the workspace, not yet looked for
	anchor string
	// loose links name a document by its name alone, or a page of a site: they
	// are only worth a look when they lead nowhere.
	loose bool
}

// scheme begins an address elsewhere: https:, mailto:, data:.
var scheme = regexp.MustCompile(`^([a-zA-Z][a-zA-Z0-9+.-]*:|//)`)

// linksOf are the links of a document that stay in the workspace.
func linksOf(from string, src []byte) (list []link) {
	for _, l := range markdown.Links(src) {
		target := l.Target
		if target == "" || scheme.MatchString(target) || strings.ContainsAny(target, "<>{}") {
			continue // elsewhere, or a template
		}
		target, anchor, _ := strings.Cut(target, "#")
		target, _, _ = strings.Cut(target, "?")
		if plain, err := url.PathUnescape(target); err == nil {
			target = plain
		}
		k := link{from: from, line: l.Line, raw: l.Target, anchor: anchor, loose: l.Kind == markdown.WikiLink || strings.HasPrefix(target, "/")}
		switch {
		case target == "":
			k.path = from
		case l.Kind == markdown.WikiLink, strings.HasPrefix(target, "/"):
			k.path = strings.TrimPrefix(target, "/")
		default:
			k.path = path.Join(path.Dir(from), target)
		}
		list = append(list, k)
	}
	for _, r := range markdown.References(src) {
		k := link{from: from, line: r.Line, raw: r.Raw, path: r.Path, anchor: r.Anchor}
		if r.Path == "" {
			k.path = from
		}
		list = append(list, k)
	}
	return list
}

// maxSuggested bounds the broken links for which a near name is looked for.
const maxSuggested = 100

// links looks at every link between the documents.
func (r *Report) links(ctx context.Context, t *workspace.Tasks) error {
	paths, err := t.Paths(ctx)
	if err != nil {
		return err
	}
	known := make(map[string]bool, len(paths))
	byName := map[string]string{} // lower-case name without .md → path, for wiki links
	for _, p := range paths {
		known[p] = true
		name := strings.ToLower(strings.TrimSuffix(path.Base(p), ".md"))
		if _, taken := byName[name]; !taken {
			byName[name] = p
		}
	}
	suggested := 0
	near := func(want string) string {
		if suggested++; suggested > maxSuggested {
			return ""
		}
		if found := markdown.Nearest(paths, want, 1); len(found) > 0 {
			return found[0]
		}
		return ""
	}
	wanted := map[string][]link{} // document → links to its sections
	var order []string
	for _, p := range paths {
		if err := ctx.Err(); err != nil {
			return err
		}
		if markdown.FormatOf(p) != markdown.FormatOf("a.md") {
			continue
		}
		src, err := t.Text(p)
		if err != nil {
			continue // gone meanwhile, or a problem of the index
		}
		if walk.Check([]byte(src)) != walk.None {
			continue // no text, whatever its name: the index leaves it out, too
		}
		r.Documents++
		for _, l := range linksOf(p, src) {
			r.Links++
			target, kind := find(t, known, byName, l)
			switch kind {
			case "":
				if l.anchor != "" && markdown.FormatOf(target) == markdown.FormatOf("a.md") {
					if wanted[target] == nil {
						order = append(order, target)
					}
					wanted[target] = append(wanted[target], l)
				}
			case "outside-link":
				r.add(l.finding(kind, fmt.Sprintf("%s leads out of the workspace", l.raw), "link to a document of the workspace, or to an address", false))
			default:
				fix := "correct the link, or remove it"
				if n := near(l.path); n != "" {
					fix = "did you mean " + n + "?"
				}
				message := l.raw + " does not exist"
				if l.raw != l.path {
					message = fmt.Sprintf("%s leads to %s, which does not exist", l.raw, l.path)
				}
				r.add(l.finding(kind, message, fix, !l.loose))
			}
		}
	}
	for _, target := range order {
		if err := ctx.Err(); err != nil {
			return err
		}
		src, err := t.Text(target)
		if err != nil {
			continue
		}
		doc := markdown.Parse(target, src, nil)
		for _, l := range wanted[target] {
			if _, ok := markdown.Resolve(doc, l.anchor); ok || lines.MatchString(l.anchor) || l.anchor == "top" {
				continue
			}
			fix := "correct the anchor, or remove it"
			var anchors []string
			for _, s := range doc.Sections {
				if s.Level > 0 {
					anchors = append(anchors, s.Anchor)
				}
			}
			if n := markdown.Nearest(anchors, l.anchor, 1); len(n) > 0 {
				fix = "did you mean #" + n[0] + "?"
			}
			r.add(l.finding("broken-anchor", fmt.Sprintf("%s: %s has no section #%s", l.raw, target, l.anchor), fix, true))
		}
	}
	return nil
}

// lines is an anchor that names lines, as hosts of repositories have them.
var lines = regexp.MustCompile(`^L\d+(C\d+)?(-L\d+(C\d+)?)?$`)

func (l link) finding(kind, message, fix string, wrong bool) Finding {
	return Finding{Check: "links", Kind: kind, Path: l.from, Line: l.line, Message: message, Fix: fix, Error: wrong}
}

// find looks for what a link leads to. kind is "" when it is there.
func find(t *workspace.Tasks, known map[string]bool, byName map[string]string, l link) (target, kind string) {
	if l.path == ".." || strings.HasPrefix(l.path, "../") {
		return "", "outside-link"
	}
	p := path.Clean(l.path)
	// A page may be named without its extension, a folder by its first page.
	for _, c := range []string{p, p + ".md", path.Join(p, "index.md"), path.Join(p, "README.md")} {
		if known[c] {
			return c, ""
		}
	}
	if l.loose {
		if p, ok := byName[strings.ToLower(strings.TrimSuffix(path.Base(p), ".md"))]; ok && !strings.Contains(l.path, "/") {
			return p, ""
		}
	}
	// What is not indexed, such as an image or a folder, is there all the same.
	if info, err := t.Stat(p); err == nil && (info.Mode().IsRegular() || info.IsDir() || info.Mode()&fs.ModeSymlink != 0) {
		return p, ""
	}
	return "", "broken-link"
}
