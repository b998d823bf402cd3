package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/text/walk"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestLoadConfigDefaults(t *testing.T) {
	got, err := Load(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(), got); diff != "" {
		t.Errorf("a folder without a configuration differs from the defaults (-want +got):\n%s", diff)
	}
}

func TestLoadConfig(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, ".cuedeck/config.toml"), "[core]\ntoken_limit = 7\n")
	want := Default()
	want.Core.TokenLimit = 7
	if got, err := Load(root, nil); err != nil || !cmp.Equal(got, want) {
		t.Errorf("from .cuedeck: %v, %s", err, cmp.Diff(want, got))
	}

	write(t, filepath.Join(root, ".cairn/config.toml"), `
[core]
token_limit = 9000
hash_algorithm = "md5"

[author]
name = "Ann"

[plugins]
run = "rm -rf /"

[workspace]
roots = ["/etc"]
`)
	want = Default()
	want.Core.TokenLimit = 16000
	want.Author.Name = "Ann"
	want.Search.SemanticWeight, want.Search.KeywordWeight = 0.6, 0.4
	want.Security.ExtraPatterns = []string{"pem-[0-9]+", "key-[0-9]+"}
	want.MCP.RateLimit = false
	want.Warnings = []Warning{
		{".cairn/config.toml:4", `unknown key "core.hash_algorithm"`},
		{".cairn/config.toml:9", `unknown key "plugins"`},
		{".cairn/config.toml:12", `unknown key "workspace"`},
		{"CAIRN_CORE__LIMIT", `unknown key "core.limit"`},
	}
	want.FromEnvironment = []string{"core.token_limit", "search.semantic_weight", "core.token_limit", "search.keyword_weight", "security.extra_patterns", "mcp.rate_limit"}
	got, err := Load(root, []string{
		"CAIRN_CORE__TOKEN_LIMIT=16000", "CUEDECK_CORE__TOKEN_LIMIT=1", "CUEDECK_SEARCH__SEMANTIC_WEIGHT=0.6", "CAIRN_SEARCH__KEYWORD_WEIGHT=.4",
		"CAIRN_SECURITY__EXTRA_PATTERNS=pem-[0-9]+, key-[0-9]+", "CAIRN_MCP__RATE_LIMIT=false", "CAIRN_WORKSPACE=/x", "CAIRN_CORE__LIMIT=3", "HOME=/h",
	})
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("Load: %v (-want +got):\n%s", err, cmp.Diff(want, got))
	}
}

// TestFolderRaisesNoLimit: the file of a folder can lower limits. It raises none and names
// no store unless the user trusts the folder; the environment may.
func TestFolderRaisesNoLimit(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, ".cairn/config.toml"), `
[core]
token_limit = 64000
[mcp]
rate_limit = false
servers = ["evil: evil --now"]
[search]
embedding_cache_max_entries = 10000000
[dag]
default_ready_tasks_limit = 1000
max_ready_tasks_limit = 5
reference_depth = 5
[store]
address = "qdrant://evil.example:6334/docs"
[questions]
web_search = "https://evil.example/?q={query}"
keep_days = 1
`)
	want := Default()
	want.DAG.MaxReady = 5
	want.Core.TokenLimit = 50000
	for _, key := range []string{"core.token_limit", "mcp.rate_limit", "search.embedding_cache_max_entries", "dag.default_ready_tasks_limit", "dag.reference_depth", "store.address", "questions.web_search", "questions.keep_days", "mcp.servers"} {
		want.Warnings = append(want.Warnings, Warning{".cairn/config.toml", key + " is ignored: it starts a program, opens a connection, raises a limit or names a file outside, and you do not trust this folder; see cairn trust"})
	}
	want.FromEnvironment = []string{"core.token_limit"}
	environ := []string{"CAIRN_CORE__TOKEN_LIMIT=50000"}
	if got, err := Load(root, environ); err != nil || !cmp.Equal(got, want) {
		t.Errorf("Load: %v (-want +got):\n%s", err, cmp.Diff(want, got))
	}
	values, err := Trust(root)
	if err != nil || len(values) != 9 || values["store.address"] != "qdrant://evil.example:6334/docs" {
		t.Fatalf("Trust = %v, %v", values, err)
	}
	got, err := Load(root, nil)
	if err != nil || got.Core.TokenLimit != 64000 || got.MCP.RateLimit || got.Search.EmbeddingCacheMaxEntries != 10000000 || got.DAG.ReferenceDepth != 5 || got.Store.Address == "" || got.Warnings != nil {
		t.Errorf("of a trusted folder: %+v, %v", got, err)
	}
	if _, err := Set(root, "core.token_limit", "65000"); err != nil {
		t.Fatal(err)
	}
	if got, err := Load(root, nil); err != nil || got.Core.TokenLimit != 65000 || got.Warnings != nil {
		t.Errorf("after the user changed a setting: %+v, %v", got, err)
	}
	write(t, filepath.Join(root, ".cairn/config.toml"), "[store]\naddress = \"qdrant://other.example:6334/docs\"\n")
	got, err = Load(root, nil)
	if err != nil || got.Store.Address != "" || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0].What, "has changed since you trusted it") {
		t.Errorf("after a change from elsewhere: %+v, %v", got, err)
	}
}

