package retriever

import (
	"cmp"
	"fmt"
	"slices"

	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/text/outline"
)

// remoteDeclarations is the most documents of a remote store that a search reads to find a
// declaration, best first.
const remoteDeclarations = 32

// findDeclarations marks the candidates whose text declares a name as definitions, for
// placeCode.
func (s *search) findDeclarations(name string, cs []*candidate) error {
	err := s.sources.Documents.View(func(r *docs.Reader) error {
		slices.SortStableFunc(cs, func(a, b *candidate) int { return cmp.Compare(b.Score, a.Score) })
		var paths []string
		for _, c := range cs {
			if !slices.Contains(paths, c.path) {
				paths = append(paths, c.path)
			}
		}
		if r.Remote() {
			paths = paths[:min(len(paths), remoteDeclarations)]
		}
		if err := r.Prefetch(paths); err != nil {
			return err
		}
		for _, path := range paths {
			doc, err := r.Document(path)
			if err != nil {
				return err
			}
			if doc == nil {
				continue // removed after the legs found it
			}
			text := r.Text(path)
			for _, c := range cs {
				if c.path != path {
					continue
				}
				if d := declares(doc, text, c, name); d > 0 {
					c.role, c.unsure = definition, d == outline.MayDeclare
				}
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("looking for a declaration of %q: %w", name, err)
	}
	return nil
}

// declares returns whether the chunk of c declares name.
func declares(doc *store.Document, text []byte, c *candidate, name string) outline.Declaration {
	i := slices.IndexFunc(doc.Sections, func(s store.Section) bool { return s.Anchor == c.anchor })
	if i < 0 || c.number >= len(doc.Sections[i].Chunks) {
		return 0
	}
	chunk := doc.Sections[i].Chunks[c.number]
	return outline.Declares(text[chunk.Start:chunk.End], name)
}
