package invisible

import (
	"slices"
	"testing"
)

func TestFind(t *testing.T) {
	for text, want := range map[string][]string{
		"plain text, 日本語, \U0001f468\u200d\U0001f4bb": nil,
		"\ufeffa byte order mark":                     nil,
		"a\u200bb\u200cc":                             {"zero-width"},
		"a\u202eb":                                    {"bidi"},
		"a\U000e0041\U000e0042 and \u2066":            {"hidden", "bidi"},
	} {
		var got []string
		for _, f := range Find(text) {
			got = append(got, f.Kind)
		}
		if !slices.Equal(got, want) {
			t.Errorf("Find(%+q): %q, want %q", text, got, want)
		}
	}
}
