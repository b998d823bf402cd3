package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"cairn/internal/base/atomicfile"
	"cairn/internal/base/home"
	"cairn/internal/text/markdown"
	"cairn/internal/text/secret"
	"cairn/internal/text/walk"
)

// Config holds the settings of a folder's config.toml. The zero value is not useful: start
// with Default. A configuration belongs to the folder, which may come from an untrusted
// source. It cannot run commands or choose the embedding model. Unless the user trusts the
// folder, it cannot open a connection, raise a limit or name a file outside.
type Config struct {
	Core      Core      `toml:"core"`
	Parser    Parser    `toml:"parser"`
	Security  Security  `toml:"security"`
	MCP       MCP       `toml:"mcp"`
	Author    Author    `toml:"author"`
	Cards     Cards     `toml:"cards"`
	Watcher   Watcher   `toml:"watcher"`
	Search    Search    `toml:"search"`
	Retrieval Retrieval `toml:"retrieval"`
	Budgets   Budgets   `toml:"budgets"`
	DAG       DAG       `toml:"dag"`
	Usage     Usage     `toml:"usage"`
	Store     Store     `toml:"store"`
	Questions Questions `toml:"questions"`
	Log       Log       `toml:"log"`
	// Warnings lists settings without effect: those of the file in its order, then those
	// of the environment.
	Warnings []Warning `toml:"-"`
	// FromEnvironment lists the keys that the environment has set, in the order of the
	// variables.
	FromEnvironment []string `toml:"-"`
}

// Core holds the limits of all tools.
type Core struct {
	TokenLimit int `toml:"token_limit" comment:"most tokens of an answer if the caller sets no budget"`
}

// Parser selects the files to index.
type Parser struct {
	IgnorePatterns []string `toml:"ignore_patterns" comment:"files that are not indexed, in the syntax of .gitignore; .cairnignore files override it"`
	Extensions     []string `toml:"extensions" comment:"further file name extensions to index, such as \".go\""`
	Code           string   `toml:"code" comment:"index source code: auto (in projects), on or off"`
}

// Security configures the masking of secrets. Files that look like secrets are never
// indexed.
type Security struct {
	Mask           bool     `toml:"mask" comment:"mask keys, tokens and passwords in the index, in searches and in documents that are read; cairn scene always masks them"`
	SecretPatterns []string `toml:"secret_patterns" comment:"regular expressions of secrets to mask, in addition to the built-in ones"`
	ExtraPatterns  []string `toml:"extra_patterns" comment:"further regular expressions of secrets to mask"`
}

// MCP configures the tool server.
type MCP struct {
	SearchLimit int      `toml:"search_limit" comment:"results of cairn search without --limit; the default of the tool is 5"`
	RateLimit   bool     `toml:"rate_limit" comment:"refuse calls over HTTP beyond the published limits"`
	Tools       []string `toml:"tools" comment:"tools that agents see: groups of auto, core, tasks, dag, docs, tools, stages, all, or names of tools; auto depends on the content of the folder"`
	Servers     []string `toml:"servers" comment:"MCP servers whose tools cairn calls, such as \"time: uvx mcp-server-time\"; the user approves their definitions"`
}

// Cards configures task cards.
type Cards struct {
	ClaudeTasks string `toml:"claude_tasks" comment:"name of a task list of Claude Code whose tasks are cards, too; none if it is empty"`
}

// Claude returns the folder of the task list of Claude Code, "" for none.
func (c Cards) Claude() string {
	top := os.Getenv("CLAUDE_CONFIG_DIR")
	if home, err := os.UserHomeDir(); top == "" && err == nil {
		top = filepath.Join(home, ".claude")
	}
	if c.ClaudeTasks == "" || !filepath.IsAbs(top) {
		return ""
	}
	return filepath.Join(top, "tasks", c.ClaudeTasks)
}

// Author names the person who works in the folder.
type Author struct {
	Name  string `toml:"name" comment:"assignee of new cards without one"`
	Email string `toml:"email" comment:"assignee of new cards if name is empty"`
}

