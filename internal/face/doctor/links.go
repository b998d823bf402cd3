package doctor

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"cairn/internal/folder/workspace"
	"cairn/internal/text/markdown"
	"cairn/internal/text/walk"
)

// link is a link of a document to a place in the workspace.
type link struct {
	from string
	markdown.Target
}

// loose reports whether a link has only the name of a document, or a page of a site. A
// broken loose link is only a warning.
func (l *link) loose() bool { return l.Wiki || l.Rooted }

// maxSuggested bounds the broken links that get a suggestion.
const maxSuggested = 100

// linkChecker checks the links between the documents of a folder.
type linkChecker struct {
	report *Report
	tasks  *workspace.Tasks
	paths  []string
	places *markdown.Places

	suggested int
	// anchored holds the links to sections by document, targets its keys in order of
	// appearance.
	anchored map[string][]link
	targets  []string
}

// links checks every link between the documents.
func (r *Report) links(ctx context.Context, t *workspace.Tasks) error {
	paths, err := t.Paths(ctx, false, nil)
	if err != nil {
		return err
	}
	c := &linkChecker{report: r, tasks: t, paths: paths, places: markdown.NewPlaces(slices.Values(paths)), anchored: map[string][]link{}}
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

func isMarkdown(p string) bool { return markdown.FormatOf(p) == markdown.Markdown }

// document checks the links of one document, except for their anchors.
func (c *linkChecker) document(p string) {
	if !isMarkdown(p) {
		return
	}
	src, err := c.tasks.Text(p)
	if err != nil || walk.Check(src) != walk.None {
		return // removed, or not text: the index skips it too
	}
	c.report.Documents++
	for _, t := range markdown.Targets(p, src) {
		l := link{p, t}
		c.report.Links++
		target, kind := c.find(&l)
		switch kind {
		case "":
			if l.Anchor != "" && isMarkdown(target) {
				if c.anchored[target] == nil {
					c.targets = append(c.targets, target)
				}
				c.anchored[target] = append(c.anchored[target], l)
			}
		case "outside-link":
			c.report.add(l.finding(kind, l.Raw+" leads out of the workspace", "link to a document of the workspace, or to an address", false))
		default:
			message := l.Raw + " does not exist"
			if l.Raw != l.Path {
				message = fmt.Sprintf("%s leads to %s, which does not exist", l.Raw, l.Path)
			}
			f := l.finding(kind, message, c.suggestion(l.Path), !l.loose())
			f.Target = path.Clean(l.Path)
			c.report.add(f)
		}
	}
}

// suggestion returns the fix for a link to a missing path.
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
		if _, ok := markdown.Resolve(doc, l.Anchor); ok || lineAnchor.MatchString(l.Anchor) || l.Anchor == "top" {
			continue
		}
		fix := "correct the anchor, or remove it"
		var anchors []string
		for _, s := range doc.Sections {
			if s.Level > 0 {
				anchors = append(anchors, s.Anchor)
			}
		}
		if n := markdown.Nearest(anchors, l.Anchor, 1); len(n) > 0 {
			fix = "did you mean #" + n[0] + "?"
		}
		f := l.finding("broken-anchor", fmt.Sprintf("%s: %s has no section #%s", l.Raw, target, l.Anchor), fix, true)
		f.Target = target
		c.report.add(f)
	}
}

// lineAnchor matches an anchor of lines, such as "#L10-L20" on hosts of repositories.
var lineAnchor = regexp.MustCompile(`^L\d+(C\d+)?(-L\d+(C\d+)?)?$`)

func (l *link) finding(kind, message, fix string, wrong bool) Finding {
	return Finding{Check: "links", Kind: kind, Path: l.from, Line: l.Line, Message: message, Fix: fix, Error: wrong}
}

// find returns the target of a link. kind is "" if it exists, or else the kind of a Finding.
func (c *linkChecker) find(l *link) (target, kind string) {
	if l.Path == ".." || strings.HasPrefix(l.Path, "../") {
		return "", "outside-link"
	}
	if p, ok := c.places.Find(l.from, l.Target); ok {
		return p, ""
	}
	// Images, folders and symbolic links can exist although they are not indexed.
	p := path.Clean(l.Path)
	if _, err := c.tasks.Stat(p); err == nil || errors.Is(err, walk.ErrSymlink) {
		return p, ""
	}
	return "", "broken-link"
}

// Links checks the links between the documents of a folder.
func Links(ctx context.Context, t *workspace.Tasks) ([]Finding, error) {
	r := &Report{}
	err := r.links(ctx, t)
	return r.Findings, err
}
