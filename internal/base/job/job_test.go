package job

import "testing"

func TestProgress(t *testing.T) {
	for want, p := range map[string]Progress{
		"text: 2 of 3":           {Phase: "text", Done: 2, Total: 3},
		"scan: 2":                {Phase: "scan", Done: 2},
		"step a is done, 1 of 2": {Phase: "step a is done, 1 of 2"},
		"vectors: 0 of 3":        {Phase: "vectors", Total: 3},
	} {
		if got := p.String(); got != want {
			t.Errorf("%+v is written as %q, want %q", p, got, want)
		}
	}
}
