package service

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unit has names that each format must escape.
var unit = Unit{Program: "/opt/my tools/cairn", Args: []string{"serve", `notes=/home/ann/50% "big" $HOME \ & <x>`}, Env: map[string]string{"CAIRN_HOME": "/h 1", "CAIRN_MCP__TOOLS": "a&b"}}

// recorder runs no program. It records the commands and fails those that begin with a prefix.
type recorder struct {
	ran  []string
	fail []string
}

func (r *recorder) run(args ...string) error {
	line := strings.Join(args, " ")
	r.ran = append(r.ran, line)
	for _, prefix := range r.fail {
		if strings.HasPrefix(line, prefix) {
			return errors.New("refused")
		}
	}
	return nil
}

func TestService(t *testing.T) {
	for _, c := range []struct {
		system, file, text               string
		install, again, remove, isActive []string
	}{
		{"linux", "config/systemd/user/cairn.service",
			"[Unit]\nDescription=cairn serve\n\n[Service]\nExecStart=\"/opt/my tools/cairn\" \"serve\" \"notes=/home/ann/50%% \\\"big\\\" $$HOME \\\\ & <x>\"\nEnvironment=\"CAIRN_HOME=/h 1\"\nEnvironment=\"CAIRN_MCP__TOOLS=a&b\"\nRestart=on-failure\nRestartSec=2\n\n[Install]\nWantedBy=default.target\n",
			[]string{"systemctl --user daemon-reload", "systemctl --user enable cairn.service", "systemctl --user restart cairn.service"},
			[]string{"systemctl --user disable --now cairn.service"},
			[]string{"systemctl --user disable --now cairn.service", "systemctl --user daemon-reload"},
			[]string{"systemctl --user --quiet is-active cairn.service"}},
		{"darwin", "home/Library/LaunchAgents/cairn.plist", "<string>notes=/home/ann/50% &#34;big&#34; $HOME \\ &amp; &lt;x&gt;</string></array>\n<key>EnvironmentVariables</key><dict><key>CAIRN_HOME</key><string>/h 1</string><key>CAIRN_MCP__TOOLS</key><string>a&amp;b</string></dict>",
			[]string{"launchctl bootstrap gui/7 FILE"}, []string{"launchctl bootout gui/7/cairn"}, []string{"launchctl bootout gui/7/cairn"}, []string{"launchctl print gui/7/cairn"}},
		{"windows", "config/cairn/service.xml", "<Command>/opt/my tools/cairn</Command><Arguments>&#34;serve&#34; &#34;notes=",
			[]string{"schtasks /Create /F /TN cairn /XML FILE", "schtasks /Run /TN cairn"}, []string{"schtasks /End /TN cairn", "schtasks /Delete /F /TN cairn"},
			[]string{"schtasks /End /TN cairn", "schtasks /Delete /F /TN cairn"}, []string{"schtasks /Query /TN cairn"}},
	} {
		dir := t.TempDir()
		var r recorder
		m, err := For(c.system, filepath.Join(dir, "home"), filepath.Join(dir, "config"), 7, r.run)
		if err != nil {
			t.Fatal(err)
		}
		if want := filepath.Join(dir, filepath.FromSlash(c.file)); m.File != want {
			t.Errorf("%s: %s, want %s", c.system, m.File, want)
		}
		ran := func(step string, want ...string) {
			for i := range want {
				want[i] = strings.ReplaceAll(want[i], "FILE", m.File)
			}
			if !slices.Equal(r.ran, want) {
				t.Errorf("%s, %s: ran %q, want %q", c.system, step, r.ran, want)
			}
			r.ran = nil
		}
		if removed, err := m.Remove(); removed || err != nil {
			t.Errorf("%s: removed what is not there: %v", c.system, err)
		}
		ran("nothing to remove")
		if err := m.Install(unit); err != nil {
			t.Fatalf("%s: %v", c.system, err)
		}
		ran("install", slices.Clone(c.install)...)
		text, err := os.ReadFile(m.File)
		if err != nil || !strings.Contains(string(text), c.text) {
			t.Errorf("%s: %v\n%s\nwant %s", c.system, err, text, c.text)
		}
		if c.system != "linux" {
			for d := xml.NewDecoder(strings.NewReader(string(text))); ; {
				if _, err := d.Token(); err == io.EOF {
					break
				} else if err != nil {
					t.Fatalf("%s: %v\n%s", c.system, err, text)
				}
			}
		}
		if !m.Running() {
			t.Errorf("%s does not run", c.system)
		}
		ran("state", c.isActive...)
		if err := m.Install(unit); err != nil {
			t.Error(err)
		}
		ran("install again", append(slices.Clone(c.again), c.install...)...)
		if removed, err := m.Remove(); !removed || err != nil || m.Installed() {
			t.Errorf("%s: %v, %v", c.system, removed, err)
		}
		ran("remove", c.remove...)
	}
}

// TestServiceFails: a service that the system cannot start leaves its unit, one that it cannot
// stop stays, and a path with a line break is refused.
func TestServiceFails(t *testing.T) {
	r := recorder{fail: []string{"systemctl --user restart"}}
	dir := t.TempDir()
	m, err := For("linux", dir, dir, 0, r.run)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Install(Unit{Program: "/cairn", Args: []string{"a=/x\n[Service]"}}); err == nil || m.Installed() {
		t.Errorf("a line break: %v", err)
	}
	if err := m.Install(unit); err == nil || !strings.Contains(err.Error(), "could not start it: systemctl --user restart cairn.service: refused") || !m.Installed() {
		t.Errorf("not started: %v", err)
	}
	r.fail = []string{"systemctl --user disable"}
	if removed, err := m.Remove(); removed || err == nil || !m.Installed() {
		t.Errorf("not stopped: %v, %v", removed, err)
	}
	r.fail = []string{"systemctl"} // the service does not run
	if removed, err := m.Remove(); !removed || err != nil {
		t.Errorf("not running: %v, %v", removed, err)
	}
	if _, err := For("plan9", "", "", 0, nil); err == nil {
		t.Error("plan9 has a manager")
	}
}
