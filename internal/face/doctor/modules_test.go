package doctor

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestModules compares the table of modules with go.mod.
func TestModules(t *testing.T) {
	mod, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	var required, listed []string
	for _, m := range regexp.MustCompile(`(?m)^\t(\S+) v`).FindAllStringSubmatch(string(mod), -1) {
		required = append(required, m[1])
	}
	for line := range strings.Lines(modules) {
		path, date, _ := strings.Cut(strings.TrimSpace(line), " ")
		if _, err := time.Parse(time.DateOnly, date); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		listed = append(listed, path)
	}
	slices.Sort(required)
	slices.Sort(listed)
	if len(required) == 0 || !slices.Equal(required, listed) {
		t.Errorf("modules.txt has %q, want %q: run go generate ./internal/face/doctor", listed, required)
	}
	path, date, _ := strings.Cut(strings.SplitN(modules, "\n", 2)[0], " ")
	released, err := time.Parse(time.DateOnly, date)
	if err != nil {
		t.Fatal(err)
	}
	for days, want := range map[int]bool{0: false, 1: true} {
		if got := slices.Contains(oldModules(released.AddDate(2, 0, days)), Module{path, date}); got != want {
			t.Errorf("%s is old two years and %d days after its release: %v, want %v", path, days, got, want)
		}
	}
}
