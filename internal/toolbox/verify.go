package toolbox

import (
	"context"
	"os"
	"path/filepath"

	"cairn/internal/base/checksum"
	"cairn/internal/store/flat"
	"cairn/internal/store/kv"
)

// Verify reads the files of the tools and compares all checksums. With repair it recovers
// damaged records, and removes damaged derived files, which are rebuilt. It also reports
// files that were recovered when they were opened.
func (t *Toolbox) Verify(ctx context.Context, repair bool) ([]checksum.File, error) {
	return opVerify.Call(ctx, t.folder, repair, nil)
}

func (s *service) verify(ctx context.Context, repair bool) ([]checksum.File, error) {
	found := []checksum.File{}
	for _, r := range s.recovered {
		found = append(found, checksum.File{Name: filepath.Base(r.Path), Problems: r.Problems, Repaired: r.String()})
	}
	for _, f := range s.files {
		db, err := f.open(false)
		if err != nil {
			return nil, err
		}
		if db == nil {
			continue // nothing was ever written
		}
		checked, err := db.Verify()
		if err != nil {
			return nil, err
		}
		if repair && len(checked.Problems) > 0 {
			if checked.Repaired, err = s.recoverFile(f); err != nil {
				return nil, err
			}
		}
		found = append(found, checked)
	}
	derived, err := s.verifyDerived(ctx, repair)
	return append(found, derived...), err
}

// recoverFile recovers the records of a file. The next operation opens the file again.
func (s *service) recoverFile(f *file) (did string, err error) {
	s.damaged.Store(true)
	if err := f.close(); err != nil {
		s.o.Logger.Warn("closing a damaged file", "path", f.path, "error", err)
	}
	return kv.Repair(f.path)
}

// verifyDerived verifies the keyword index and the vectors, if they are in files.
func (s *service) verifyDerived(ctx context.Context, repair bool) (found []checksum.File, err error) {
	x := &s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := s.openIndex(); err != nil {
		return nil, err
	}
	type part struct {
		folder string
		verify func(context.Context) (checksum.File, error)
	}
	var parts []part
	if v, ok := x.vectors.(*fileVectors); ok {
		parts = append(parts, part{vectorsFolder, v.cache.Verify})
	}
	x.keywords.mu.RLock()
	defer x.keywords.mu.RUnlock()
	if x.keywords.index != nil && x.keywords.stored {
		parts = append(parts, part{keywordsFolder, x.keywords.index.Verify})
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
			if err := os.RemoveAll(filepath.Join(s.place.Index, p.folder)); err != nil {
				return nil, err
			}
			checked.Repaired = "removed; it will be rebuilt"
		}
		found = append(found, checked)
	}
	return found, nil
}
