package workspace

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"cairn/internal/base/owner"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/internal/store"
	"cairn/internal/task/cards"
	"cairn/internal/task/doctask"
	"cairn/internal/task/files"
	"cairn/internal/task/notes"
	"cairn/internal/task/taskgraph"
	"cairn/internal/text/fit"
	"cairn/internal/text/markdown"
	"cairn/internal/text/secret"
	"cairn/internal/text/walk"
	"cairn/models/bpe"
	"cairn/retriever"
)

// Tasks gives access to the tasks of a folder: its cards, the tasks in its documents, and
// the graphs of both; and to its notes. It needs no index and no owner: any number of
// processes can open it at once, and each answer reads the files. It is safe for concurrent
// use.
type Tasks struct {
	Cards     *cards.Store
	Notes     *notes.Store
	Documents *doctask.Docs
	Graph     *taskgraph.Tools
	// Budget bounds the answers to agents' requests without a budget.
	Budget fit.Budget
	// GraphEnabled reports whether the configuration lets agents use Graph.
	GraphEnabled bool
	// Enforce reports whether a task can start only after its dependencies are done.
	Enforce bool

	tree    *walk.Tree
	files   *files.Tree
	walk    *walk.Options
	indexed *walk.Options // walk with source code
	masks   *secret.Masks
}

// StartTaskRequest and StartTaskAnswer are those of Documents.StartTask.
type (
	StartTaskRequest = doctask.StartTaskRequest
	StartTaskAnswer  = doctask.StartTaskAnswer
)

