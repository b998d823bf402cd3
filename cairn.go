// Package cairn finds the exact section of a folder of documents that answers a question,
// and plans which tools serve an intent. It is the Go interface of the command cairn, and
// works on the same index: a program and any number of commands and servers can use one
// folder at the same time.
//
//	folder, err := cairn.Open(ctx, "docs", nil)
//	…
//	defer folder.Close()
//	_, err = folder.Index(ctx, nil)
//	answer, err := folder.Search(ctx, cairn.Query{Text: "rotate a token", MaxTokens: 900})
//
// The index is in the user's cache directory, or below CAIRN_HOME, and not in the folder.
// The embedding model is part of the package. Nothing is sent over the network unless the
// folder's configuration names a server and the user trusts the folder.
//
// Formats such as PDF are converted in child processes of the running executable, which do
// nothing but convert: package variables and init functions run in them, but main does not.
package cairn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"cairn/internal/base/job"
	"cairn/internal/folder/config"
	"cairn/internal/folder/encoder"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
	"cairn/internal/store"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/suggest"
	"cairn/retriever"
)

// The parameters and results of searching and reading, as package retriever defines them.
type (
	// Query is one search. Only Text is required.
	Query = retriever.Query
	// Filter narrows a Query to documents by their path, kind and labels.
	Filter = store.Filter
	// Answer is the result of a search, best section first. Answer.Index describes the
	// state of the index, and Answer.Degraded what the answer lacks.
	Answer = retriever.Answer
	// Reading is the text of a document, or of a part of it.
	Reading = retriever.Reading
)

// Options configures Open. A nil *Options means the zero value.
type Options struct {
	// Model is the folder of a sentence encoder in ONNX format; "" means the built-in
	// model, all-MiniLM-L6-v2. All programs that use a folder use the same model.
	Model string
	// Name describes the program to others that use the folder, in messages; "" means the
	// name of its file.
	Name string
	// Logger receives messages about work in the background; nil discards them.
	Logger *slog.Logger
}

// Folder is an open folder. It is safe for concurrent use.
type Folder struct {
	workspace *workspace.Workspace
}

// Open opens the folder at dir, or, if dir is "", the one that the command cairn chooses without
// -C. It reads the configuration of the folder, if there is one.
// It makes no index: see Folder.Index. The caller must close the Folder.
func Open(ctx context.Context, dir string, o *Options) (*Folder, error) {
	o = cmp.Or(o, &Options{})
	sel, err := config.Select(dir)
	if err != nil && dir == "" {
		return nil, fmt.Errorf("choosing a folder, because dir is empty: %w", err)
	} else if err != nil {
		return nil, err
	}
	cfg, err := config.Load(sel.Root, os.Environ())
	if err != nil {
		return nil, err
	}
	wo := workspace.Options{Settings: index.Settings{Logger: o.Logger}, Command: cmp.Or(o.Name, filepath.Base(os.Args[0]))}
	model := encoder.Model{Dir: o.Model}
	if err := model.Apply(&wo); err != nil {
		return nil, err
	}
	w, err := workspace.Open(ctx, sel, cfg, workspace.Reading, wo)
	if err != nil {
		return nil, err
	}
	return &Folder{w}, nil
}

// Close closes the folder. If this program has been indexing, the next run of Index resumes
// the work.
func (f *Folder) Close() error {
	return f.workspace.Close()
}

// Report counts what a run of Index did.
type Report struct {
	Files     int // documents in the index now
	Added     int // new or changed documents
	Removed   int // removed documents
	Unchanged int
	Sections  int
	Chunks    int // the pieces of text that the index finds
	Pending   int // chunks without a vector
	Skipped   int // files that are not indexed
}

// Index brings the index up to date with the files, and returns when every section can be
// found by words and by meaning. Files that have not changed cost nothing. Index calls
// progress, which may be nil, from its own goroutine; total is 0 while it is unknown. If
// another program indexes the folder, Index waits for the end of that run. If ctx ends, the
// index keeps what is complete.
func (f *Folder) Index(ctx context.Context, progress func(phase string, done, total int)) (*Report, error) {
	r, err := index.IndexOp.Call(ctx, f.workspace.Folder, index.IndexRequest{Join: true}, func(p job.Progress) {
		if progress != nil {
			progress(p.Phase, p.Done, p.Total)
		}
	})
	if err != nil {
		return nil, err
	}
	return &Report{r.Files, r.Added, r.Removed, r.Unchanged, r.Sections, r.Chunks, r.Pending, r.Skipped}, nil
}

// Search returns the sections that answer q, best first. It searches the index as it is: a
// folder that was never indexed has an Answer without results, whose Reason is
// "not_indexed". An invalid query is a *retriever.InvalidError.
func (f *Folder) Search(ctx context.Context, q Query) (*Answer, error) {
	return index.SearchOp.Call(ctx, f.workspace.Folder, q, nil)
}

// ErrNoIndex is returned by Folder.Read in a folder that was never indexed.
var ErrNoIndex = errors.New("the folder has no index; call Folder.Index first")

// Read returns the current text at a place: "path", "path#anchor" or "path:from-to", in
// lines from 1. It fails with a *retriever.NotFoundError if the file or the section is
// missing, and with ErrNoIndex. It masks secrets.
func (f *Folder) Read(ctx context.Context, place string) (*Reading, error) {
	r, err := index.ReadOp.Call(ctx, f.workspace.Folder, retriever.ReadRequest{Path: place}, nil)
	if errors.Is(err, index.ErrNoIndex) {
		err = ErrNoIndex
	}
	return r, err
}

// AddTools replaces the tools of a source, such as the name of an MCP server, in the
// folder's catalogue, and returns their number. It reads the result of tools/list, a JSON
// array or JSON lines of tools, or an OpenAPI document.
func (f *Folder) AddTools(ctx context.Context, source string, definitions io.Reader) (int, error) {
	if definitions == nil {
		return 0, errors.New("definitions is nil; a reader of [] removes the tools of the source")
	}
	batch, err := catalog.Read(ctx, definitions, source)
	if err != nil {
		return 0, err
	}
	if _, err := toolbox.ImportOp.Call(ctx, f.workspace.Folder, toolbox.ImportRequest{Source: source, Tools: batch.Tools}, nil); err != nil {
		return 0, err
	}
	return len(batch.Tools), nil
}

// Plan is an acyclic graph of tools for an intent.
type Plan struct {
	// Steps are in an order in which they can run.
	Steps []Step
	// Confidence is the estimated probability that the plan has exactly the tools that the
	// intent needs.
	Confidence float64
	// Unmatched lists the parts of the intent without a tool.
	Unmatched []string
}

// Step is one call of a tool. Steps of the same Layer can run at the same time.
type Step struct {
	ID        string
	Tool      string         // its ID in the catalogue: "server:name", or the name
	Arguments map[string]any // as far as the intent states them
	DependsOn []string       // IDs of earlier steps
	Layer     int            // from 0
}

// Suggest plans the tools of the folder's catalogue for an intent. The plan is empty if no
// tool fits.
func (f *Folder) Suggest(ctx context.Context, intent string) (*Plan, error) {
	s, err := toolbox.SuggestOp.Call(ctx, f.workspace.Folder, suggest.Request{Intent: intent}, nil)
	if err != nil {
		return nil, err
	}
	p := &Plan{Confidence: s.Confidence, Unmatched: s.Unmatched}
	for _, t := range s.Tasks {
		p.Steps = append(p.Steps, Step{t.ID, t.Tool, t.Arguments, t.DependsOn, t.Layer})
	}
	return p, nil
}
