package drift

import (
	"strings"
	"testing"
)

// TestValues: a value next to a name is drift if the line that had both has another value.
func TestValues(t *testing.T) {
	all := map[string]string{
		"go.mod": "module example.org/ferry\n\ngo 1.21\n",
		"ferry.go": `package ferry

const maxBoats = 20_000

func Load(path string, tide int) int { return dial("harbour-port", 8080, tide) }
`,
		"cli.py": "parser.add_argument(\n    '--dock-timeout',\n    default=30,\n)\nlevel = 'info'\n",
	}
	doc := "# Ferry\n\nIt needs Go 1.21 and holds at most 20,000 boats (`maxBoats`). The `harbour-port` is 8080.\n\n" +
		"| flag | meaning |\n|---|---|\n| `--dock-timeout` | seconds; default 30 |\n| `level` | default `info` |\n\n" +
		"Call `Load(path, tide)`. The `berth-count` is 40.\n"
	tests := []struct{ file, old, new, want string }{
		{"go.mod", "1.21", "1.24", "doc.md:3 value It needs Go 1.21 > 1.24 since change"},
		{"ferry.go", "20_000", "30_000", "doc.md:3 value holds at most 20,000 > 30000 since change"},
		{"ferry.go", "8080", "9090", "doc.md:3 value The `harbour-port` is 8080 > 9090 since change"},
		{"cli.py", "=30", "=60", "doc.md:7 value seconds; default 30 > 60 since change"},
		{"cli.py", "'info'", "'warn'", "doc.md:8 value default ` info > warn since change"},
		{"ferry.go", ", tide int", "", "doc.md:10 signature Load(tide) since change"},
		{"ferry.go", "tide int", "sea int", ""},
		{"other.md", "x)", "x", "other.md:6 sample f(x since change"},
		{"other.md", "is 40", "is 60", "doc.md:10 value The `berth-count` is 40 > 60 since change"},
		{"ferry.go", "maxBoats = 20_000", "maxBoats = 20_000 // all", ""},
		{"cli.py", "default=30", "default=30.0, type=int", ""},
	}
	for _, tt := range tests {
		t.Run(tt.old, func(t *testing.T) {
			all["doc.md"], all["other.md"] = doc, "# Other\n\nThe `berth-count` is 40.\n\n```js\nf(x)\ng(y)\n```\n"
			p := newProject(t, all)
			p.commit("change", map[string]string{tt.file: strings.ReplaceAll(all[tt.file], tt.old, tt.new)})
			p.commit("later", map[string]string{"other.py": "x = 1\n"})
			var want []string
			if tt.want != "" {
				want = []string{tt.want}
			}
			p.want(p.check(Options{}), want...)
		})
	}
}
