// Package workspace opens a folder: its index, which another process may own, and its
// tasks. Package index searches and stores, and package owner connects the processes.
//
// # Files
//
// The folder holds what people write: cards, documents, workflows and
// .cairn/config.toml. The index, its lock and the owner's socket are in the folder's
// private directories, see home.
//
// # A folder that is removed
//
// The owner closes its files after the folder, or its index, was removed. The next call
// opens the new one, or fails with a *FolderError if the folder does not exist.
//
// # A shared store
//
// With Options.Store the owner copies the index to a Qdrant server, and processes that
// only read search the server instead: see mirror.
package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cairn/graphrank"
	"cairn/internal/base/health"
	"cairn/internal/base/home"
	"cairn/internal/base/owner"
	"cairn/internal/folder/config"
	"cairn/internal/folder/history"
	"cairn/internal/folder/index"
	"cairn/internal/folder/mirror"
	"cairn/internal/store/docs"
	"cairn/internal/store/kv"
	"cairn/internal/toolbox"
	"cairn/models"
)

// Access is how a process uses a folder.
type Access int

const (
	// Reading opens an existing index for reading. Index and Watch still write.
	Reading Access = iota
	// Owning opens the index for writing, and creates it if it is missing.
	Owning
)

// Options configures Open. Nil Logger and Now mean none and time.Now.
type Options struct {
	// Settings configures the index. A process that only reads searches its Store instead
	// of the folder.
	index.Settings
	// ToolDescription and ToolModel are Description and Model for tools. Nil means the
	// model of the documents.
	ToolDescription models.Description
	ToolModel       func() (models.Embedder, error)
	// Reader opens the model that reads requests to tools; nil means none.
	Reader func() (models.Reader, error)
	// ModelChosen reports that the user named the model: Open then fails if the owner
	// uses another one.
	ModelChosen bool
	// RerankDir is the folder of the re-ranker that the user named; Open fails if the
	// owner uses another one. "" means the configured re-ranker, if any. Reranker
	// opens one, or returns it if it is open; the caller keeps it and closes it.
	RerankDir string
	Reranker  func(dir string) (models.Reranker, error)
	// Command describes this process to others, such as "cairn index".
	Command string
	// Stateless answers from Store alone, if there is one, and never writes in it.
	Stateless bool
	// Postgres is the address of a database in which the servers of Store share the
	// catalogue of tools and the usage; "" means the folder's files.
	Postgres string
}

// Workspace is an open folder. Its Folder runs the operations of the index, such as
// index.SearchOp, in this process or in the owner; that of Tools runs the operations of the
// tools. It is safe for concurrent use.
type Workspace struct {
	*owner.Folder

	selection config.Selection
	settings  atomic.Pointer[settings]
	options   Options
	access    Access
	place     home.Place // zero if Options.Store answers alone

	mu    sync.Mutex
	tools *owner.Folder // see Tools; nil before its first use
}

// settings is a configuration, and the config.Stamp of its file.
type settings struct {
	config.Config
	stamp string
}

// Open opens the folder of sel. If its configuration file changes, the owner closes its
// files and opens them again with the new configuration.
func Open(ctx context.Context, sel config.Selection, cfg config.Config, access Access, o Options) (*Workspace, error) {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	w := &Workspace{selection: sel, options: o, access: access}
	w.settings.Store(&settings{cfg, config.Stamp(sel.Root)})
	if w.remote() {
		stores, err := w.remoteStores()
		if err != nil {
			return nil, err
		}
		w.Folder = owner.Local(func(s *owner.Server) owner.Service {
			o := w.indexOptions(home.Place{})
			o.Remote, o.ReadUsage = stores, w.readUsage()
			x := index.New(o)
			x.Serve(s)
			return x
		})
		return w, nil
	}
	var err error
	if w.place, err = home.Of(sel.Root); err == nil {
		w.Folder, err = w.Tools(ctx)
	}
	if err != nil {
		return nil, err
	}
	w.finishRestore(ctx)
	return w, nil
}