// TestConfigIsAFile: a link, a pipe or a file without end in its place is an error, and
// does not hold the command up.
func TestConfigIsAFile(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "config.toml")
	write(t, outside, "[core]\ntoken_limit = 7\n")
	for _, target := range []string{outside, "/dev/zero", "missing"} {
		root := t.TempDir()
		if err := errors.Join(os.Mkdir(filepath.Join(root, ".cairn"), 0o755), os.Symlink(target, filepath.Join(root, ".cairn/config.toml"))); err != nil {
			t.Skip(err)
		}
		if cfg, err := Load(root, nil); err == nil || cfg.Core.TokenLimit == 7 {
			t.Errorf("a link to %s is followed: %v", target, err)
		}
		if _, err := Set(root, "core.token_limit", "8"); err == nil {
			t.Errorf("Set wrote over a link to %s", target)
		}
	}
	root := t.TempDir()
	write(t, filepath.Join(root, ".cairn/config.toml"), strings.Repeat("#", maxFile+1))
	if _, err := Load(root, nil); !errors.Is(err, walk.ErrSize) {
		t.Errorf("a file of more than %d bytes: %v, want %v", maxFile, err, walk.ErrSize)
	}
}

func TestLoadConfigRefuses(t *testing.T) {
	for _, c := range []struct{ toml, env, want string }{
		{toml: "[core]\ntoken_limit = \"many\"\n", want: "config.toml:2:"},
		{toml: "[core\n", want: "config.toml:1:"},
		{toml: "[core]\ntoken_limit = 0\n", want: "core.token_limit is 0"},
		{toml: "[search]\nsemantic_weight = 0.9\n", want: "add up to"},
		{toml: "[search]\nsemantic_weight = nan\n", want: "search.semantic_weight is NaN"},
		{toml: "[search]\ndefault_mode = \"fuzzy\"\n", want: "search.default_mode"},
		{toml: "[parser]\nextensions = [\"../x\"]\n", want: "parser.extensions"},
		{toml: "[parser]\nignore_patterns = [\"docs/[a\"]\n", want: "parser.ignore_patterns: ignore pattern"},
		{toml: "[search]\nembedding_cache_max_entries = 0\n", want: "search.embedding_cache_max_entries is 0, want 1 to 10000000"},
		{toml: "[author]\nname = \"Ann\\nBob\"\n", want: "author.name"},
		{toml: "[budgets]\nbugfix = 0\n", want: "budgets.bugfix is 0, want 1 to 128000"},
		{env: "CAIRN_SECURITY__EXTRA_PATTERNS=*.pem", want: "CAIRN_SECURITY__EXTRA_PATTERNS"},
		{env: "CAIRN_USAGE__RECORD=perhaps", want: "want true or false"},
	} {
		root := t.TempDir()
		write(t, filepath.Join(root, ".cairn/config.toml"), c.toml)
		_, err := Load(root, []string{c.env})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("toml %q, env %q: error %v, want one with %q", c.toml, c.env, err, c.want)
		}
	}
}

// TestBadEnvironment: a bad value of the environment is a warning, and what was set
// before it holds.
func TestBadEnvironment(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, ".cairn/config.toml"), "[mcp]\nsearch_limit = 7\n")
	for bad, want := range map[string]string{
		"TASK_DAG_ENABLED=yes":                  `TASK_DAG_ENABLED: "yes": want true or false; false is used`,
		"DAG_MAX_READY_TASKS_LIMIT=many":        `DAG_MAX_READY_TASKS_LIMIT: "many": want a whole number; 100 is used`,
		"REFERENCE_EXTRACTION_DEPTH=6":          "REFERENCE_EXTRACTION_DEPTH: 6 is outside 1 to 5; 5 is used",
		"REFERENCE_EXTRACTION_DEPTH=0":          "REFERENCE_EXTRACTION_DEPTH: 0 is outside 1 to 5; 1 is used",
		"REFERENCE_EXTRACTION_DEPTH=abc":        `REFERENCE_EXTRACTION_DEPTH: "abc": want a whole number; 3 is used`,
		"CAIRN_CORE__TOKEN_LIMIT=lots":          `CAIRN_CORE__TOKEN_LIMIT: "lots": want a whole number; 32000 is used`,
		"CAIRN_MCP__SEARCH_LIMIT=51":            `CAIRN_MCP__SEARCH_LIMIT: "51": configuration: mcp.search_limit is 51, want 1 to 50; 7 is used`,
		"CUEDECK_SEARCH__DEFAULT_MODE=fuzzy":    `CUEDECK_SEARCH__DEFAULT_MODE: "fuzzy": configuration: search.default_mode is "fuzzy", want {hybrid,keyword,semantic}; hybrid is used`,
		"CAIRN_SEARCH__SEMANTIC_WEIGHT=0.5":     "environment: configuration: search.semantic_weight and search.keyword_weight add up to 0.8, want 1; 0.7 and 0.3 are used",
		"CAIRN_PARSER__EXTENSIONS=[\".go\", 1]": `CAIRN_PARSER__EXTENSIONS: "[\".go\", 1]": configuration: parser.extensions holds "[\".go\"", want a dot and letters, such as ".go"; [] is used`,
	} {
		cfg, err := Load(root, []string{bad})
		if err != nil || len(cfg.Warnings) != 1 || cfg.Warnings[0].String() != want {
			t.Errorf("%s: %v, warnings %v, want %s", bad, err, cfg.Warnings, want)
		}
		if depth, clamped := map[string]int{"REFERENCE_EXTRACTION_DEPTH=6": 5, "REFERENCE_EXTRACTION_DEPTH=0": 1}[bad]; clamped && cfg.DAG.ReferenceDepth != depth {
			t.Errorf("%s: the depth is %d, want %d", bad, cfg.DAG.ReferenceDepth, depth)
		}
	}
}

