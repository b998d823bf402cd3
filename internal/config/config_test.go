package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/home"
	"cairn/internal/walk"
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
		{"configuration", "author.name is reserved and has no effect in this version"},
	}
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
[search]
embedding_cache_max_entries = 10000000
[dag]
default_ready_tasks_limit = 1000
max_ready_tasks_limit = 5
reference_depth = 5
[store]
address = "qdrant://evil.example:6334/docs"
`)
	want := Default()
	want.DAG.MaxReady = 5
	want.Core.TokenLimit = 50000
	for _, key := range []string{"core.token_limit", "mcp.rate_limit", "search.embedding_cache_max_entries", "dag.default_ready_tasks_limit", "dag.reference_depth", "store.address"} {
		want.Warnings = append(want.Warnings, Warning{".cairn/config.toml", key + " is ignored: it opens a connection or raises a limit, and you do not trust this folder; see cairn trust"})
	}
	environ := []string{"CAIRN_CORE__TOKEN_LIMIT=50000"}
	if got, err := Load(root, environ); err != nil || !cmp.Equal(got, want) {
		t.Errorf("Load: %v (-want +got):\n%s", err, cmp.Diff(want, got))
	}
	if err := home.Trust(root, true); err != nil {
		t.Fatal(err)
	}
	got, err := Load(root, nil)
	if err != nil || got.Core.TokenLimit != 64000 || got.MCP.RateLimit || got.Search.EmbeddingCacheMaxEntries != 10000000 || got.DAG.ReferenceDepth != 5 || got.Store.Address == "" || got.Warnings != nil {
		t.Errorf("of a trusted folder: %+v, %v", got, err)
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

// TestReservedKeysAreToldAndNoOther checks that each key either works or is reported
// to have no effect. config.txtar of cmd/cairn shows the keys of a search that work;
// the tables of the task graph and of usage work as a whole.
func TestReservedKeysAreToldAndNoOther(t *testing.T) {
	working := []string{
		"core.token_limit", "core.hash_algo", "parser.ignore_patterns", "parser.extensions", "mcp.search_limit", "mcp.rate_limit",
		"watcher.enabled", "watcher.debounce_ms", "log.format", "log.level", "store.address", "questions.web_search", "security.mask", "security.secret_patterns", "security.extra_patterns",
		"search.semantic_weight", "search.keyword_weight", "search.embedding_cache_max_entries", "search.default_mode",
	}
	c := Config{}
	c.warnReserved()
	told := map[string]bool{}
	for _, w := range c.Warnings {
		key, _, _ := strings.Cut(w.What, " ")
		told[key] = true
	}
	empty := map[string]bool{ // their default is the zero value
		"author.name": true, "author.email": true,
	}
	tables := reflect.TypeFor[Config]()
	for i := range tables.NumField() {
		table := tables.Field(i)
		if table.Type.Kind() != reflect.Struct {
			continue
		}
		for j := range table.Type.NumField() {
			key := table.Tag.Get("toml") + "." + table.Type.Field(j).Tag.Get("toml")
			if works := slices.Contains(working, key) || table.Name == "DAG" || table.Name == "Usage"; works == (told[key] || empty[key]) {
				t.Errorf("%s: working %v, told as reserved %v, want one of them", key, works, told[key])
			}
		}
	}
}

func TestLoadConfigRefuses(t *testing.T) {
	for _, c := range []struct{ toml, env, want string }{
		{toml: "[core]\ntoken_limit = \"many\"\n", want: "config.toml:2:"},
		{toml: "[core\n", want: "config.toml:1:"},
		{toml: "[core]\ntoken_limit = 0\n", want: "core.token_limit is 0"},
		{toml: "[core]\nhash_algo = \"md5\"\n", want: `core.hash_algo is "md5"`},
		{toml: "[search]\nsemantic_weight = 0.9\n", want: "add up to"},
		{toml: "[search]\nsemantic_weight = nan\n", want: "search.semantic_weight is NaN"},
		{toml: "[search]\ndefault_mode = \"fuzzy\"\n", want: "search.default_mode"},
		{toml: "[parser]\nextensions = [\"../x\"]\n", want: "parser.extensions"},
		{toml: "[parser]\nignore_patterns = [\"docs/[a\"]\n", want: "parser.ignore_patterns: ignore pattern"},
		{toml: "[search]\nembedding_cache_max_entries = 0\n", want: "search.embedding_cache_max_entries is 0, want 1 to 1e+07"},
		{env: "CAIRN_CORE__TOKEN_LIMIT=lots", want: "CAIRN_CORE__TOKEN_LIMIT"},
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

func TestDAGVariablesAreChecked(t *testing.T) {
	root := t.TempDir()
	for _, bad := range []string{"TASK_DAG_ENABLED=yes", "DAG_MAX_READY_TASKS_LIMIT=many", "REFERENCE_EXTRACTION_DEPTH=6"} {
		name, _, _ := strings.Cut(bad, "=")
		key := dagVariables[name]
		if _, err := Load(root, []string{bad}); err == nil || !strings.Contains(err.Error(), name) && !strings.Contains(err.Error(), key) {
			t.Errorf("%s: error %v, want one that names it", bad, err)
		}
	}
}
