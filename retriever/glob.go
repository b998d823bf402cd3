package retriever

import (
	"context"
	"fmt"
	"strings"

	"cairn/internal/store/docs"
	"cairn/internal/text/walk"
)

// IsGlob reports whether a place has the form of a pattern, such as "docs/*.md" or
// "docs/**/*.md#usage". A document may also have such a name.
func IsGlob(place string) bool {
	pattern, _, _ := strings.Cut(place, "#")
	return strings.ContainsAny(pattern, "*?[{")
}

// expand replaces each glob among the places by the indexed documents that it matches,
// in the order of their paths. A glob that is the name of a document is kept. expand
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
			found = append(found, place) // Read reports it as not found, with similar names
		}
	}
	if len(found) > MaxPaths {
		more = len(found) - MaxPaths
		found = found[:MaxPaths]
	}
	return found, more, nil
}