// TestInvalidVariableIsReportedOnce: the error of an invalid variable names it once, also with
// another error of the file.
func TestInvalidVariableIsReportedOnce(t *testing.T) {
	root := t.TempDir()
	for source, want := range map[string]string{"": "", "[core]\ntoken_limit = 0\n": "", "[core": ".cairn/config.toml:1:5: expected ']' to close table name\n"} {
		write(t, filepath.Join(root, ".cairn/config.toml"), source)
		want += `environment variable CAIRN_SECURITY__MASK="maybe": want true or false`
		if _, err := Load(root, []string{"CAIRN_SECURITY__MASK=maybe"}); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", source, err, want)
		}
	}
}

// TestInitialConfig: what cairn init writes has the values of .cuedeck/config.toml.
func TestInitialConfig(t *testing.T) {
	root := t.TempDir()
	cfg, carried, err := Initial(root)
	if err != nil || carried != nil || cfg.DAG.Enabled {
		t.Errorf("without a file: %+v, %v, %v", cfg, carried, err)
	}
	path := filepath.Join(root, ".cuedeck/config.toml")
	write(t, path, "[core]\ntoken_limit = 777\n[dag]\nenabled = true\n[cache]\nenabled = true\n")
	cfg, carried, err = Initial(root)
	if err != nil || cfg.Core.TokenLimit != 777 || !cfg.DAG.Enabled || !slices.Equal(carried, []string{"core.token_limit", "dag.enabled"}) {
		t.Errorf("with one: %+v, %v, %v", cfg, carried, err)
	}
	if want := []Warning{{".cuedeck/config.toml:5", `unknown key "cache"`}}; !slices.Equal(cfg.Warnings, want) {
		t.Errorf("warnings %v, want %v", cfg.Warnings, want)
	}
	write(t, path, "[core]\ntoken_limit = 0\n")
	if _, _, err := Initial(root); err == nil {
		t.Error("a value that does not fit is carried over")
	}
}

// TestWrongTypesAreNamed: a value of the wrong type gives its place and the type to write.
func TestWrongTypesAreNamed(t *testing.T) {
	for source, want := range map[string]string{
		"[core]\ntoken_limit = \"many\"\n":       "config.toml:2:15: want a whole number, not a TOML string",
		"[search]\nsemantic_weight = true\n":     "config.toml:2:19: want a number, not a TOML boolean",
		"[security]\nmask = 1\n":                 "config.toml:2:8: want true or false, not a TOML integer",
		"[parser]\nignore_patterns = \"a, b\"\n": "config.toml:2:19: want a list of strings, not a TOML string",
	} {
		c := Default()
		if err := c.decode("config.toml", []byte(source)); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", source, err, want)
		}
	}
}

// TestUsageSettings: the half-life is what the configuration says, 0 is none; a bad value
// in the environment is a warning with the default used.
func TestUsageSettings(t *testing.T) {
	for days, want := range map[int]time.Duration{0: -1, 90: 90 * 24 * time.Hour} {
		if got := (Usage{HalfLifeDays: days}).HalfLife(); got != want {
			t.Errorf("half_life_days %d is %v, want %v", days, got, want)
		}
	}
	for value, ok := range map[string]bool{"30": true, "0": true, "-1": false, "x": false} {
		cfg, err := Load(t.TempDir(), []string{"CAIRN_USAGE__HALF_LIFE_DAYS=" + value, "CAIRN_USAGE__RECORD=false"})
		warned := len(cfg.Warnings) > 0 && cfg.Usage.HalfLifeDays == Default().Usage.HalfLifeDays
		if err != nil || warned == ok || cfg.Usage.Record {
			t.Errorf("CAIRN_USAGE__HALF_LIFE_DAYS=%s: %+v, %v", value, cfg.Usage, err)
		}
	}
}

// TestNumbersHaveRanges: every setting that is a number has a row in ranges.
func TestNumbersHaveRanges(t *testing.T) {
	c := Default()
	for _, key := range c.Keys() {
		f := c.field(key)
		if _, ok := ranges[key]; !ok && (f.CanInt() || f.CanFloat()) {
			t.Errorf("%s has no row in ranges", key)
		}
	}
}