// Assignee returns the assignee of new cards without one, "" for none.
func (a Author) Assignee() string { return cmp.Or(a.Name, a.Email) }

// Watcher configures how cairn notices changes of files.
type Watcher struct {
	Enabled    bool `toml:"enabled" comment:"servers keep the index up to date with the files; cairn watch always does"`
	DebounceMS int  `toml:"debounce_ms" comment:"most milliseconds to wait before indexing a change; a fifth of them without another change is enough"`
}

// Search configures the ranking.
type Search struct {
	SemanticWeight           float64  `toml:"semantic_weight" comment:"weight of the vector leg in hybrid mode; the two weights add up to 1"`
	KeywordWeight            float64  `toml:"keyword_weight"`
	EmbeddingCacheMaxEntries int      `toml:"embedding_cache_max_entries" comment:"query vectors kept in memory"`
	DefaultMode              string   `toml:"default_mode" comment:"hybrid, semantic or keyword"`
	FolderContext            []string `toml:"folder_context" comment:"purposes of folders, such as \"docs/api: the HTTP interface\"; answers show the purpose with results from the folder"`
}

// Contexts returns the descriptions in FolderContext by the paths of the folders. The root
// is ".".
func (s *Search) Contexts() map[string]string {
	all := map[string]string{}
	for _, line := range s.FolderContext {
		if dir, text, ok := strings.Cut(line, ": "); ok {
			all[path.Clean(strings.Trim(dir, "/"))] = strings.TrimSpace(text)
		}
	}
	return all
}

// Retrieval configures the re-ranker. It has an effect only in a folder that the user trusts.
type Retrieval struct {
	Rerank   string `toml:"rerank" comment:"folder of an ONNX cross-encoder that reorders the best passages of a search; empty for none"`
	RerankMS int    `toml:"rerank_ms" comment:"most milliseconds of the re-ranker per search"`
}

// Budgets holds the token budgets of scenes by kind of work.
type Budgets struct {
	Feature  int `toml:"feature" comment:"tokens of cairn scene --budget feature; the other kinds likewise"`
	Bugfix   int `toml:"bugfix"`
	Refactor int `toml:"refactor"`
	Review   int `toml:"review"`
}

// Of returns the budget of a kind of work: feature, bugfix, refactor or review.
func (b Budgets) Of(kind string) int { return int(byTag(reflect.ValueOf(b), kind).Int()) }

// DAG configures the use of the dependencies of tasks. Each key also has its own environment
// variable, see dagVariables.
type DAG struct {
	Enabled        bool   `toml:"enabled" comment:"enable the dag_* tools; cairn dag always works"`
	Channel        string `toml:"channel" comment:"tasks for requests without a channel: cards, or a document such as /plans/a.md"`
	EnforceStart   bool   `toml:"enforce_on_status_change" comment:"if enabled is true, refuse to set a card active before its dependencies are done"`
	DefaultReady   int    `toml:"default_ready_tasks_limit"`
	MaxReady       int    `toml:"max_ready_tasks_limit"`
	MaxInDegree    int    `toml:"max_in_degree_warning"`
	MaxOutDegree   int    `toml:"max_out_degree_warning"`
	MaxChain       int    `toml:"max_chain_length_warning"`
	ReferenceDepth int    `toml:"reference_depth" comment:"depth to which cairn follows the references of a task, 1 to 5"`
}

// Usage configures learning from use.
type Usage struct {
	Record       bool `toml:"record" comment:"record which documents are read and which tools are fetched after each search"`
	HalfLifeDays int  `toml:"half_life_days" comment:"days in which the count of an observation halves; 0 keeps the counts"`
}

// Store configures an index on a server. It is used only by commands with --store config,
// and only in a folder that the user trusts.
type Store struct {
	Address string `toml:"address" comment:"address of the index for --store config and CAIRN_STORE=config, such as qdrant://HOST:6334/COLLECTION"`
}

