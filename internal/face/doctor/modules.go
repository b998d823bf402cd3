package doctor

import (
	_ "embed"
	"strings"
	"time"
)

//go:generate sh -c "sed -n 's/^\\t\\([^ ]*\\).*/\\1/p' ../../../go.mod | xargs go list -m -u -f '{{.Path}} {{(or .Update .).Time.Format \"2006-01-02\"}}' >modules.txt"

// modules has a line for each module of go.mod: its path, and the date of its newest release
// according to the module proxy.
//
//go:embed modules.txt
var modules string

// Module is a module that the binary was built with.
type Module struct {
	Path string `json:"path"`
	// Released is the date of the newest release that was known when cairn was built.
	Released string `json:"released"`
}

// oldModules returns the modules without a release in the two years before now.
func oldModules(now time.Time) (old []Module) {
	limit := now.AddDate(-2, 0, 0).Format(time.DateOnly)
	for line := range strings.Lines(modules) {
		if path, date, _ := strings.Cut(strings.TrimSpace(line), " "); date < limit {
			old = append(old, Module{path, date})
		}
	}
	return old
}