// remote reports whether a store answers the searches of this process.
func (w *Workspace) remote() bool {
	return w.options.Store != nil && (w.options.Stateless || w.access == Reading)
}

// own becomes the owner of the files in place, or connects to it.
func (w *Workspace) own(ctx context.Context, place home.Place) (*owner.Folder, error) {
	o := w.options
	kinds := maps.Clone(index.ErrorKinds)
	maps.Copy(kinds, toolbox.ErrorKinds)
	check := w.exists
	if w.remote() {
		check = nil
	}
	return owner.Open(ctx, owner.Options{
		Dir: place.Index, Make: place.Make, Takeover: w.access == Owning && (o.Background || o.Watch), Command: o.Command,
		Identity: map[string]string{modelIdentity: o.Description.ID, storeIdentity: w.storeAddress(), rootsIdentity: rootsOf(w.selection), rerankIdentity: w.rerankDir()},
		Accept:   w.accept, Errors: kinds, Check: check, Logger: o.Logger, Now: o.Now,
		Serve: func(s *owner.Server) (owner.Service, error) { return w.serve(s, place), nil },
		Fallback: func(s *owner.Server, silent *owner.LockError) (owner.Service, error) {
			return w.serveReads(s, silent, place), nil
		},
	})
}

// service is what the owner of a folder runs. Both parts open their files when an operation
// needs them.
type service struct {
	*index.Index
	tools   *toolbox.Toolbox
	changed func() bool // reports whether the service must end
}

// Removed implements owner.Service.
func (s *service) Removed() bool { return s.Index.Removed() || s.tools.Removed() || s.changed() }

// Close implements owner.Service.
func (s *service) Close() error { return errors.Join(s.Index.Close(), s.tools.Close()) }

// serve runs the operations on the files in place in this process, their owner.
func (w *Workspace) serve(s *owner.Server, place home.Place) *service {
	stamp := config.Stamp(w.selection.Root)
	if have := w.settings.Load(); stamp != have.stamp {
		cfg, err := config.Load(w.selection.Root, os.Environ())
		if err != nil {
			w.options.Logger.Error("the changed configuration is not valid; the old one remains in use", "error", err)
			cfg = have.Config
		}
		w.settings.Store(&settings{cfg, stamp})
	}
	tools := toolbox.New(w.toolboxOptions(place))
	o := w.indexOptions(place)
	// If a store answers, the index is for other processes.
	o.Holder, o.Held, o.Write = &s.Holder, s.Held, w.access == Owning && !w.remote()
	o.ReadUsage = tools.Read
	x := index.New(o)
	x.Serve(s)
	tools.Serve(s)
	return &service{x, tools, func() bool { return config.Stamp(w.selection.Root) != stamp }}
}

// Tools returns the folder that runs the operations of the tools, such as
// toolbox.SearchOp. It is w.Folder unless a store answers searches: then the first call
// connects to the owner of the files. w.Close closes it.
func (w *Workspace) Tools(ctx context.Context) (*owner.Folder, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tools != nil {
		return w.tools, nil
	}
	place, err := home.Of(w.selection.Root)
	if err != nil {
		return nil, err
	}
	w.tools, err = w.own(ctx, place)
	return w.tools, err
}

// readUsage returns a function that calls another one with the co-usage graph of Tools.
func (w *Workspace) readUsage() func(func(*graphrank.Graph)) error {
	var g toolbox.Graph
	return func(fn func(*graphrank.Graph)) error {
		ctx := context.Background()
		tools, err := w.Tools(ctx)
		if err != nil {
			return err
		}
		return g.Read(ctx, tools, fn)
	}
}

