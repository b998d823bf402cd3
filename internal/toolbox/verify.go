package toolbox

import (
	"context"
	"os"
	"path/filepath"

	"cairn/internal/base/health"
	"cairn/internal/store/flat"
)

// verify reads the files of the tools and compares all checksums. With repair it recovers
// damaged records, and removes damaged derived files, which are rebuilt.
func (s *Toolbox) verify(ctx context.Context, repair bool) (*health.Report, error) {
	x := &s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := s.openIndex(0); err != nil {
		return nil, err
	}
	var parts []health.Part
	for _, f := range s.files {
		parts = append(parts, f.Part())
	}
	if v, ok := x.vectors.(*flat.Store); ok {
		parts = append(parts, s.part(vectorsFolder, v.Verify))
	}
	if x.stored {
		parts = append(parts, s.part(keywordsFolder, x.words.Verify))
	}
	return health.Check(ctx, parts, repair)
}

// part returns a folder of the derived index. The next operation rebuilds it after its
// removal.
func (s *Toolbox) part(folder string, verify func(context.Context) (health.File, error)) health.Part {
	return health.Part{
		Check: func(ctx context.Context) (health.File, error) {
			f, err := verify(ctx)
			if flat.Unusable(err) {
				f.Problems, err = append(f.Problems, err.Error()), nil
			}
			f.Name = folder
			return f, err
		},
		Repair: func(context.Context, health.File) (string, error) {
			s.damaged.Store(true)
			return "removed; it will be rebuilt", os.RemoveAll(filepath.Join(s.o.Place.Index, folder))
		},
	}
}
