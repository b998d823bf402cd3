package workspace

import (
	"cmp"
	"context"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"cairn/internal/config"
	"cairn/internal/fit"
	"cairn/internal/markdown"
	"cairn/internal/store"
	"cairn/internal/task/cards"
	"cairn/internal/task/doctask"
	"cairn/internal/task/files"
	"cairn/internal/task/taskgraph"
	"cairn/internal/walk"
	"cairn/models/bpe"
	"cairn/retriever"
)

// Tasks are the tasks of a folder: its cards, those in its documents, and the
// graphs of both. They need no index and no owner: any number of processes hold
// them open at once, and each looks at the files for every answer. It is safe
// for concurrent use.
type Tasks struct {
	Cards     *cards.Store
	Documents *doctask.Docs
	Graph     *taskgraph.Tools
	// Budget bounds an answer to an agent whose request sets no budget.
	Budget fit.Budget
	// GraphEnabled is whether the configuration lets Graph answer agents.
	GraphEnabled bool
	// Enforce is whether a task may start only when its dependencies are done.
	Enforce bool

	tree  *walk.Tree
	files *files.Tree
	walk  *walk.Options
}

// TaskOptions are the knobs of OpenTasks. Nil and the zero value mean the defaults.
type TaskOptions struct {
	// Person lets Graph answer where the configuration has it off, for commands.
	Person bool
	// Channel is where the graph tools look when a request names no channel; ""
	// is what the configuration says.
	Channel string
	// Searcher ranks documents for queries; without one every document is looked at.
	Searcher doctask.Searcher
	// LockWait is how long a write waits for another process; 0 means 5 s.
	LockWait time.Duration
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// OpenTasks opens the tasks of a folder. It reads and creates nothing until it
// is asked for something.
func OpenTasks(sel config.Selection, cfg config.Config, o *TaskOptions) (*Tasks, error) {
	if o == nil {
		o = &TaskOptions{}
	}
	tree, err := walk.Open(sel.Roots()...)
	if err != nil {
		return nil, err
	}
	f := files.New(tree, &files.Options{LockWait: o.LockWait})
	documents := cfg.Walk()
	documents.Code = walk.CodeOff // tasks are in documents
	t := &Tasks{tree: tree, files: f, walk: documents, GraphEnabled: cfg.DAG.Enabled, Enforce: cfg.DAG.Enabled && cfg.DAG.EnforceStart}
	t.Cards = cards.New(f, &cards.Options{Now: o.Now, EnforceStart: t.Enforce, Assignee: cfg.Author.Assignee()})
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
func (t *Tasks) Close() error {
	t.Cards.Close()
	return t.tree.Close()
}

// Tasks opens the tasks of the workspace's folder; the caller closes them. Unless
// o names another Searcher, the workspace's index is asked for documents.
func (w *Workspace) Tasks(o *TaskOptions) (*Tasks, error) {
	with := TaskOptions{}
	if o != nil {
		with = *o
	}
	if with.Searcher == nil {
		with.Searcher = keywords{w}
	}
	return OpenTasks(w.selection, w.config, &with)
}

// keywords finds documents by the keyword index.
type keywords struct{ w *Workspace }

// Documents is doctask.Searcher.
func (k keywords) Documents(ctx context.Context, query, prefix string, limit int) ([]string, error) {
	if runes := []rune(query); len(runes) > retriever.MaxQuery {
		query = string(runes[:retriever.MaxQuery])
	}
	var paths []string
	q := retriever.Query{Text: query, Mode: retriever.Keyword, Filter: store.Filter{PathPrefix: prefix}}
	for len(paths) < limit {
		q.Limit = min(limit-len(paths), retriever.MaxLimit)
		a, err := k.w.Search(ctx, q)
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

// Stat looks at a file or folder without following links.
func (t *Tasks) Stat(path string) (fs.FileInfo, error) { return t.files.Stat(path) }

// Paths returns the workspace paths of the files that are indexed, in order, and calls
// skip, unless it is nil, with the files and folders that are not. The contents of files
// may exclude more.
func (t *Tasks) Paths(ctx context.Context, skip func(walk.Entry)) (paths []string, err error) {
	err = t.files.Walk(ctx, t.walk, func(e walk.Entry) error {
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

// Pictures are the media types of the files that Picture reads, by extension.
var Pictures = map[string]string{".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".svg": "image/svg+xml"}

// Picture returns the content of a picture. The rules that keep files out of the
// index, such as those of ignored, hidden and too large files, hold for pictures too.
func (t *Tasks) Picture(ctx context.Context, path string) ([]byte, error) {
	var rules walk.Options
	if t.walk != nil {
		rules = *t.walk
	}
	rules.Extensions = slices.Collect(maps.Keys(Pictures))
	found := false
	err := t.files.WalkPaths(ctx, &rules, []string{path}, func(e walk.Entry) error {
		found = found || e.Reason == walk.None && !e.Dir && e.Path == path
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fs.ErrNotExist
	}
	content, _, err := t.files.Read(path)
	return content, err
}
