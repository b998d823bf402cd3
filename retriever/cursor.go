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

// tokenVersion is the version of the tokens below.
const tokenVersion = 1

// encodeToken returns the base64url encoding of: version (1 byte), the parts, little-endian,
// and the FNV-1a hash of the preceding bytes (uint32).
func encodeToken(parts any) string {
	b, err := binary.Append([]byte{tokenVersion}, binary.LittleEndian, parts)
	if err != nil {
		panic(err) // unreachable: the size of all parts is fixed
	}
	return base64.RawURLEncoding.EncodeToString(binary.LittleEndian.AppendUint32(b, sum32(b)))
}

// decodeToken is the inverse of encodeToken. It reports whether s is a token of such parts.
func decodeToken(s string, parts any) bool {
	b, err := base64.RawURLEncoding.DecodeString(s)
	size := 1 + binary.Size(parts)
	if err != nil || len(b) != size+4 || b[0] != tokenVersion || binary.LittleEndian.Uint32(b[size:]) != sum32(b[:size]) {
		return false
	}
	_, err = binary.Decode(b[1:], binary.LittleEndian, parts)
	return err == nil
}

func sum32(b []byte) uint32 {
	h := fnv.New32a()
	h.Write(b)
	return h.Sum32()
}

// cursorToken has the parts of a cursor. It does not include the limit, which may change from
// page to page.
type cursorToken struct {
	Offset            uint32
	Generation, Query uint64 // Query is a hash
}

// maxDigits bounds the digits of a plain number, so that it is shorter than a cursor.
const maxDigits = 10

// cursor is the place in a result list at which a page begins.
type cursor struct {
	offset            int
	generation, query uint64
}

func (c cursor) encode() string {
	return encodeToken(&cursorToken{uint32(c.offset), c.generation, c.query})
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
	var c cursorToken
	if !decodeToken(s, &c) {
		return cursor{}, invalid("cursor", "%.80q is not a cursor from an earlier answer; omit it for the first page", s)
	}
	if c.Offset > math.MaxInt32 {
		return cursor{}, invalid("cursor", "offset %d is out of range", c.Offset)
	}
	return cursor{int(c.Offset), c.Generation, c.Query}, nil
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