// Questions configures question tasks.
type Questions struct {
	WebSearch string `toml:"web_search" comment:"search engine with JSON answers, such as https://search.example.com/search?q={query}&format=json; empty for none"`
	KeepDays  int    `toml:"keep_days" comment:"days for which ended question tasks and their logs are kept; 0 keeps them for ever"`
	Intent    string `toml:"intent" comment:"what analyses a question: rules, or model for the language model in the environment, if there is one"`
}

// Keep returns the time for which ended question tasks are kept: a century for 0 days.
func (q Questions) Keep() time.Duration {
	return time.Duration(cmp.Or(q.KeepDays, 36_500)) * 24 * time.Hour
}

// Log configures the messages of servers on standard error. A folder cannot make them log
// the content of requests.
type Log struct {
	Format string `toml:"format" comment:"format of the log on standard error: text or json"`
	Level  string `toml:"level" comment:"lowest level of the log: debug, info, warn, error, or auto (info for serve and worker, else warn)"`
}

// HalfLife returns the time in which a count halves without observations. A negative value
// means never.
func (c Usage) HalfLife() time.Duration {
	if c.HalfLifeDays == 0 {
		return -1
	}
	return time.Duration(c.HalfLifeDays) * 24 * time.Hour
}

// Warning reports a part of the configuration that has no effect.
type Warning struct {
	Where string // file:line, or the name of the environment variable
	What  string
}

func (w Warning) String() string { return w.Where + ": " + w.What }

// Default returns the settings of a folder without a configuration.
func Default() Config {
	return Config{
		Core:      Core{TokenLimit: 32000},
		Parser:    Parser{IgnorePatterns: []string{"target/", "node_modules/", ".git/"}, Code: "auto"},
		Security:  Security{Mask: true},
		MCP:       MCP{SearchLimit: 10, RateLimit: true, Tools: []string{"auto"}},
		Watcher:   Watcher{Enabled: true, DebounceMS: 500},
		Search:    Search{SemanticWeight: 0.7, KeywordWeight: 0.3, EmbeddingCacheMaxEntries: 1000, DefaultMode: "hybrid"},
		Retrieval: Retrieval{RerankMS: 400},
		Budgets:   Budgets{Feature: 6000, Bugfix: 4000, Refactor: 5000, Review: 3000},
		DAG: DAG{Channel: "cards", EnforceStart: true, DefaultReady: 10, MaxReady: 100,
			MaxInDegree: 10, MaxOutDegree: 10, MaxChain: 20, ReferenceDepth: 3},
		Usage:     Usage{Record: true, HalfLifeDays: 90},
		Questions: Questions{KeepDays: 7, Intent: "rules"},
		Log:       Log{Format: "text", Level: "auto"},
	}
}

// TOML returns the configuration in the format of config.toml, with comments.
func (c Config) TOML() ([]byte, error) { return toml.Marshal(c) }

// Load returns the defaults, overridden by root/.cairn/config.toml or, if there is none,
// root/.cuedeck/config.toml, and then by environ, in the form of os.Environ:
// CAIRN_CORE__TOKEN_LIMIT=8000 sets core.token_limit. Variables with the prefix CUEDECK_ do
// the same; those with CAIRN_ take precedence. A missing file is not an error. Unknown keys
// are warnings, and so are values that need a trusted folder. An invalid value in the file
// is an error with its place, one in the environment usually a warning, see assign. The
// Config that Load returns with an error lacks the file.
func Load(root string, environ []string) (Config, error) {
	cfg, err := loadFile(root)
	invalid := cfg.override(environ)
	if err == nil && invalid == nil {
		err = cfg.check()
	}
	if err != nil || invalid != nil {
		cfg = Default()
		invalid = cfg.override(environ)
	}
	return cfg, errors.Join(err, invalid)
}

