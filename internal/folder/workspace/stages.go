package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"cairn/internal/base/home"
	"cairn/internal/base/owner"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/internal/stage"
	"cairn/internal/stage/embedded"
	"cairn/internal/store/kv"
	"cairn/internal/task"
	"cairn/internal/task/notes"
	"cairn/internal/text/markdown"
	"cairn/models"
	"cairn/retriever"
)

// stageFile holds the question tasks. A rebuild of the index keeps it, because it cannot
// be derived.
const stageFile = "stages.db"

// Stages holds the question tasks of a folder open. Unless a server keeps them, any number
// of processes can do so at the same time, and each continues the work of the others. It
// is safe for concurrent use.
type Stages struct {
	*stage.Engine

	library stage.Library
	store   stage.Store
	queue   stage.Queue
	cancel  context.CancelFunc
	working sync.WaitGroup
}

// StageOptions configures OpenStages. Nil and the zero value mean the defaults.
type StageOptions struct {
	// WorkOptions configure the work. Without a Reasoner executor_reasoning waits for the
	// calling agent, unless Remote is set. Without Web web_search waits for it too, and is
	// skipped after Rules.WebWait.
	stage.WorkOptions
	// Store and Queue replace the folder's file and the queue in memory, for servers.
	// Close closes them.
	Store stage.Store
	Queue stage.Queue
	// Remote reports that workers in other processes do executor_reasoning.
	Remote bool
	// Stages lists the stages that this process works on. Nil means all.
	Stages []stage.Stage
	// Workers is how many stages this process works on at once. 0 means 2, a negative
	// number none.
	Workers int
	// Maintain maintains the store even without workers, see stage.Engine.
	Maintain bool
	// Keep is the time that ended tasks are kept; 0 means stage.KeepArchive.
	Keep time.Duration
	// Rules apply to new tasks. OpenStages adds to Rules.Delegated.
	Rules  stage.Rules
	Logger *slog.Logger
	Now    func() time.Time
}

// OpenStages opens the question tasks of a folder and works on them until Close. It
// creates no file before the first task.
func OpenStages(sel config.Selection, o *StageOptions) (*Stages, error) {
	o = cmp.Or(o, &StageOptions{})
	t := &Stages{library: o.Library, store: o.Store, queue: o.Queue}
	if t.store == nil {
		finishRestoreOf(sel, config.Default())
		place, err := home.Of(sel.Root)
		if err != nil {
			return nil, err
		}
		t.store = embedded.Open(stagesOf(place, o.Logger))
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
		Queue: t.queue, Rules: rules, Keep: o.Keep, Now: o.Now, Logger: o.Logger,
		Work: stage.Works(o.WorkOptions),
	})
	stages, n := o.Stages, o.Workers
	if stages == nil {
		stages = stage.Stages
	}
	n = cmp.Or(n, 2)
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

// stagesOf returns the file of a folder's question tasks. log, which may be nil, receives
// the report of a recovery.
func stagesOf(place home.Place, log *slog.Logger) *kv.File {
	return kv.NewFile(filepath.Join(place.Records, stageFile), &kv.FileOptions{Shared: true, Prepare: place.Make, Logger: log})
}

// Close stops the work, which another process can continue, and closes the store.
func (t *Stages) Close() error {
	t.cancel()
	t.working.Wait()
	return errors.Join(t.queue.Close(), t.store.Close())
}

// Brief returns what the calling agent needs to work on a task that waits for it, nil for
// any other task. budget is in tokens; 0 means the default.
func (t *Stages) Brief(ctx context.Context, s *stage.State, budget int) (*stage.Brief, error) {
	if s.Status.Final() || !stage.Delegated(s) {
		return nil, nil
	}
	return stage.NewBrief(ctx, s, t.library, budget)
}

// Stages opens the question tasks of the workspace's folder. Its index is their Library unless
// o has another. The caller closes them before w.
func (w *Workspace) Stages(o *StageOptions) (*Stages, error) {
	with := *cmp.Or(o, &StageOptions{})
	with.Library = cmp.Or[stage.Library](with.Library, library{w.Folder})
	if with.Encoder == nil {
		with.Encoder = models.NewLazy(w.options.Description, w.options.Model)
	}
	return OpenStages(w.selection, &with)
}

// library is the stage.Library of a folder's index.
type library struct{ folder *owner.Folder }

// Search implements stage.Library.
func (l library) Search(ctx context.Context, q retriever.Query) (*retriever.Answer, error) {
	return index.SearchOp.Call(ctx, l.folder, q, nil)
}

// ReadAll implements stage.Library.
func (l library) ReadAll(ctx context.Context, r retriever.ReadRequest) (*retriever.Readings, error) {
	return index.ReadAllOp.Call(ctx, l.folder, r, nil)
}

// Remember is Notes.Remember, and with Answer keeps the answer of a question task: its title is
// the question, and it rests on the sections that the answer cites. They must not have changed
// since the task began. st may be nil.
func (t *Tasks) Remember(ctx context.Context, st *Stages, session string, r notes.Request) (*notes.Answer, error) {
	if r.Answer == "" {
		return t.Notes.Remember(ctx, session, r)
	}
	refuse := func(format string, args ...any) (*notes.Answer, error) {
		return nil, &task.Error{Number: task.CodeInvalidParams, Message: "Invalid params: answer: " + fmt.Sprintf(format, args...)}
	}
	if st == nil || r.ID != "" || r.Text != "" || len(r.RestsOn) > 0 {
		return refuse("it takes no text, rests_on or id, and needs the question tasks of the folder")
	}
	s, err := st.Task(ctx, r.Answer)
	switch {
	case err != nil:
		return refuse("%s", err)
	case s.Status != stage.Complete || s.Response == nil:
		return refuse("the task %s is %s and has no answer", s.ID, s.Status)
	case s.Response.NotFound:
		return refuse("the task %s has found none", s.ID)
	case s.Response.Support != nil && len(s.Response.Support.Unsupported()) > 0:
		return refuse("its sources do not support %q", s.Response.Support.Unsupported()[0].Text)
	}
	question := []rune(strings.Join(strings.Fields(s.Query), " "))
	r.Answer, r.Text, r.Title = "", s.Response.Answer, cmp.Or(r.Title, string(question[:min(len(question), 80)]))
	for _, source := range s.Response.Sources {
		if source.Path == "" {
			r.Text += "\n\nSource: " + source.ID
			continue
		}
		info, err := t.Stat(source.Path)
		if err != nil || info.ModTime().After(s.StartedAt) {
			return refuse("%s changed since the question: ask again", source.Path)
		}
		place := source.Path + "#" + source.Anchor
		if source.Anchor == "" { // the text above the first heading
			text, err := t.Text(source.Path)
			if err != nil {
				return nil, err
			}
			above := markdown.Parse(source.Path, text).Sections[0]
			place = fmt.Sprintf("%s:%d-%d", source.Path, above.StartLine, above.EndLine)
		}
		if !slices.Contains(r.RestsOn, place) {
			r.RestsOn = append(r.RestsOn, place)
		}
	}
	return t.Notes.Remember(ctx, session, r)
}
