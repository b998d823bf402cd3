package receipt

import (
	"slices"
	"strings"
)

// alike reports whether two texts share three fifths of their words.
func alike(a string, b []byte) bool {
	x, y := strings.Fields(a), strings.Fields(string(b))
	left := map[string]int{}
	for _, w := range x {
		left[w]++
	}
	shared := 0
	for _, w := range y {
		if left[w] > 0 {
			left[w]--
			shared++
		}
	}
	return 10*shared >= 3*(len(x)+len(y))
}

// diff returns the lines that differ, those of before with "-" and those of now with "+".
// Equal lines at both ends are left out. It is empty if before is.
func diff(before string, now []byte) string {
	if before == "" {
		return ""
	}
	if len(now) > MaxText {
		now = now[:MaxText]
	}
	a, b := strings.Split(before, "\n"), strings.Split(strings.ToValidUTF8(string(now), ""), "\n")
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	var d strings.Builder
	for _, l := range a {
		d.WriteString("-" + l + "\n")
	}
	for _, l := range b {
		d.WriteString("+" + l + "\n")
	}
	return d.String()
}

// Repair returns a text in which the receipts of lines with one of the statuses, Moved or
// Changed, are those of their present lines, and the number of receipts that it replaced. The
// findings are those of the receipts in the text, in order.
func Repair(text []byte, cited []Cited, findings []Finding, statuses ...Status) (repaired []byte, n int, err error) {
	for i, c := range slices.Backward(cited) {
		if findings[i].Now == nil || !slices.Contains(statuses, findings[i].Status) {
			continue
		}
		now, err := findings[i].Now.form(c.SHA256 != "")
		if err != nil {
			return nil, 0, err
		}
		text, n = slices.Concat(text[:c.Start], now, text[c.End:]), n+1
	}
	return text, n, nil
}
