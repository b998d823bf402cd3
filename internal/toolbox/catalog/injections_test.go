package catalog

import (
	"os"
	"strings"
	"testing"
)

// TestScanInjections bounds from below how many of the injections that documents and
// descriptions of tools carry Scan reports. It reports no more than phrasings that
// honest descriptions do not have, so it finds a part of them only; what it misses is
// data all the same.
func TestScanInjections(t *testing.T) {
	source, err := os.ReadFile("../../../tools/testdata/injections.txt")
	if err != nil {
		t.Fatal(err)
	}
	var missed []string
	all := 0
	for line := range strings.Lines(string(source)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "# ") {
			continue
		}
		all++
		if len(Scan(strings.ReplaceAll(line, `\n`, "\n"))) == 0 {
			missed = append(missed, line)
		}
	}
	if found := all - len(missed); found < 19 {
		t.Errorf("Scan reports %d of %d injections, want at least 19; it misses\n%s", found, all, strings.Join(missed, "\n"))
	}
}
