package host

import (
	"bufio"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// firstUser is the lowest user ID of a person, by the convention of Linux and the BSDs.
const firstUser = 1000

// otherUsers reports whether people other than the user of this process can log in to this
// machine. It reads the local list of users, which lacks the users of a directory service.
func otherUsers() bool {
	switch runtime.GOOS {
	case "windows":
		return false
	case "darwin":
		homes, _ := filepath.Glob("/Users/[^.]*")
		self, _ := os.UserHomeDir()
		return slices.ContainsFunc(homes, func(home string) bool { return home != self && home != "/Users/Shared" })
	}
	text, err := os.ReadFile("/etc/passwd")
	return err == nil && listsOthers(string(text), os.Getuid())
}

// listsOthers reports whether passwd contains a person other than self with a login shell.
func listsOthers(passwd string, self int) bool {
	lines := bufio.NewScanner(strings.NewReader(passwd))
	for lines.Scan() {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) != 7 {
			continue
		}
		uid, err := strconv.Atoi(fields[2])
		shell := filepath.Base(fields[6])
		if err == nil && uid >= firstUser && uid != self && shell != "nologin" && shell != "false" {
			return true
		}
	}
	return false
}
