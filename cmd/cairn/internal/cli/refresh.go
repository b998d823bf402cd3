package cli

import (
	"context"
	"os"
	"time"

	"cairn/indexer"
	"cairn/internal/base/job"
	"cairn/internal/face/term"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
	"cairn/retriever"
)

// These bound how long a search waits for the indexer before it answers.
const (
	// refreshLimit applies to changed files of a folder that has an index.
	refreshLimit = 2 * time.Second
	// firstLimit applies to a folder without an index. If then more than manyFiles files are
	// unread, or the words of more than manyChunks chunks are not indexed, the search waits
	// only for the files with its words. With more than tooManyFiles it does so immediately.
	firstLimit   = time.Second
	manyFiles    = 500
	manyChunks   = 5000
	tooManyFiles = 5000
	// fewVectors is the most vectors that are made before the answer without --wait. If more
	// are missing, they are made after the answer.
	fewVectors = 200
	// VectorsLimit applies to the vectors before the answer.
	VectorsLimit = 30 * time.Second
	// AnyWait means that --wait is not set.
	AnyWait = -1
)

// A Refresh is a run of the indexer before a search, so that the answer matches the current
// files. It may continue after the answer.
type Refresh struct {
	a      *App
	first  bool          // there is no index to answer from
	early  bool          // the search may answer from a part of the files
	shared bool          // another process does the work
	wait   time.Duration // for vectors
	steps  chan job.Progress
	done   chan struct{} // nil without a run
	err    error         // set before done is closed
}

// Refresh brings the index up to date. It returns when the index contains what a search needs:
// the text of every file and, in modes other than keyword, the vectors. It does not wait for
// many vectors, nor longer than wait. For a large folder without an index, unless the caller
// has set wait, it returns before most files are indexed. An owner that watches the folder
// needs no refresh.
func (a *App) Refresh(ctx context.Context, w *workspace.Workspace, mode retriever.Mode, wait time.Duration) (*Refresh, error) {
	status, err := index.StatusOp.Call(ctx, w.Folder, index.StatusRequest{Selection: w.Selection()}, nil)
	if err != nil {
		return nil, err
	}
	first := status.BuiltAt == ""
	r := &Refresh{a: a, first: first, early: first && wait == AnyWait && mode != retriever.Semantic, wait: wait, shared: status.Owner != nil && status.Owner.PID != os.Getpid()}
	if status.Store != "" || status.Watching != "" && !first {
		return r, nil
	}
	r.done, r.steps = make(chan struct{}), make(chan job.Progress, 1)
	go func() {
		defer close(r.done)
		_, r.err = index.IndexOp.Call(ctx, w.Folder, index.IndexRequest{Join: true, NoEmbed: mode == retriever.Keyword}, func(p job.Progress) {
			select { // p replaces a step that was not read
			case <-r.steps:
			default:
			}
			r.steps <- p
		})
	}()
	return r, r.await(ctx)
}

// await waits until the search can answer.
func (r *Refresh) await(ctx context.Context) error {
	bar := term.NewProgress(r.a.Out.Notes)
	defer bar.Close()
	var limit, early <-chan time.Time // nil never comes
	if r.early {
		early = time.After(firstLimit)
	}
	if !r.first {
		limit = time.After(refreshLimit)
	}
	vectors := r.wait
	if vectors == AnyWait {
		vectors = VectorsLimit
	}
	var latest job.Progress
	for searchable := false; ; {
		select {
		case p := <-r.steps:
			latest = p
			if r.first || r.a.Out.Notes.IsTerminal() {
				bar.Show(p)
			}
			if r.early && p.Phase == indexer.PhaseScan && p.Total-p.Done > tooManyFiles {
				return nil
			}
			if p.Searchable && !searchable {
				searchable, limit = true, time.After(vectors)
			}
			if searchable && r.wait == AnyWait && p.Phase == indexer.PhaseVectors && p.Total-p.Done > fewVectors {
				return nil
			}
		case <-early:
			left := latest.Total - latest.Done
			if !searchable && (latest.Phase == indexer.PhaseScan && left > manyFiles || latest.Phase == indexer.PhaseKeywords && left > manyChunks) {
				return nil
			}
			early = time.After(firstLimit)
		case <-limit:
			if !searchable {
				r.a.Out.Notes.Printf("answering from the old index, because its update takes longer (%s); `cairn index` completes it\n", latest)
			}
			return nil
		case <-r.done:
			if r.err == nil || ctx.Err() != nil || r.first && !searchable {
				return r.err
			}
			// A failure, such as a full disk, does not prevent an answer.
			r.a.Out.Notes.Printf("answering from the indexed files, because indexing the rest failed: %s\n", term.OneLine(r.err.Error()))
			return nil
		}
	}
}

// Finish completes the run after the answer if the output is a terminal. For other programs
// the command ends, and the next search continues the run.
func (r *Refresh) Finish(ctx context.Context) error {
	if r.done == nil || r.shared || !r.a.Out.IsTerminal() || !r.a.Out.Notes.IsTerminal() {
		return nil
	}
	bar := term.NewProgress(r.a.Out.Notes)
	defer bar.Close()
	for begun := false; ; {
		select {
		case p := <-r.steps:
			if !begun {
				what := "indexing the other files"
				if p.Searchable {
					what = "making the other vectors"
				}
				r.a.Out.Notes.Dim(what + "; Ctrl-C ends this and keeps the finished part")
				begun = true
			}
			bar.Show(p)
		case <-r.done:
			if begun && r.err == nil {
				bar.Close()
				r.a.Out.Notes.Dim("done: searches now use the meaning of all files")
			}
			return r.err
		case <-ctx.Done():
			return nil
		}
	}
}
