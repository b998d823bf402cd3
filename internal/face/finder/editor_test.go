package finder

import (
	"strings"
	"testing"
)

func TestOpenAt(t *testing.T) {
	for _, c := range []struct{ editor, want string }{
		{"vim", "vim +7 /w/a.md"},
		{"/usr/bin/nvim -R", "/usr/bin/nvim -R +7 /w/a.md"},
		{"code --wait", "code --wait --goto /w/a.md:7"},
		{"zed", "zed /w/a.md:7"},
		{"notepad.exe", "notepad.exe /w/a.md"},
	} {
		if got := strings.Join(OpenAt(strings.Fields(c.editor), "/w/a.md", 7), " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.editor, got, c.want)
		}
	}
}