func (w *Workspace) toolboxOptions(place home.Place) toolbox.Options {
	o := toolbox.Options{
		Place: place, HalfLife: w.settings.Load().Usage.HalfLife(), Description: w.options.ToolDescription, Model: w.options.ToolModel, Reader: w.options.Reader, Logger: w.options.Logger,
		Masks: w.settings.Load().Masks(),
	}
	if o.Model == nil {
		o.Description, o.Model = w.options.Description, w.options.Model
	}
	if w.options.Store != nil {
		o.Postgres, o.Space = w.options.Postgres, w.options.Store.Collection
	}
	return o
}

func (w *Workspace) indexOptions(place home.Place) index.Options {
	o := w.options
	var reranker func() (models.Reranker, error)
	if dir := w.rerankDir(); dir != "" && o.Reranker != nil {
		reranker = func() (models.Reranker, error) { return o.Reranker(dir) }
	}
	options := index.Options{
		Settings: o.Settings, Selection: w.selection, Config: w.Config(), Dir: place.Index, Reranker: reranker,
		Recovered: func() []health.File { return recoveredFiles(place) },
	}
	if place.Index != "" { // a store does not answer alone
		options.History = history.Open(w.selection.Root, filepath.Join(place.Index, "history"), o.Logger)
	}
	return options
}

// rerankDir returns the folder of the re-ranker, "" for none. A relative path in the
// configuration is relative to the workspace's folder.
func (w *Workspace) rerankDir() string {
	dir := w.options.RerankDir
	if dir == "" {
		if dir = w.settings.Load().Retrieval.Rerank; dir != "" && !filepath.IsAbs(dir) {
			dir = filepath.Join(w.selection.Root, dir)
		}
	}
	return dir
}

// FolderError reports that the folder of a workspace does not exist.
type FolderError struct{ Root string }

func (e *FolderError) Error() string {
	return fmt.Sprintf("the folder %s does not exist any more: create it, and cairn indexes it again, or choose another with -C", e.Root)
}

// Is makes a FolderError an fs.ErrNotExist.
func (e *FolderError) Is(target error) bool { return target == fs.ErrNotExist }

// exists fails with a *FolderError if the folder is missing. Opening the folder reports
// other errors.
func (w *Workspace) exists() error {
	info, err := os.Stat(w.selection.Root)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return &FolderError{w.selection.Root}
	}
	return nil
}

// Keys of the owner's identity.
const (
	modelIdentity = "model"
	storeIdentity = "store" // the address of the store that the owner keeps up to date, "" for none
	rootsIdentity = "roots" // the further folders
	// rerankIdentity is the folder of the owner's re-ranker, "" for none.
	rerankIdentity = "rerank"
)

// rootsOf returns the further folders of sel as one string.
func rootsOf(sel config.Selection) string { return fmt.Sprint(sel.Further) }

// storeAddress returns the address of the store, "" for none.
func (w *Workspace) storeAddress() string {
	if w.options.Store == nil {
		return ""
	}
	return w.options.Store.String()
}

// accept refuses an owner whose model, store or re-ranker is not the one that the user
// named.
func (w *Workspace) accept(h owner.Holder, identity map[string]string) error {
	if address := w.storeAddress(); !w.remote() && address != "" && address != identity[storeIdentity] {
		return fmt.Errorf("process %d (%s) owns this folder and does not copy its index to %s; stop it first, or start it with --store", h.PID, h.Command, address)
	}
	if model := identity[modelIdentity]; w.options.ModelChosen && model != w.options.Description.ID {
		return fmt.Errorf("process %d (%s) owns this folder and uses model %s, not %s; stop it first", h.PID, h.Command, model, w.options.Description.ID)
	}
	if roots := rootsOf(w.selection); roots != identity[rootsIdentity] && w.options.Notice != nil {
		w.options.Notice(fmt.Sprintf("process %d (%s) owns this folder and searches other further folders than `cairn roots` lists; restart it", h.PID, h.Command))
	}
	if dir := w.options.RerankDir; dir != "" && dir != identity[rerankIdentity] {
		return fmt.Errorf("process %d (%s) owns this folder and does not use the re-ranker %s; stop it first, or start it with --rerank", h.PID, h.Command, dir)
	}
	return nil
}

