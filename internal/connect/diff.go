package connect

import (
	"fmt"
	"strings"
)

// diffContext is the number of unchanged lines around a change that Diff shows.
const diffContext = 2

// Diff returns the change as a unified diff of one hunk, "" for no change.
func (f *Change) Diff() string {
	if !f.Changes() {
		return ""
	}
	old, changed := lines(f.Old), lines(f.New)
	from := 0 // lines that are the same at the start
	for from < len(old) && from < len(changed) && old[from] == changed[from] {
		from++
	}
	same := 0 // and at the end
	for same < len(old)-from && same < len(changed)-from && old[len(old)-1-same] == changed[len(changed)-1-same] {
		same++
	}
	first := max(0, from-diffContext)
	after := min(same, diffContext)
	var b strings.Builder
	oldName, newName := f.Path, f.Path
	if f.Old == nil {
		oldName = "/dev/null"
	}
	if f.New == nil {
		newName = "/dev/null"
	}
	fmt.Fprintf(&b, "--- %s\n+++ %s\n@@ -%s +%s @@\n", oldName, newName,
		hunk(first, len(old)-same+after), hunk(first, len(changed)-same+after))
	write := func(mark string, list []string) {
		for _, line := range list {
			fmt.Fprintf(&b, "%s%s\n", mark, line)
		}
	}
	write(" ", old[first:from])
	write("-", old[from:len(old)-same])
	write("+", changed[from:len(changed)-same])
	write(" ", old[len(old)-same:len(old)-same+after])
	return b.String()
}

// hunk returns the range of the lines [first, end) as a diff writes it.
func hunk(first, end int) string {
	if end > first {
		return fmt.Sprintf("%d,%d", first+1, end-first)
	}
	return fmt.Sprintf("%d,0", first)
}

// lines splits a text into lines without their ends.
func lines(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n"), "\n")
}
