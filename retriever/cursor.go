package retriever

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A cursor is the base64url encoding of: version (1 byte, 1), offset (uint32),
// generation (uint64), hash of the query (uint64), and the FNV-1a hash of the preceding
// bytes (uint32), little-endian. It does not include the limit, which may change from
// page to page.
const (
	cursorVersion = 1
	cursorSize    = 1 + 4 + 8 + 8 + 4
	// maxDigits bounds the digits of a plain number, so that it is shorter than a cursor.
	maxDigits = 10
)

// cursor is the place in a result list at which a page begins.
type cursor struct {
	offset            int
	generation, query uint64
}

func (c cursor) encode() string {
	b := append(make([]byte, 0, cursorSize), cursorVersion)
	b = binary.LittleEndian.AppendUint32(b, uint32(c.offset))
	b = binary.LittleEndian.AppendUint64(b, c.generation)
	b = binary.LittleEndian.AppendUint64(b, c.query)
	b = binary.LittleEndian.AppendUint32(b, sum32(b))
	return base64.RawURLEncoding.EncodeToString(b)
}

// Next returns the number of results before the next page, 0 if there is none. A person can
// type it instead of NextCursor; then a change of the index or of the query goes unnoticed.
func (a *Answer) Next() int {
	if a.NextCursor == nil {
		return 0
	}
	c, _ := parseCursor(*a.NextCursor) // the retriever has made it
	return c.offset
}

// decodeCursor returns the cursor of q, or the zero cursor if q has none. A plain number is a
// cursor without the checks that follow. It fails with
// *InvalidError for the cursor of another query, and with *IndexChangedError for one of
// another generation.
func decodeCursor(q *Query, generation uint64) (cursor, error) {
	if q.Cursor == "" {
		return cursor{}, nil
	}
	if n, err := strconv.ParseUint(q.Cursor, 10, 31); err == nil && len(q.Cursor) <= maxDigits {
		return cursor{offset: int(n)}, nil
	}
	c, err := parseCursor(q.Cursor)
	switch {
	case err != nil:
		return c, err
	case c.generation != generation:
		return c, &IndexChangedError{Have: c.generation, Want: generation}
	case c.query != q.identity():
		return c, invalid("cursor", "the cursor belongs to another query")
	}
	return c, nil
}

// parseCursor decodes the result of encode. It fails with *InvalidError.
func parseCursor(s string) (cursor, error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != cursorSize || b[0] != cursorVersion ||
		binary.LittleEndian.Uint32(b[cursorSize-4:]) != sum32(b[:cursorSize-4]) {
		return cursor{}, invalid("cursor", "%.80q is not a cursor from an earlier answer; omit it for the first page", s)
	}
	offset := binary.LittleEndian.Uint32(b[1:])
	if offset > math.MaxInt32 {
		return cursor{}, invalid("cursor", "offset %d is out of range", offset)
	}
	return cursor{int(offset), binary.LittleEndian.Uint64(b[5:]), binary.LittleEndian.Uint64(b[13:])}, nil
}

func sum32(b []byte) uint32 {
	h := fnv.New32a()
	h.Write(b)
	return h.Sum32()
}

// identity returns a hash of the fields of q that determine the order of results.
func (q *Query) identity() uint64 {
	h := fnv.New64a()
	tags := slices.Clone(q.Filter.Tags)
	for i, t := range tags {
		tags[i] = strings.ToLower(t)
	}
	slices.Sort(tags)
	inUse := slices.Sorted(slices.Values(q.Context))
	fmt.Fprintf(h, "%q %q %q %q %q %q %q %q", slices.Compact(inUse), q.Text, q.Mode, slices.Compact(tags),
		strings.ToLower(q.Filter.Priority), strings.ToLower(q.Filter.Assignee), q.Filter.PathPrefix, q.Filter.Kind)
	return h.Sum64()
}
