package keyword

import (
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"

	"cairn/internal/store"
)

// filtered returns the live chunks of a segment that pass f, which must not be zero.
func filtered(s *scorch.SegmentSnapshot, f store.Filter) (*roaring.Bitmap, error) {
	var all *roaring.Bitmap
	for _, c := range []struct {
		field string
		any   []string // already folded
	}{
		{tagField, store.FoldAll(f.Tags...)},
		{priorityField, store.FoldAll(nonEmpty(f.Priority)...)},
		{assigneeField, store.FoldAll(nonEmpty(f.Assignee)...)},
		{pathField, f.Paths},
	} {
		if len(c.any) == 0 && (c.field != pathField || c.any == nil) {
			continue
		}
		union := roaring.New()
		for _, term := range c.any {
			list, err := postings(s, c.field, term)
			if err != nil {
				return nil, err
			}
			union.Or(bitmap(list))
		}
		all = and(all, union)
	}
	if f.PathPrefix != "" {
		below, err := underPath(s, f.PathPrefix)
		if err != nil {
			return nil, err
		}
		all = and(all, below)
	}
	if f.Kind != "" {
		files, err := ofKind(s, f.Kind)
		if err != nil {
			return nil, err
		}
		all = and(all, files)
	}
	return all, nil
}

// ofKind returns the live chunks of the files of a kind. It visits every file of the
// segment.
func ofKind(s *scorch.SegmentSnapshot, kind store.Kind) (*roaring.Bitmap, error) {
	return union(s, "", func(path string) (takes bool, next string) {
		return !strings.HasSuffix(path, "/") && store.KindOf(path) == kind, ""
	})
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// underPath returns the live chunks whose path begins with prefix. Since folders are
// terms, too, it visits only the level of the tree at which prefix ends.
func underPath(s *scorch.SegmentSnapshot, prefix string) (*roaring.Bitmap, error) {
	return union(s, prefix, func(path string) (takes bool, next string) {
		if folder, ok := strings.CutSuffix(path, "/"); ok {
			next = folder + string(rune('/'+1)) // after the contents of the folder
		}
		return true, next
	})
}

// union returns the live chunks of the terms of pathField that begin with prefix and that
// visit takes. It continues at the term next, if that is not empty.
func union(s *scorch.SegmentSnapshot, prefix string, visit func(path string) (takes bool, next string)) (*roaring.Bitmap, error) {
	dict, err := s.Segment().Dictionary(pathField)
	if err != nil {
		return nil, err
	}
	all := roaring.New()
	it := dict.AutomatonIterator(nil, []byte(prefix), nil)
	for {
		e, err := it.Next()
		if err != nil || e == nil || !strings.HasPrefix(e.Term, prefix) {
			return all, err
		}
		takes, next := visit(e.Term)
		if takes {
			list, err := dict.PostingsList([]byte(e.Term), s.Deleted(), nil)
			if err != nil {
				return nil, err
			}
			all.Or(bitmap(list))
		}
		if next != "" {
			it = dict.AutomatonIterator(nil, []byte(next), nil)
		}
	}
}
