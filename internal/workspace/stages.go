package workspace

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"cairn/internal/config"
	"cairn/internal/home"
	"cairn/internal/kv"
	"cairn/internal/stage"
	"cairn/internal/stage/embedded"
	"cairn/models"
)

// stageFile survives a rebuild of the index: it cannot be made again.
const stageFile = "stages.db"

// Stages are the question tasks of a folder. Unless a server keeps them, any
// number of processes hold them open at the same time, whichever owns the index,
// and each does what another has left. It is safe for concurrent use.
type Stages struct {
	*stage.Engine

	library stage.Library
	store   stage.Store
	queue   stage.Queue
	cancel  context.CancelFunc
	working sync.WaitGroup
}

// StageOptions are the knobs of OpenStages. Nil and the zero value mean the defaults.
type StageOptions struct {
	// Without a Library embedding_lookup is left to others. Without a Reasoner
	// executor_reasoning waits for the calling agent, unless Remote; without Web
	// web_search does, and is skipped after Rules.WebWait.
	stage.WorkOptions
	// Store and Queue are servers' instead of the folder's file and this
	// process's memory. They are closed by Close.
	Store stage.Store
	Queue stage.Queue
	// Remote is set when workers elsewhere answer.
	Remote bool
	// Stages are those worked on here; nil is all that can be.
	Stages []stage.Stage
	// Workers is how many stages are worked on at once; 0 is 2, less is none.
	Workers int
	// Maintain maintains the store even without workers, see stage.Engine.
	Maintain bool
	// Rules of new tasks; Delegated is filled in.
	Rules  stage.Rules
	Logger *slog.Logger
	Now    func() time.Time
}

// OpenStages opens the question tasks of a folder and works on them until
// Close. It creates nothing until there is a task.
func OpenStages(sel config.Selection, o *StageOptions) (*Stages, error) {
	if o == nil {
		o = &StageOptions{}
	}
	t := &Stages{library: o.Library, store: o.Store, queue: o.Queue}
	if t.store == nil {
		place, err := home.Of(sel.Root)
		if err != nil {
			return nil, err
		}
		file := stagesOf(place, func(r *kv.Recovery) {
			if o.Logger != nil {
				o.Logger.Warn("the file of the question tasks was recovered", "recovery", r)
			}
		})
		t.store = embedded.Open(file, file.Close)
	}
	if t.queue == nil {
		t.queue = stage.NewLocalQueue()
	}
	rules := o.Rules
	if o.Web == nil {
		rules.Delegated = append(rules.Delegated, stage.WebSearch)
	}
	if o.Reasoner == nil && !o.Remote {
		rules.Delegated = append(rules.Delegated, stage.ExecutorReasoning)
	}
	t.Engine = stage.NewEngine(t.store, &stage.Options{
		Queue: t.queue, Rules: rules, Now: o.Now, Logger: o.Logger,
		Work: stage.Works(o.WorkOptions),
	})
	stages, n := o.Stages, o.Workers
	if stages == nil {
		stages = stage.Stages
	}
	if n == 0 {
		n = 2
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.cancel = cancel
	switch {
	case n > 0:
		t.working.Go(func() {
			if err := t.Run(ctx, stages, n); err != nil && ctx.Err() == nil && o.Logger != nil {
				o.Logger.Error("working on stages", "error", err)
			}
		})
	case o.Maintain:
		t.working.Go(func() { t.Engine.Maintain(ctx) })
	}
	return t, nil
}

// stagesOf is the file of a folder's question tasks. recovered hears of its recovery.
func stagesOf(place home.Place, recovered func(*kv.Recovery)) *kv.Shared {
	return kv.NewShared(filepath.Join(place.Records, stageFile), place.Make, recovered)
}

// Close stops the work, which others or the next process go on with, and
// closes the store.
func (t *Stages) Close() error {
	t.cancel()
	t.working.Wait()
	return errors.Join(t.queue.Close(), t.store.Close())
}

// Brief is what somebody outside needs for a task that waits for them; nil for
// any other. budget is in tokens, 0 the default.
func (t *Stages) Brief(ctx context.Context, s *stage.State, budget int) (*stage.Brief, error) {
	if s.Status.Final() || !stage.Delegated(s) {
		return nil, nil
	}
	return stage.NewBrief(ctx, s, t.library, budget)
}

// Stages opens the question tasks of the workspace's folder, with itself as
// their library unless o names another; the caller closes them first.
func (w *Workspace) Stages(o *StageOptions) (*Stages, error) {
	var with StageOptions
	if o != nil {
		with = *o
	}
	if with.Library == nil {
		with.Library = w
	}
	if with.Encoder == nil {
		with.Encoder = models.NewLazy(w.options.Description, w.options.Model)
	}
	return OpenStages(w.selection, &with)
}
