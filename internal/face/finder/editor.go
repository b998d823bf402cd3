package finder

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Editor returns the command of $VISUAL or $EDITOR, split into words, nil if neither is set.
func Editor() []string {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if words := strings.Fields(os.Getenv(name)); len(words) > 0 {
			return words
		}
	}
	return nil
}

// OpenAt returns the command that opens a file at a line. For an unknown editor it omits the
// line.
func OpenAt(editor []string, file string, line int) []string {
	args := append([]string{}, editor...)
	at := strconv.Itoa(line)
	switch name := strings.TrimSuffix(filepath.Base(editor[0]), ".exe"); name {
	case "code", "code-insiders", "codium", "cursor", "windsurf":
		return append(args, "--goto", file+":"+at)
	case "subl", "zed", "hx", "helix":
		return append(args, file+":"+at)
	case "vi", "vim", "nvim", "gvim", "nano", "emacs", "emacsclient", "micro", "kak", "joe", "ne", "mg":
		return append(args, "+"+at, file)
	}
	return append(args, file)
}
