package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/text/secret"
	"cairn/internal/text/walk"
)

// ranges maps numeric settings to their smallest and largest values.
var ranges = map[string][2]float64{
	"core.token_limit":                   {1, 10_000_000},
	"mcp.search_limit":                   {1, 50},
	"watcher.debounce_ms":                {0, 60_000},
	"search.semantic_weight":             {0, 1},
	"search.keyword_weight":              {0, 1},
	"search.embedding_cache_max_entries": {1, 1e7},
	"retrieval.rerank_ms":                {1, 60_000},
	"budgets.feature":                    {1, MaxScene},
	"budgets.bugfix":                     {1, MaxScene},
	"budgets.refactor":                   {1, MaxScene},
	"budgets.review":                     {1, MaxScene},
	"dag.default_ready_tasks_limit":      {1, 1e6},
	"dag.max_ready_tasks_limit":          {1, 1e6},
	"dag.max_in_degree_warning":          {1, 1e6},
	"dag.max_out_degree_warning":         {1, 1e6},
	"dag.max_chain_length_warning":       {1, 1e6},
	"dag.reference_depth":                {1, 5},
	"usage.half_life_days":               {0, 36_500},
	"questions.keep_days":                {0, 36_500},
}

// MaxScene bounds the tokens of a scene.
const MaxScene = 128_000

// words maps settings to their allowed values.
var words = map[string][]string{
	"search.default_mode": {"hybrid", "keyword", "semantic"},
	"log.format":          {"text", "json"},
	"questions.intent":    {"rules", "model"},
	"log.level":           {"auto", "debug", "info", "warn", "error"},
	"parser.code":         {"auto", "on", "off"},
}

// check fails if a setting has an invalid value.
func (c *Config) check() error {
	for _, key := range c.Keys() {
		if err := c.checkSetting(key); err != nil {
			return err
		}
	}
	return c.checkWeights()
}

// checkSetting fails if one setting has an invalid value.
func (c *Config) checkSetting(key string) error {
	table, name, _ := strings.Cut(key, ".")
	f := c.field(table, name)
	if r, ok := ranges[key]; ok {
		got := 0.0
		if f.CanInt() {
			got = float64(f.Int())
		} else {
			got = f.Float()
		}
		if !(got >= r[0] && got <= r[1]) {
			return fmt.Errorf("configuration: %s is %g, want %g to %g", key, got, r[0], r[1])
		}
	}
	if w, ok := words[key]; ok && !slices.Contains(w, f.String()) {
		return fmt.Errorf("configuration: %s is %q, want {%s}", key, f.String(), strings.Join(w, ","))
	}
	switch key {
	case "store.address":
		if a := c.Store.Address; a != "" && !strings.HasPrefix(a, "qdrant://") && !strings.HasPrefix(a, "qdrants://") {
			return fmt.Errorf("configuration: store.address is %q, want qdrant://HOST:PORT/COLLECTION, or qdrants:// for TLS", a)
		}
	case "questions.web_search":
		if web := c.Questions.WebSearch; web != "" && (!strings.HasPrefix(web, "https://") && !strings.HasPrefix(web, "http://") || !strings.Contains(web, "{query}")) {
			return fmt.Errorf("configuration: questions.web_search is %q, want an address with {query}, such as https://search.example.com/search?q={query}&format=json", web)
		}
	case "author.name", "author.email":
		if v := f.String(); utf8.RuneCountInString(v) > maxAuthor || strings.ContainsFunc(v, unicode.IsControl) {
			return fmt.Errorf("configuration: %s is %.60q, want at most %d characters in one line", key, v, maxAuthor)
		}
	case "cards.claude_tasks":
		if v := c.Cards.ClaudeTasks; v != "" && (!filepath.IsLocal(v) || strings.ContainsAny(v, `/\`) || v[0] == '.' || strings.ContainsFunc(v, unicode.IsControl)) {
			return fmt.Errorf("configuration: cards.claude_tasks is %.60q, want the name of a folder in ~/.claude/tasks", v)
		}
	case "parser.extensions":
		for _, ext := range c.Parser.Extensions {
			if !strings.HasPrefix(ext, ".") || strings.ContainsAny(ext, `/\`) {
				return fmt.Errorf("configuration: parser.extensions holds %q, want a dot and letters, such as \".go\"", ext)
			}
		}
	case "parser.ignore_patterns":
		for _, pattern := range c.Parser.IgnorePatterns {
			if err := walk.CheckPattern(pattern); err != nil {
				return fmt.Errorf("configuration: parser.ignore_patterns: %w", err)
			}
		}
	case "mcp.servers":
		for _, line := range c.MCP.Servers {
			if name, target, ok := strings.Cut(line, ":"); !ok || strings.TrimSpace(name) == "" || strings.TrimSpace(target) == "" {
				return fmt.Errorf("configuration: mcp.servers holds %.60q, want a name and a command or URL, such as \"time: uvx mcp-server-time\"", line)
			}
		}
	case "search.folder_context":
		for _, line := range c.Search.FolderContext {
			if dir, text, ok := strings.Cut(line, ": "); !ok || strings.TrimSpace(dir) == "" || strings.TrimSpace(text) == "" {
				return fmt.Errorf("configuration: search.folder_context holds %.60q, want a folder and what it is for, such as \"docs/api: the HTTP interface\"", line)
			}
		}
	case "security.secret_patterns", "security.extra_patterns":
		if _, err := secret.New(f.Interface().([]string)...); err != nil {
			return fmt.Errorf("configuration: %s: %w", key, err)
		}
	}
	return nil
}

// maxAuthor bounds the assignee of a card in characters.
const maxAuthor = 50

// checkWeights fails if the weights of the two legs do not add up to 1.
func (c *Config) checkWeights() error {
	if sum := c.Search.SemanticWeight + c.Search.KeywordWeight; sum < 0.999 || sum > 1.001 {
		return fmt.Errorf("configuration: search.semantic_weight and search.keyword_weight add up to %g, want 1", sum)
	}
	return nil
}