// loadFile returns the defaults, overridden by the file of the folder root.
func loadFile(root string) (Config, error) {
	cfg := Default()
	marker, source, err := find(root, markers...)
	if err != nil {
		return cfg, fmt.Errorf("reading the configuration: %w", err)
	}
	if source == nil {
		return cfg, nil
	}
	name := marker + "/config.toml"
	if err := cfg.decode(name, source); err != nil {
		return cfg, err
	}
	switch listed, configured := home.Trusts(root, source); {
	case configured:
	case listed:
		cfg.restrict(name, "the file has changed since you trusted it; see it and trust it with `cairn trust DIR`")
	default:
		cfg.restrict(name, "you do not trust this folder; see cairn trust")
	}
	return cfg, nil
}

// Trust trusts the folder root with its present configuration. It returns the values that
// have an effect only because of that, by their keys.
func Trust(root string) (map[string]any, error) {
	marker, source, err := find(root, markers...)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	full := Default()
	if err := full.decode(marker+"/config.toml", source); err != nil {
		return nil, err
	}
	restricted := full
	restricted.restrict("", "")
	values := map[string]any{}
	for _, key := range guarded {
		if have := full.field(key); !same(have, restricted.field(key)) {
			values[key] = have.Interface()
		}
	}
	return values, home.Trust(root, source)
}

// maxFile bounds the size of a configuration in bytes.
const maxFile = 1 << 20

// find reads the configuration of the folder root, without following links and without the
// byte order mark that some editors write. It returns the first marker with a configuration.
// If there is none, source is nil, and marker is the first that exists, or "".
func find(root string, markers ...string) (marker string, source []byte, err error) {
	tree, err := walk.Open(walk.Root{Dir: root})
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, nil
	} else if err != nil {
		return "", nil, err
	}
	defer tree.Close()
	for _, m := range markers {
		source, _, err := tree.ReadFile(m+"/config.toml", maxFile)
		if !errors.Is(err, fs.ErrNotExist) {
			return m, bytes.TrimPrefix(source, []byte("\ufeff")), err
		}
		if info, err := tree.Stat(m); marker == "" && err == nil && info.IsDir() {
			marker = m
		}
	}
	return marker, nil, nil
}

// Stamp identifies the present state of the configuration file of the folder root, and of the
// list of trusted folders if there is such a file. It reads no file.
func Stamp(root string) (stamp string) {
	for _, m := range markers {
		if file := home.Stamp(filepath.Join(root, m, "config.toml")); file != "" {
			stamp += fmt.Sprintln(m, file, home.TrustStamp())
		}
	}
	return stamp
}

// Find returns the marker of a folder, "" for none, and whether it has a configuration.
func Find(root string) (marker string, configured bool) {
	marker, source, err := find(root, markers...)
	return marker, source != nil || err != nil
}

// Initial returns the configuration that cairn init writes in the folder root: the defaults,
// overridden by .cuedeck/config.toml. carried lists the keys whose values come from that file
// and differ.
func Initial(root string) (c Config, carried []string, err error) {
	c = Default()
	before := c
	_, source, err := find(root, ".cuedeck")
	if err != nil || source == nil {
		return c, nil, err
	}
	err = c.decode(".cuedeck/config.toml", source)
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return c, nil, err
	}
	for _, key := range c.Keys() {
		was, _ := before.Setting(key)
		if now, _ := c.Setting(key); !reflect.DeepEqual(was, now) { // a key of Keys is valid
			carried = append(carried, key)
		}
	}
	return c, carried, nil
}

// Write writes the configuration of the folder root in a marker, which it creates if
// necessary. Unless overwrite is set, it fails with fs.ErrExist if the file exists. It
// returns the path of the file.
func Write(root, marker string, c Config, overwrite bool) (path string, err error) {
	text, err := c.TOML()
	if err == nil {
		err = writeFile(root, marker, text, overwrite)
	}
	return filepath.Join(root, marker, "config.toml"), err
}

func writeFile(root, marker string, text []byte, overwrite bool) error {
	r, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer r.Close()
	name := filepath.Join(marker, "config.toml")
	if _, err := r.Lstat(name); err == nil && !overwrite {
		return fs.ErrExist
	}
	return atomicfile.WriteIn(r, name, text, 0o644)
}

