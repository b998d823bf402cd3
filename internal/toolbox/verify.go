package toolbox

import (
	"context"
	"os"
	"path/filepath"

	"cairn/internal/base/checksum"
	"cairn/internal/store/flat"
)

// verify reads the files of the tools and compares all checksums. With repair it recovers
// damaged records, and removes damaged derived files, which are rebuilt.
func (s *Toolbox) verify(ctx context.Context, repair bool) ([]checksum.File, error) {
	found := []checksum.File{}
	for _, f := range s.files {
		checked, err := f.Verify()
		if err == nil && repair && len(checked.Problems) > 0 && checked.Repaired == "" {
			checked.Repaired, err = f.Repair()
		}
		if err != nil {
			return nil, err
		}
		if checked.Name != "" {
			found = append(found, checked)
		}
	}
	derived, err := s.verifyDerived(ctx, repair)
	return append(found, derived...), err
}

// verifyDerived verifies the keyword index and the vectors, if they are in files.
func (s *Toolbox) verifyDerived(ctx context.Context, repair bool) (found []checksum.File, err error) {
	x := &s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := s.openIndex(0); err != nil {
		return nil, err
	}
	type part struct {
		folder string
		verify func(context.Context) (checksum.File, error)
	}
	var parts []part
	if v, ok := x.vectors.(*flat.Store); ok {
		parts = append(parts, part{vectorsFolder, v.Verify})
	}
	if x.stored {
		parts = append(parts, part{keywordsFolder, x.words.Verify})
	}
	for _, p := range parts {
		checked, err := p.verify(ctx)
		if flat.Unusable(err) {
			checked.Problems = append(checked.Problems, err.Error())
		} else if err != nil {
			return nil, err
		}
		checked.Name = p.folder
		if repair && len(checked.Problems) > 0 {
			s.damaged.Store(true) // the next operation rebuilds it
			if err := os.RemoveAll(filepath.Join(s.o.Place.Index, p.folder)); err != nil {
				return nil, err
			}
			checked.Repaired = "removed; it will be rebuilt"
		}
		found = append(found, checked)
	}
	return found, nil
}
