package ngram

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestTable compares the table with the filters that it was made of: for files of one and of
// many parts, unknown ones, and sizes that few parts have.
func TestTable(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 8))
	filters := []Filter{"", NotText, "damaged"}
	for i := range 300 {
		var lines []string
		size := []int{40, 400, 4000, 4 * partSize}[(i+i/7)%8/2]
		for n := 0; n < size; n += 20 {
			lines = append(lines, randomText(rng, 24)+fmt.Sprint(i*i+n/(2*partSize)))
		}
		filters = append(filters, maker.Filter([]byte(strings.Join(lines, "\n")), false))
	}
	table, have, matched, some := NewTable(filters), 0, 0, 0
	for i := range filters {
		if table.Has(i) {
			have++
		}
	}
	if have < 100 || have == len(filters)-3 || table.Has(0) || table.Has(1) || table.Has(2) {
		t.Fatalf("the table has %d of %d files, want most but not all", have, len(filters))
	}
	for range 100 {
		q, _ := Regexp(randomExpr(rng, 3) + randomText(rng, 6) + []string{"", fmt.Sprint(rng.IntN(400 * 400))}[rng.IntN(2)])
		m := table.Match(q)
		for i, f := range filters {
			if !table.Has(i) {
				continue
			}
			parts := q.Parts(f)
			if m.Has(i) != q.Match(f) || !slices.Equal(m.Parts(i, f.Trailer()), parts) {
				t.Fatalf("%+v, file %d: %v %v, want %v %v", q, i, m.Has(i), m.Parts(i, f.Trailer()), q.Match(f), parts)
			}
			if m.Has(i) {
				matched++
			}
			if len(parts) > 0 {
				some++
			}
		}
	}
	if matched < 1000 || some < 10 {
		t.Errorf("%d files match and %d in some of their parts: the test shows little", matched, some)
	}
	if m := NewTable(nil).Match(Literal("word")); len(m.files) != 0 {
		t.Error("an empty table has files")
	}
}