// watchAgain is the pause before Watch retries after the folder was removed or its owner
// did not answer.
const watchAgain = time.Second

// Watch calls fn, from its own goroutine, with every change of the folder that the owner
// has indexed, until ctx ends. The first event reports that watching has begun. After the
// owner has ended, this process may become the owner; it then compares the whole folder
// with the index, so that it misses no change. Watch retries while the folder is missing
// or the owner does not answer, which it reports once.
func (w *Workspace) Watch(ctx context.Context, fn func(index.WatchEvent)) error {
	begun, reported := false, false
	for {
		_, err := index.WatchOp.Call(ctx, w.Folder, struct{}{}, func(e index.WatchEvent) { begun, reported = true, false; fn(e) })
		_, removed := errors.AsType[*FolderError](err)
		lock, _ := errors.AsType[*owner.LockError](err)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, owner.ErrEnded):
			continue
		case lock == nil && (!begun || !removed):
			return err
		case !reported:
			fn(index.WatchEvent{At: w.options.Now(), Problem: err.Error()})
			reported = true
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(watchAgain):
		}
	}
}

// Place returns the directories of the index and the records, zero if a store answers.
func (w *Workspace) Place() home.Place { return w.place }

// Config returns the folder's configuration.
func (w *Workspace) Config() config.Config { return w.settings.Load().Config }

// Selection returns the folder.
func (w *Workspace) Selection() config.Selection { return w.selection }

// Close ends the background work of this process and closes the stores. The next run
// resumes unfinished work.
func (w *Workspace) Close() error {
	err := w.Folder.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tools != nil && w.tools != w.Folder {
		err = errors.Join(err, w.tools.Close())
	}
	return err
}

// serveReads runs the operations that only read, without the owner of the files in place. It
// ends when the owner has changed a file: answers may then mix two states. The keyword index
// and the vectors need no version: they only add to files, or replace them, and the owner marks
// every change of them in the documents.
func (w *Workspace) serveReads(s *owner.Server, silent *owner.LockError, place home.Place) *service {
	var versions []kv.Version // of the files before they were opened
	for _, path := range append(toolbox.Files(place), filepath.Join(place.Index, index.DocumentsFile)) {
		versions = append(versions, kv.VersionOf(path))
	}
	t := w.toolboxOptions(place)
	t.ReadOnly = true
	tools := toolbox.New(t)
	o := w.indexOptions(place)
	o.Silent, o.ReadUsage = silent, tools.Read
	x := index.New(o)
	x.ServeReads(s)
	tools.ServeReads(s)
	return &service{x, tools, func() bool {
		return slices.ContainsFunc(versions, func(v kv.Version) bool { return !v.Current() })
	}}
}

// remoteStores opens the Qdrant store of w for reading.
func (w *Workspace) remoteStores() (*index.Stores, error) {
	client, err := w.options.Store.Dial(w.options.Logger)
	if err != nil {
		return nil, err
	}
	d := w.options.Description
	source, chunks := mirror.NewSource(client, w.options.Now), client.Current().Chunks(d.Dimension, d.ID)
	// Report a wrong model now, but accept an unavailable store: it may become available.
	meta, _, err := source.State()
	if err == nil && meta.Generation > 0 {
		if err = chunks.Open(context.Background()); err == nil {
			err = source.Open(context.Background())
		}
	}
	if err != nil && !mirror.Unavailable(err) {
		return nil, errors.Join(err, client.Close())
	}
	return &index.Stores{
		Docs: docs.Remote(source), Keyword: chunks.Keyword(), Vectors: chunks.Vectors(), Legs: chunks, Closers: []func() error{client.Close},
	}, nil
}