// TaskOptions configures OpenTasks. Nil and the zero value mean the defaults.
type TaskOptions struct {
	// Person reports that a person uses the tasks through a command: Graph is enabled
	// whatever the configuration, and answers have no token budget.
	Person bool
	// Channel is the channel of graph requests that name none; "" means the configured one.
	Channel string
	// Searcher ranks documents for queries. Without one, every document is read.
	Searcher doctask.Searcher
	// LockWait is how long a write waits for another process; 0 means 5 s.
	LockWait time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// OpenTasks opens the tasks of a folder. It reads and creates no file before the first
// request.
func OpenTasks(sel config.Selection, cfg config.Config, o *TaskOptions) (*Tasks, error) {
	o = cmp.Or(o, &TaskOptions{})
	finishRestoreOf(sel, cfg)
	tree, err := walk.Open(sel.Roots()...)
	if err != nil {
		return nil, err
	}
	f := files.New(tree, &files.Options{LockWait: o.LockWait})
	documents := cfg.Walk()
	documents.Code = walk.CodeOff // tasks are in documents
	t := &Tasks{tree: tree, files: f, walk: documents, indexed: cfg.Walk(), masks: cfg.Masks(), GraphEnabled: cfg.DAG.Enabled, Enforce: cfg.DAG.Enabled && cfg.DAG.EnforceStart}
	t.Cards = cards.New(f, &cards.Options{Now: o.Now, EnforceStart: t.Enforce, Assignee: cfg.Author.Assignee(), Claude: cfg.Cards.Claude()})
	masks, err := cfg.Security.Masks()
	if err != nil {
		return nil, errors.Join(err, tree.Close())
	}
	t.Notes = notes.New(f, notes.Options{Source: receipts{t}, Masks: masks, By: cfg.Author.Assignee(), Now: o.Now})
	if !o.Person {
		t.Budget = fit.Budget{Tokens: cfg.Core.TokenLimit, Count: (&bpe.Counter{}).CountTokens}
	}
	t.Documents = doctask.New(f, &doctask.Options{Depth: cfg.DAG.ReferenceDepth, Budget: t.Budget, Now: o.Now, Searcher: o.Searcher, Walk: t.walk})
	t.Graph = taskgraph.New(t.Cards, t.Documents, taskgraph.Options{
		Enabled: cfg.DAG.Enabled || o.Person, DefaultChannel: cmp.Or(o.Channel, cfg.DAG.Channel),
		DefaultReady: cfg.DAG.DefaultReady, MaxReady: cfg.DAG.MaxReady,
		MaxInDegree: cfg.DAG.MaxInDegree, MaxOutDegree: cfg.DAG.MaxOutDegree, MaxChain: cfg.DAG.MaxChain,
	})
	return t, nil
}

// Close closes the folder.
func (t *Tasks) Close() error { return t.tree.Close() }

// Tasks opens the tasks of the workspace's folder. The caller closes them. Unless o has a
// Searcher, the workspace's keyword index ranks the documents.
func (w *Workspace) Tasks(o *TaskOptions) (*Tasks, error) {
	with := *cmp.Or(o, &TaskOptions{})
	with.Searcher = cmp.Or[doctask.Searcher](with.Searcher, keywords{w.Folder})
	return OpenTasks(w.selection, w.Config(), &with)
}

// keywords is a doctask.Searcher that uses the keyword index.
type keywords struct{ folder *owner.Folder }

// Documents implements doctask.Searcher.
func (k keywords) Documents(ctx context.Context, query, prefix string, limit int) ([]string, error) {
	if runes := []rune(query); len(runes) > retriever.MaxQuery {
		query = string(runes[:retriever.MaxQuery])
	}
	var paths []string
	q := retriever.Query{Text: query, Mode: retriever.Keyword, Filter: store.Filter{PathPrefix: prefix}}
	for len(paths) < limit {
		q.Limit = min(limit-len(paths), retriever.MaxLimit)
		a, err := index.SearchOp.Call(ctx, k.folder, q, nil)
		if err != nil {
			return paths, err
		}
		for _, r := range a.Results {
			if strings.HasSuffix(r.Path, ".md") {
				paths = append(paths, r.Path)
			}
		}
		if !a.HasMore || a.NextCursor == nil {
			break
		}
		q.Cursor = *a.NextCursor
	}
	return paths, nil
}

// Text returns the text of a file, such as a card, without masking secrets.
func (t *Tasks) Text(path string) ([]byte, error) {
	data, _, err := t.files.Read(path)
	if err != nil {
		return nil, err
	}
	text, _, err := markdown.TextOf(path, data, nil)
	return text, err
}

// Append adds lines to a file, which it creates if it is missing.
func (t *Tasks) Append(ctx context.Context, path, lines string) error {
	_, err := t.files.Edit(ctx, path, func(old []byte, _ files.Stamp) ([]byte, error) { return append(old, lines...), nil })
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	unlock, err := t.files.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return t.files.Create(path, []byte(lines))
}

// Stat returns the state of a file or folder. It follows no symbolic link.
func (t *Tasks) Stat(path string) (fs.FileInfo, error) { return t.files.Stat(path) }

// Paths returns the workspace paths of the documents to index, in order, with those of source
// code if code is set. It calls skip, if it is not nil, with the other files and folders. It
// does not read the files, some of which the indexer may skip because of their content.
func (t *Tasks) Paths(ctx context.Context, code bool, skip func(walk.Entry)) (paths []string, err error) {
	options := t.walk
	if code {
		options = t.indexed
	}
	err = t.files.Walk(ctx, options, func(e walk.Entry) error {
		switch {
		case e.Reason == walk.None && !e.Dir:
			paths = append(paths, e.Path)
		case e.Reason != walk.None && skip != nil:
			skip(e)
		}
		return nil
	})
	return paths, err
}

// Pictures maps the extensions of the files that Picture reads to their media types.
var Pictures = map[string]string{".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".svg": "image/svg+xml"}

// Picture returns the content of a picture. The rules for ignored, hidden and too large
// files apply to pictures as they do to documents.
func (t *Tasks) Picture(ctx context.Context, path string) ([]byte, error) {
	rules := *cmp.Or(t.walk, &walk.Options{})
	rules.Extensions = slices.Collect(maps.Keys(Pictures))
	if err := t.selected(ctx, &rules, path); err != nil {
		return nil, err
	}
	content, _, err := t.files.Read(path)
	return content, err
}

// selected returns an error that is fs.ErrNotExist if the rules do not select the file.
func (t *Tasks) selected(ctx context.Context, rules *walk.Options, path string) error {
	found := false
	err := t.files.WalkPaths(ctx, rules, []string{path}, func(e walk.Entry) error {
		found = found || e.Reason == walk.None && !e.Dir && e.Path == path
		return nil
	})
	if err == nil && !found {
		err = fs.ErrNotExist
	}
	return err
}
