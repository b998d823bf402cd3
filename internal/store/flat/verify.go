package flat

import (
	"context"
	"fmt"

	"cairn/internal/base/health"
)

// Verify reads the whole file and compares all checksums. A store in memory has none.
func (s *Store) Verify(ctx context.Context) (found health.File, err error) {
	found.Name = fileName
	snap, err := s.snapshot(ctx)
	if err != nil || snap.log == nil {
		return found, err
	}
	problem := func(format string, args ...any) {
		found.Problems = append(found.Problems, fmt.Sprintf(format, args...))
	}
	f, end := snap.log.file, snap.log.end
	found.Bytes, found.Records = end, snap.live
	at, _, err := readFileHeader(f, s.dim, s.model)
	if err != nil {
		problem("%v", err)
		return found, nil
	}
	for at < end {
		if err := ctx.Err(); err != nil {
			return found, err
		}
		r, err := readRecordHeader(f, at, end, s.dim)
		if err != nil {
			return found, err
		}
		if r == nil {
			problem("the record at %d is damaged", at)
			return found, nil
		}
		ok, err := r.check(f)
		if err != nil {
			return found, err
		}
		if !ok {
			problem("the record at %d is damaged", at)
		}
		at = r.end()
	}
	return found, nil
}
