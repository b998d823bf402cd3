package flat

import (
	"context"
	"fmt"
)

// Verify reads the whole file as of now, compares all checksums, and returns what is
// damaged. A store in memory has nothing to verify.
func (s *Store) Verify(ctx context.Context) (bytes int64, problems []string, err error) {
	snap, err := s.snapshot(ctx)
	if err != nil || snap.log == nil {
		return 0, nil, err
	}
	f, end := snap.log.file, snap.log.end
	_, at, err := readFileHeader(f, s.dim, s.model)
	if err != nil {
		return end, []string{err.Error()}, nil
	}
	for at < end {
		if err := ctx.Err(); err != nil {
			return at, problems, err
		}
		r, err := readRecordHeader(f, at, end, s.dim)
		if err != nil {
			return at, problems, err
		}
		if r == nil {
			return end, append(problems, fmt.Sprintf("the record at %d is damaged", at)), nil
		}
		ok, err := r.readNames(f)
		if ok && err == nil {
			ok, err = r.checkVectors(f)
		}
		if err != nil {
			return at, problems, err
		}
		if !ok {
			problems = append(problems, fmt.Sprintf("the record at %d is damaged", at))
		}
		at = r.end()
	}
	return end, problems, nil
}
