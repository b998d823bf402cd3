// Package service makes the system start `cairn serve` at login and restart it after a failure:
// with systemd, launchd or the task scheduler of Windows. It does not serve.
package service

import (
	"embed"
	"encoding/xml"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"cairn/internal/base/atomicfile"
)

// Unit is what the system starts.
type Unit struct {
	Program string
	Args    []string
	Env     map[string]string // the values of variables by their names
}

// Manager is the program of the system that starts services.
type Manager struct {
	File string // of the unit, named as its template
	// The commands after the file was written, before it is removed and after that, and the
	// command whose success means that the service runs.
	start, stop, after [][]string
	state              []string
	run                func(args ...string) error
}

// For returns the manager of an operating system, named as in runtime.GOOS. config is the
// configuration folder of the user, and run runs a program.
func For(system, home, config string, uid int, run func(args ...string) error) (*Manager, error) {
	m := &Manager{run: run}
	switch system {
	case "linux":
		m.File = filepath.Join(config, "systemd", "user", "cairn.service")
		reload := []string{"systemctl", "--user", "daemon-reload"}
		m.start = [][]string{reload, {"systemctl", "--user", "enable", "cairn.service"}, {"systemctl", "--user", "restart", "cairn.service"}}
		m.stop, m.after = [][]string{{"systemctl", "--user", "disable", "--now", "cairn.service"}}, [][]string{reload}
		m.state = []string{"systemctl", "--user", "--quiet", "is-active", "cairn.service"}
	case "darwin":
		domain := fmt.Sprintf("gui/%d", uid)
		m.File = filepath.Join(home, "Library", "LaunchAgents", "cairn.plist")
		m.start = [][]string{{"launchctl", "bootstrap", domain, m.File}}
		m.stop, m.state = [][]string{{"launchctl", "bootout", domain + "/cairn"}}, []string{"launchctl", "print", domain + "/cairn"}
	case "windows":
		m.File = filepath.Join(config, "cairn", "service.xml")
		m.start = [][]string{{"schtasks", "/Create", "/F", "/TN", "cairn", "/XML", m.File}, {"schtasks", "/Run", "/TN", "cairn"}}
		m.stop, m.state = [][]string{{"schtasks", "/End", "/TN", "cairn"}, {"schtasks", "/Delete", "/F", "/TN", "cairn"}}, []string{"schtasks", "/Query", "/TN", "cairn"}
	default:
		return nil, fmt.Errorf("cairn does not know how %s starts services; start `cairn serve` yourself", system)
	}
	return m, nil
}

// Install writes the unit, and starts it in place of an earlier one. If the system cannot start
// it, the unit stays, for the next login.
func (m *Manager) Install(u Unit) error {
	for _, word := range slices.Concat([]string{u.Program}, u.Args, slices.Sorted(maps.Values(u.Env))) {
		if strings.ContainsFunc(word, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return fmt.Errorf("%q has a control character, which a unit cannot contain", word)
		}
	}
	var b strings.Builder
	if err := units.ExecuteTemplate(&b, filepath.Base(m.File), u); err != nil {
		return err
	}
	if m.Installed() {
		m.all(m.stop) // it may not run
	}
	if err := os.MkdirAll(filepath.Dir(m.File), 0o755); err != nil {
		return err
	}
	if err := atomicfile.Write(m.File, []byte(b.String()), 0o600); err != nil {
		return err
	}
	if err := m.all(m.start); err != nil {
		return fmt.Errorf("wrote %s, but could not start it: %w", m.File, err)
	}
	return nil
}

// Remove stops the service and removes its unit. It reports whether there was one.
func (m *Manager) Remove() (bool, error) {
	if !m.Installed() {
		return false, nil
	}
	if err := m.all(m.stop); err != nil && m.Running() {
		return false, err
	}
	err := os.Remove(m.File)
	m.all(m.after) // the manager forgets the unit at the latest when it starts again
	return err == nil, err
}

// Installed reports whether there is a unit.
func (m *Manager) Installed() bool {
	_, err := os.Stat(m.File)
	return err == nil
}

// Running reports whether the service runs.
func (m *Manager) Running() bool { return m.run(m.state...) == nil }

// all runs the commands in order and returns the first error.
func (m *Manager) all(commands [][]string) error {
	for _, args := range commands {
		if err := m.run(args...); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(args, " "), err)
		}
	}
	return nil
}

var functions = template.FuncMap{
	"unit": func(word string) string { // systemd.syntax(7), and the specifiers and variables of ExecStart
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "$", "$$").Replace(word) + `"`
	},
	"variable": func(word string) string { // Environment has no variables
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(word) + `"`
	},
	"xml": func(word string) (string, error) {
		var b strings.Builder
		err := xml.EscapeText(&b, []byte(word))
		return b.String(), err
	},
	"quote": func(word string) string { return `"` + word + `"` },
}

//go:embed cairn.service cairn.plist service.xml
var files embed.FS

// units are the templates of units.
var units = template.Must(template.New("").Funcs(functions).ParseFS(files, "*"))