// guarded lists the settings that start a program, open a connection, raise a limit or name a file outside.
// The file of a folder that the user does not trust can only lower the limits.
var guarded = []string{
	"core.token_limit", "mcp.rate_limit", "search.embedding_cache_max_entries",
	"dag.default_ready_tasks_limit", "dag.max_ready_tasks_limit", "dag.reference_depth", "retrieval.rerank", "retrieval.rerank_ms", "store.address", "questions.web_search", "questions.keep_days", "mcp.servers", "cards.claude_tasks",
}

// restrict resets the guarded settings that exceed their defaults, with a warning. name is
// the file of the settings, and why says what is missing.
func (c *Config) restrict(name, why string) {
	standard := Default()
	for _, key := range guarded {
		have, most := c.field(key), standard.field(key)
		if same(have, most) || have.CanInt() && have.Int() < most.Int() && key != "questions.keep_days" { // which deletes
			continue
		}
		have.Set(most)
		c.Warnings = append(c.Warnings, Warning{name, key + " is ignored: it starts a program, opens a connection, raises a limit or names a file outside, and " + why})
	}
}

// same reports whether two settings have the same value.
func same(a, b reflect.Value) bool {
	return reflect.DeepEqual(a.Interface(), b.Interface()) || a.Kind() == reflect.Slice && a.Len()+b.Len() == 0
}

// withoutEffect lists keys of earlier versions that are ignored without a warning.
var withoutEffect = []string{"core.hash_algo"}

// typeNames are the names of Go types in messages.
var typeNames = map[string]string{
	"int": "a whole number", "float64": "a number", "bool": "true or false", "string": "a string", "[]string": "a list of strings",
}

// decode overrides c by settings in TOML. name is the file in messages.
func (c *Config) decode(name string, source []byte) error {
	err := toml.NewDecoder(bytes.NewReader(source)).DisallowUnknownFields().Decode(c)
	if missing, ok := errors.AsType[*toml.StrictMissingError](err); ok {
		for _, e := range missing.Errors {
			line, _ := e.Position()
			if key := strings.Join(e.Key(), "."); !slices.Contains(withoutEffect, key) {
				c.Warnings = append(c.Warnings, Warning{fmt.Sprintf("%s:%d", name, line), fmt.Sprintf("unknown key %q", key)})
			}
		}
		err = toml.Unmarshal(source, c)
	}
	if bad, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := bad.Position()
		message := strings.TrimPrefix(bad.Error(), "toml: ")
		if have, field, ok := strings.Cut(strings.TrimPrefix(message, "cannot decode TOML "), " into struct field "); ok {
			_, want, _ := strings.Cut(field, " of type ")
			message = fmt.Sprintf("want %s, not a TOML %s", cmp.Or(typeNames[want], want), have)
		}
		return fmt.Errorf("%s:%d:%d: %s", name, line, column, message)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Masks returns the rules for the secrets to mask: the built-in ones and the patterns.
func (s *Security) Masks() (*secret.Masks, error) {
	return secret.New(slices.Concat(s.SecretPatterns, s.ExtraPatterns)...)
}

// Masks returns the rules for the secrets to mask in documents; nil without security.mask.
func (c *Config) Masks() *secret.Masks {
	if !c.Security.Mask {
		return nil
	}
	masks, _ := c.Security.Masks() // check has compiled the patterns
	return masks
}

// Walk returns the options that select the files to index. Package walk always skips folders
// of dependencies and of build output.
func (c *Config) Walk() *walk.Options {
	o := &walk.Options{Extensions: c.Extensions(), Ignore: c.Parser.IgnorePatterns, MaxSize: markdown.MaxSize}
	switch c.Parser.Code {
	case "auto":
		o.Code = walk.CodeAuto
	case "on":
		o.Code = walk.CodeOn
	}
	return o
}

// Extensions returns the extensions of documents in lower case, including those of
// parser.extensions.
func (c *Config) Extensions() []string {
	exts := markdown.Extensions()
	for _, ext := range c.Parser.Extensions {
		exts = append(exts, strings.ToLower(ext))
	}
	return exts
}
