package retriever

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/text/markdown"
	"cairn/internal/text/walk"
)

// suffix is the part of a place after its path.
type suffix struct {
	anchor   string
	from, to int // lines; 0 for none
}

// locate reads the file of a place. It does not split a path that exists as written,
// even if the path contains "#" or ":".
func (r *Retriever) locate(spec string) (f *parsedFile, rest suffix, cached bool, err error) {
	original := spec
	spec = strings.TrimPrefix(r.relative(spec), "/") // "/" is the workspace's folder
	if strings.ContainsAny(spec, "#:") && !r.exists(spec) {
		if spec, rest.anchor, rest.from, rest.to, err = markdown.SplitPlace(spec, r.exists); err != nil {
			return nil, rest, false, invalid("path", "%q has %s", original, err)
		}
	}
	f, cached, err = r.open(spec)
	if e, ok := errors.AsType[*NotFoundError](err); ok && e.same != "" {
		f, cached, err = r.open(e.same)
	}
	return f, rest, cached, err
}

// relative returns an absolute path inside a root as a path of the workspace, and any other
// path unchanged.
func (r *Retriever) relative(spec string) string {
	if r.sources.Files != nil && filepath.IsAbs(spec) {
		if p, ok := walk.PathIn(r.sources.Files.Roots(), spec); ok && p != "." {
			return p
		}
	}
	return spec
}

// exists reports whether there is a file with exactly this name.
func (r *Retriever) exists(name string) bool {
	name, err := walk.Clean(name)
	switch {
	case err != nil:
	case r.sources.Documents.IsRemote():
		var ok bool
		err = r.sources.Documents.View(func(reader *docs.Reader) (err error) {
			_, ok, err = reader.File(name)
			return err
		})
		return ok && err == nil
	case r.sources.Files != nil:
		_, err = r.sources.Files.Stat(name)
		return err == nil
	}
	return false
}

// extent is the part of a file to read: bytes [start, end).
type extent struct {
	start, end int
	section    int    // index of the requested section, -1 for none
	anchor     string // as in the request
	hash       string // of the section
	lines      bool   // the request names lines
	part       bool   // continues an earlier reading
}

// extent returns the part of f that the request names.
func (f *parsedFile) extent(anchor string, rest suffix) (extent, error) {
	if anchor == "" {
		anchor = rest.anchor
	} else if rest.from > 0 {
		return extent{}, invalid("anchor", "%q cannot be combined with lines", anchor)
	}
	e := extent{section: -1, anchor: anchor}
	switch {
	case anchor != "":
		i, ok := markdown.Resolve(f.doc, anchor)
		if !ok {
			return e, missingAnchor(f, anchor)
		}
		s := &f.doc.Sections[i]
		e.section, e.hash = i, s.Hash
		e.start, e.end = trimmed(f.text, s.Start, s.End)
	case rest.from > 0:
		n := len(f.lines)
		if rest.from > n {
			return e, invalid("path", "line %d is past the end of %q, which has %d lines", rest.from, f.path, n)
		}
		e.lines = true
		end := len(f.text)
		if rest.to < n {
			end = f.lines[rest.to]
		}
		e.start, e.end = trimmed(f.text, f.lines[rest.from-1], end)
	default:
		start := f.body
		if store.IsNote(f.path) { // its receipts are in its front matter
			start = max(start, markdown.ReadFrontMatter(f.text).End)
		}
		e.start, e.end = trimmed(f.text, start, len(f.text))
	}
	return e, nil
}

// suggestions is the most similar names in an error.
const suggestions = 5

func missingAnchor(f *parsedFile, anchor string) error {
	e := &NotFoundError{Path: f.path, Anchor: anchor, Anchors: []string{}}
	var names []string
	of := map[string]string{}
	for _, s := range f.doc.Sections {
		if s.Level == 0 {
			continue
		}
		e.Anchors = append(e.Anchors, s.Anchor)
		for _, name := range []string{s.Anchor, s.Heading} {
			if _, ok := of[name]; !ok {
				of[name] = s.Anchor
				names = append(names, name)
			}
		}
	}
	for _, name := range markdown.Nearest(names, strings.TrimPrefix(anchor, "#"), 2*suggestions) {
		if a := of[name]; !slices.Contains(e.Nearest, a) && len(e.Nearest) < suggestions {
			e.Nearest = append(e.Nearest, a)
		}
	}
	return e
}

// missingFile returns the error for a missing file, with the most similar other paths.
func (r *Retriever) missingFile(name string) error {
	e := &NotFoundError{Path: name}
	var paths []string
	err := r.sources.Documents.View(func(reader *docs.Reader) error {
		return reader.Files("", func(f docs.File) bool {
			if f.Path != name {
				paths = append(paths, f.Path)
			}
			return true
		})
	})
	if err != nil {
		return fmt.Errorf("looking for names like %q: %w", name, err)
	}
	for _, card := range walk.Cards(name) { // a new card may not be indexed yet
		if r.exists(card) {
			paths = append(paths, card)
		}
	}
	e.same, _ = walk.Alike(paths, name)
	e.Nearest = markdown.Nearest(paths, name, suggestions)
	return e
}

// IsGlob reports whether a place has the form of a pattern, such as "docs/*.md" or
// "docs/**/*.md#usage". A document may also have such a name.
func IsGlob(place string) bool {
	pattern, _, _ := strings.Cut(place, "#")
	return strings.ContainsAny(pattern, "*?[{")
}

// expand replaces each glob among the places by the indexed documents that it matches,
// in the order of their paths, of which a glob with an anchor only means those that have it,
// if any do. A glob that is the name of a document is kept. expand
// returns at most MaxPaths places, and how many more there are.
func (r *Retriever) expand(ctx context.Context, places []string) (found []string, more int, err error) {
	for _, place := range places {
		pattern, anchor, _ := strings.Cut(strings.TrimPrefix(r.relative(place), "/"), "#")
		if !IsGlob(place) || r.exists(pattern) {
			found = append(found, place)
			continue
		}
		if anchor != "" {
			anchor = "#" + anchor
		}
		match, err := walk.Glob(pattern)
		if err != nil {
			return nil, 0, invalid("paths", "%s", err)
		}
		var all, having []string // the places, and those that have the anchor
		err = r.sources.Documents.View(func(reader *docs.Reader) error {
			err := reader.Files("", func(f docs.File) bool {
				if match(f.Path) {
					all = append(all, f.Path+anchor)
				}
				return ctx.Err() == nil
			})
			for i := 0; i < len(all) && anchor != ""; i++ {
				doc, _ := reader.Document(strings.TrimSuffix(all[i], anchor))
				if doc != nil && slices.ContainsFunc(doc.Sections, func(s store.Section) bool {
					return strings.EqualFold("#"+s.Anchor, anchor) || strings.EqualFold("#"+s.Heading, anchor)
				}) {
					having = append(having, all[i])
				}
			}
			return err
		})
		if err != nil {
			return nil, 0, fmt.Errorf("looking for documents like %q: %w", place, err)
		}
		if ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
		if len(all) == 0 {
			having = []string{place} // Read reports it as not found, with similar names
		} else if len(having) == 0 {
			having = all
		}
		found = append(found, having...)
	}
	n := min(len(found), MaxPaths)
	return found[:n], len(found) - n, nil
}
