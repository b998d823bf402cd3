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

// link is a link to a place in the workspace.
type link struct {
	from   string
	line   int
	raw    string // as written
	path   string // workspace path, not yet looked up
	anchor string
	// loose links name a document by its name alone, or a page of a site. They are
	// only warnings when they are broken.
	loose bool
}

// scheme matches the beginning of an address elsewhere: https:, mailto:, data:.
var scheme = regexp.MustCompile(`^([a-zA-Z][a-zA-Z0-9+.-]*:|//)`)

// linksOf returns the links of a document that stay in the workspace.
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

// maxSuggested bounds the broken links for which a similar name is looked up.
const maxSuggested = 100

// linkChecker checks the links between the documents of a folder.
type linkChecker struct {
	report *Report
	tasks  *workspace.Tasks
	paths  []string
	known  map[string]bool
	byName map[string]string // path by lower-case name without .md, for wiki links

	suggested int
	// anchored are the links to sections, by document; targets are its keys in
	// order of appearance.
	anchored map[string][]link
	targets  []string
}

// links checks every link between the documents.
func (r *Report) links(ctx context.Context, t *workspace.Tasks) error {
	paths, err := t.Paths(ctx, nil)
	if err != nil {
		return err
	}
	c := &linkChecker{report: r, tasks: t, paths: paths, known: map[string]bool{}, byName: map[string]string{}, anchored: map[string][]link{}}
	for _, p := range paths {
		c.known[p] = true
		name := strings.ToLower(strings.TrimSuffix(path.Base(p), ".md"))
		if _, taken := c.byName[name]; !taken {
			c.byName[name] = p
		}
	}
	for _, p := range paths {
		if err := ctx.Err(); err != nil {
			return err
		}
		c.document(p)
	}
	for _, target := range c.targets {
		if err := ctx.Err(); err != nil {
			return err
		}
		c.anchors(target)
	}
	return nil
}

func isMarkdown(p string) bool { return markdown.FormatOf(p) == markdown.FormatOf("a.md") }

// document checks the links of one document, but for their anchors.
func (c *linkChecker) document(p string) {
	if !isMarkdown(p) {
		return
	}
	src, err := c.tasks.Text(p)
	if err != nil || walk.Check(src) != walk.None {
		return // removed meanwhile, or not text: the index skips it, too
	}
	c.report.Documents++
	for _, l := range linksOf(p, src) {
		c.report.Links++
		target, kind := c.find(l)
		switch kind {
		case "":
			if l.anchor != "" && isMarkdown(target) {
				if c.anchored[target] == nil {
					c.targets = append(c.targets, target)
				}
				c.anchored[target] = append(c.anchored[target], l)
			}
		case "outside-link":
			c.report.add(l.finding(kind, l.raw+" leads out of the workspace", "link to a document of the workspace, or to an address", false))
		default:
			message := l.raw + " does not exist"
			if l.raw != l.path {
				message = fmt.Sprintf("%s leads to %s, which does not exist", l.raw, l.path)
			}
			c.report.add(l.finding(kind, message, c.suggestion(l.path), !l.loose))
		}
	}
}

// suggestion returns the fix of a link to a path that does not exist.
func (c *linkChecker) suggestion(want string) string {
	if c.suggested++; c.suggested <= maxSuggested {
		if found := markdown.Nearest(c.paths, want, 1); len(found) > 0 {
			return "did you mean " + found[0] + "?"
		}
	}
	return "correct the link, or remove it"
}

// anchors checks the links to sections of one document.
func (c *linkChecker) anchors(target string) {
	src, err := c.tasks.Text(target)
	if err != nil {
		return
	}
	doc := markdown.Parse(target, src)
	for _, l := range c.anchored[target] {
		if _, ok := markdown.Resolve(doc, l.anchor); ok || lineAnchor.MatchString(l.anchor) || l.anchor == "top" {
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
		c.report.add(l.finding("broken-anchor", fmt.Sprintf("%s: %s has no section #%s", l.raw, target, l.anchor), fix, true))
	}
}

// lineAnchor matches an anchor that names lines, as hosts of repositories have them.
var lineAnchor = regexp.MustCompile(`^L\d+(C\d+)?(-L\d+(C\d+)?)?$`)

func (l link) finding(kind, message, fix string, wrong bool) Finding {
	return Finding{Check: "links", Kind: kind, Path: l.from, Line: l.line, Message: message, Fix: fix, Error: wrong}
}

// find returns the path that a link leads to. kind is "" if it exists.
func (c *linkChecker) find(l link) (target, kind string) {
	if l.path == ".." || strings.HasPrefix(l.path, "../") {
		return "", "outside-link"
	}
	p := path.Clean(l.path)
	// A link may name a page without its extension, or a folder for its first page.
	for _, candidate := range []string{p, p + ".md", path.Join(p, "index.md"), path.Join(p, "README.md")} {
		if c.known[candidate] {
			return candidate, ""
		}
	}
	if l.loose {
		if p, ok := c.byName[strings.ToLower(strings.TrimSuffix(path.Base(p), ".md"))]; ok && !strings.Contains(l.path, "/") {
			return p, ""
		}
	}
	// An image or a folder exists without being indexed.
	if info, err := c.tasks.Stat(p); err == nil && (info.Mode().IsRegular() || info.IsDir() || info.Mode()&fs.ModeSymlink != 0) {
		return p, ""
	}
	return "", "broken-link"
}
