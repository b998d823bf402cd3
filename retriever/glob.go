package retriever

import (
	"context"
	"fmt"
	"strings"

	"cairn/internal/store/docs"
	"cairn/internal/walk"
)

// IsGlob reports whether a place may name several documents, such as "docs/*.md" or
// "docs/**/*.md#usage". It may be the name of one document, too.
func IsGlob(place string) bool {
	pattern, _, _ := strings.Cut(place, "#")
	return strings.ContainsAny(pattern, "*?[{")
}

// expand replaces the globs among the places by those of the indexed documents that they
// match, in the order of their paths. A glob that is the name of a document stays. It
// returns at most MaxPaths places, and how many more there are.
func (r *Retriever) expand(ctx context.Context, places []string) (found []string, more int, err error) {
	for _, place := range places {
		pattern, anchor, _ := strings.Cut(strings.TrimPrefix(place, "/"), "#")
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
		before := len(found)
		err = r.sources.Documents.View(func(reader *docs.Reader) error {
			return reader.Files("", func(f docs.File) bool {
				if match(f.Path) {
					found = append(found, f.Path+anchor)
				}
				return ctx.Err() == nil
			})
		})
		if err != nil {
			return nil, 0, fmt.Errorf("looking for documents like %q: %w", place, err)
		}
		if ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
		if len(found) == before {
			found = append(found, place) // not found, with the nearest names
		}
	}
	if len(found) > MaxPaths {
		more = len(found) - MaxPaths
		found = found[:MaxPaths]
	}
	return found, more, nil
}
