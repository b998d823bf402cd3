package workspace

import (
	"cairn/internal/config"
	"cairn/internal/index"
	"cairn/internal/job"
	"cairn/internal/owner"
)

// The names below moved to packages config, job and toolbox. They stay here until
// their callers have followed.
type (
	Config          = config.Config
	UsageConfig     = config.Usage
	LogConfig       = config.Log
	Selection       = config.Selection
	SelectOptions   = config.SelectOptions
	Root            = config.Root
	Rule            = config.Rule
	RefusedError    = config.RefusedError
	UnknownKeyError = config.UnknownKeyError
	Progress        = job.Progress
	Holder          = owner.Holder
	LockError       = owner.LockError

	ExplainRequest   = index.ExplainRequest
	IndexRequest     = index.IndexRequest
	IndexReport      = index.IndexReport
	Status           = index.Status
	RebuildError     = index.RebuildError
	WatchEvent       = index.WatchEvent
	DocumentsRequest = index.DocumentsRequest
	Documents        = index.Documents
	DocumentEntry    = index.DocumentEntry
	HeadingEntry     = index.HeadingEntry
)

// Rules of package config.
const (
	RuleFlag    = config.RuleFlag
	RuleCairn   = config.RuleCairn
	RuleCue     = config.RuleCue
	RuleParent  = config.RuleParent
	RuleCurrent = config.RuleCurrent
)

// MaxDocuments is index.MaxDocuments.
const MaxDocuments = index.MaxDocuments

// KeywordsLacking is index.KeywordsLacking.
const KeywordsLacking = index.KeywordsLacking

// ErrNoIndex is index.ErrNoIndex.
var ErrNoIndex = index.ErrNoIndex

// Select is config.Select.
func Select(o SelectOptions) (Selection, error) { return config.Select(o) }

// DefaultConfig is config.Default.
func DefaultConfig() Config { return config.Default() }

// LoadConfig is config.Load.
func LoadConfig(root string, environ []string) (Config, error) { return config.Load(root, environ) }

// Set is config.Set.
func Set(root, key, value string) (path string, err error) { return config.Set(root, key, value) }
