package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSetIn(t *testing.T) {
	for _, c := range []struct{ name, source, key, value, want string }{
		{"a new file", "", "core.token_limit", "8000", "[core]\ntoken_limit = 8000\n"},
		{"a key that is there", "# mine\n[core]\n# why\ntoken_limit = 1 # old\n\n[mcp]\nsearch_limit = 7\n", "core.token_limit", "9", "# mine\n[core]\n# why\ntoken_limit = 9 # old\n\n[mcp]\nsearch_limit = 7\n"},
		{"a comment after a string", "[parser]\ncode = 'on#' \t# it's # mine\n", "parser.code", "off", "[parser]\ncode = 'off' \t# it's # mine\n"},
		{"no comment", "[search]\nfolder_context = ['a: # b', \"c: # d\"]\n", "search.folder_context", "x: y", "[search]\nfolder_context = ['x: y']\n"},
		{"a new key of a table", "[core]\nhash_algo = 'sha256'\n\n[mcp]\nsearch_limit = 7\n", "core.token_limit", "9", "[core]\nhash_algo = 'sha256'\ntoken_limit = 9\n\n[mcp]\nsearch_limit = 7\n"},
		{"a new table", "[core]\ntoken_limit = 9", "watcher.enabled", "false", "[core]\ntoken_limit = 9\n\n[watcher]\nenabled = false\n"},
		{"a list", "[parser]\n", "parser.extensions", ".go, .py", "[parser]\nextensions = ['.go', '.py']\n"},
		{"an array", "", "security.extra_patterns", `["foo", 'a{1,3}']`, "[security]\nextra_patterns = ['foo', 'a{1,3}']\n"},
		{"no array", "", "security.extra_patterns", "[a-z]{6}", "[security]\nextra_patterns = ['[a-z]{6}']\n"},
		{"an empty array", "", "security.extra_patterns", "[]", "[security]\nextra_patterns = []\n"},
		{"a key of the same name elsewhere", "[watcher]\nenabled = true\n[dag]\nenabled = true\n", "dag.enabled", "false", "[watcher]\nenabled = true\n[dag]\nenabled = false\n"},
		{"line ends of Windows", "# mine\r\n[core]\r\ntoken_limit = 1\r\n", "core.token_limit", "9", "# mine\r\n[core]\r\ntoken_limit = 9\r\n"},
		{"a new table with line ends of Windows", "[core]\r\ntoken_limit = 9\r\n", "watcher.enabled", "false", "[core]\r\ntoken_limit = 9\r\n\r\n[watcher]\r\nenabled = false\r\n"},
		{"no end of line", "[mcp]", "mcp.rate_limit", "false", "[mcp]\nrate_limit = false\n"},
	} {
		got, err := setIn("config.toml", []byte(c.source), c.key+"="+c.value)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v (-want +got):\n%s", c.name, err, cmp.Diff(c.want, string(got)))
		}
	}
	for _, c := range []struct{ source, key, value, want string }{
		{"", "core.unknown", "1", "unknown setting"},
		{"", "core", "1", "unknown setting"},
		{"", "core.token_limit", "many", "core.token_limit: want a whole number"},
		{"", "core.token_limit", "0", "core.token_limit is 0"},
		{"[core", "core.token_limit", "9", "config.toml:1"},
		{"[parser]\nextensions = [\n  '.go',\n]\n", "parser.extensions", ".py", "by hand"},
		{"core = {token_limit = 4}\n", "core.token_limit", "9", "by hand"},
	} {
		got, err := setIn("config.toml", []byte(c.source), c.key+"="+c.value)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("setting %s to %s in %q: %q, %v, want an error with %q", c.key, c.value, c.source, got, err, c.want)
		}
	}
}

func TestSettings(t *testing.T) {
	cfg := Default()
	for _, key := range cfg.Keys() {
		if _, err := cfg.Setting(key); err != nil {
			t.Errorf("Setting(%s): %v", key, err)
		}
	}
	if v, err := cfg.Setting("core.token_limit"); err != nil || v != 32000 {
		t.Errorf("core.token_limit is %v, %v", v, err)
	}
	_, err := cfg.Setting("warnings.x")
	if _, ok := errors.AsType[*UnknownKeyError](err); !ok {
		t.Errorf("Setting of an unknown key: %v", err)
	}
	root := t.TempDir()
	write(t, filepath.Join(root, ".cuedeck/config.toml"), "# theirs\n")
	set, err := Set(root, "core.token_limit", "77")
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(set.Path); !strings.HasSuffix(filepath.ToSlash(set.Path), ".cuedeck/config.toml") || string(text) != "# theirs\n\n[core]\ntoken_limit = 77\n" {
		t.Errorf("Set: %+v: %q", set, text)
	}
}

// TestSetWeights: the weights of the search are set as a pair.
func TestSetWeights(t *testing.T) {
	root := t.TempDir()
	for _, c := range []struct{ key, value, other, want string }{
		{"search.semantic_weight", "0.5", "search.keyword_weight", "0.5"},
		{"search.semantic_weight", "0.9", "search.keyword_weight", "0.1"},
		{"search.keyword_weight", "1", "search.semantic_weight", "0"},
	} {
		set, err := Set(root, c.key, c.value)
		if err != nil || set.Other != c.other || set.OtherValue != c.want {
			t.Errorf("Set(%s, %s) = %+v, %v, want %s %s", c.key, c.value, set, err, c.other, c.want)
		}
		cfg, err := Load(root, nil)
		if value, _ := cfg.Setting(c.key); err != nil || fmt.Sprint(value) != c.value {
			t.Errorf("then %s is %v, %v", c.key, value, err)
		}
	}
	for _, bad := range []string{"1.5", "much", "-0.1", "NaN"} {
		if _, err := Set(root, "search.semantic_weight", bad); err == nil {
			t.Errorf("search.semantic_weight can be %s", bad)
		}
	}
}

// TestByteOrderMark: a configuration that begins with a byte order mark is read, changed and
// trusted like one without it.
func TestByteOrderMark(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, ".cairn/config.toml"), "\ufeff[mcp]\nrate_limit = false # mine\n")
	if _, err := Trust(root); err != nil {
		t.Fatal(err)
	}
	if _, err := Set(root, "mcp.search_limit", "7"); err != nil {
		t.Fatal(err)
	}
	cfg, err := Load(root, nil)
	if err != nil || cfg.MCP.RateLimit || cfg.MCP.SearchLimit != 7 || len(cfg.Warnings) > 0 {
		t.Errorf("%+v, %v, %v", cfg.MCP, cfg.Warnings, err)
	}
}
