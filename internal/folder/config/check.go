package config

import (
	"fmt"
	"reflect"
	"regexp"

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

// forms maps settings of strings to the regular expression of a valid string, and to what it
// is. Every string of a list must be valid.
var forms = map[string]struct{ valid, want string }{
	"search.default_mode":   {`hybrid|keyword|semantic`, "{hybrid,keyword,semantic}"},
	"log.format":            {`text|json`, "{text,json}"},
	"log.level":             {`auto|debug|info|warn|error`, "{auto,debug,info,warn,error}"},
	"questions.intent":      {`rules|model`, "{rules,model}"},
	"parser.code":           {`auto|on|off`, "{auto,on,off}"},
	"store.address":         {`|qdrants?://.*`, "qdrant://HOST:PORT/COLLECTION, or qdrants:// for TLS"},
	"questions.web_search":  {`|https?://.*\{query\}.*`, "an address with {query}, such as https://search.example.com/search?q={query}&format=json"},
	"author.name":           {`[^\p{Cc}]{0,50}`, "at most 50 characters in one line"},
	"author.email":          {`[^\p{Cc}]{0,50}`, "at most 50 characters in one line"},
	"cards.claude_tasks":    {`|[^\p{Cc}./\\][^\p{Cc}/\\]*`, "the name of a folder in ~/.claude/tasks"},
	"parser.extensions":     {`\.[^/\\]*`, `a dot and letters, such as ".go"`},
	"mcp.servers":           {`[^:]*[^:\s][^:]*:.*\S.*`, `a name and a command or URL, such as "time: uvx mcp-server-time"`},
	"search.folder_context": {`\s*[^:\s].*?: .*\S.*`, `a folder and what it is for, such as "docs/api: the HTTP interface"`},
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
	f := c.field(key)
	if r, ok := ranges[key]; ok {
		got := f.Convert(reflect.TypeFor[float64]()).Float()
		if !(got >= r[0] && got <= r[1]) {
			return fmt.Errorf("configuration: %s is %.15g, want %.15g to %.15g", key, got, r[0], r[1])
		}
	}
	list, isList := f.Interface().([]string)
	is := "holds"
	if !isList {
		list, is = []string{f.String()}, "is"
	}
	for _, s := range list {
		if form, ok := forms[key]; ok && !regexp.MustCompile("(?s)^(?:"+form.valid+")$").MatchString(s) {
			return fmt.Errorf("configuration: %s %s %.200q, want %s", key, is, s, form.want)
		}
		if key == "parser.ignore_patterns" {
			if err := walk.CheckPattern(s); err != nil {
				return fmt.Errorf("configuration: %s: %w", key, err)
			}
		}
	}
	if key == "security.secret_patterns" || key == "security.extra_patterns" {
		if _, err := secret.New(list...); err != nil {
			return fmt.Errorf("configuration: %s: %w", key, err)
		}
	}
	return nil
}

// checkWeights fails if the weights of the two legs do not add up to 1.
func (c *Config) checkWeights() error {
	if sum := c.Search.SemanticWeight + c.Search.KeywordWeight; sum < 0.999 || sum > 1.001 {
		return fmt.Errorf("configuration: search.semantic_weight and search.keyword_weight add up to %g, want 1", sum)
	}
	return nil
}
