// Package host opens everything that serves one folder: its workspace, tools,
// tasks and telemetry. It speaks no protocol itself.
package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"cairn/internal/base/job"
	"cairn/internal/base/metrics"
	"cairn/internal/base/observe"
	"cairn/internal/base/owner"
	"cairn/internal/face/server"
	"cairn/internal/face/web"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
	"cairn/internal/stage/rest"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/planrun"
	"cairn/retriever"
	"cairn/tools"
	"cairn/tools/gateway"
)

// CloseLimit bounds the time to close a folder. An MCP server must exit within two seconds
// after the end of its input, and the index survives the end of the process at any time.
const CloseLimit = 500 * time.Millisecond

// Options configures Open.
type Options struct {
	// Name is the name of the workspace in addresses, logs and metrics; "" if the process
	// serves only one.
	Name    string
	Version string // of cairn
	// Workspace holds the model, the store and the command; Open sets the other fields.
	Workspace workspace.Options
	// Groups are the groups of tools to offer; nil means those in the configuration.
	Groups []tools.Group
	// Channel is the default channel of the graph tools; "" means that of the configuration.
	Channel string
	// Stages configures the question tasks. If it is nil, they are opened with the defaults,
	// and only if their tools are offered.
	Stages *StageOptions
	// NoIndex disables indexing and watching, NoWatch watching, NoRecord the recording of
	// usage, and NoRateLimit the rate limits.
	NoIndex, NoWatch, NoRecord, NoRateLimit bool

	Telemetry *Telemetry
	Metrics   *metrics.Metrics // nil disables metrics
}

// Folder is an open folder.
type Folder struct {
	Name, Root string
	Workspace  *workspace.Workspace
	Tasks      *workspace.Tasks
	Stages     *workspace.Stages // nil if they are not offered
	Tools      *tools.Server

	toolbox  *owner.Folder      // runs the operations of the tools
	traces   observe.Listener   // nil without a receiver
	counts   *metrics.Workspace // nil without metrics
	recorder *tools.Recorder    // nil if usage is not recorded
	warming  *job.Job[none]     // nil if no tools are prepared
	gateway  *gateway.Gateway   // nil if its servers cannot be read
}

// Open opens a folder and its tools.
func Open(ctx context.Context, sel config.Selection, cfg config.Config, o Options) (_ *Folder, err error) {
	log := o.Telemetry.Log
	if o.Name != "" {
		log = log.With("workspace", o.Name)
	}
	f := &Folder{Name: o.Name, Root: sel.Root}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	groups := o.Groups
	if groups == nil {
		if groups, err = configuredGroups(cfg); err != nil {
			return nil, err
		}
	}
	w := o.Workspace
	w.Background, w.Stateless, w.Watch = !o.NoIndex, o.NoIndex, !o.NoIndex && !o.NoWatch
	w.Warm, w.Logger = true, log
	if f.Workspace, err = workspace.Open(ctx, sel, cfg, workspace.Owning, w); err != nil {
		return nil, err
	}
	if f.toolbox, err = f.Workspace.Tools(ctx); err != nil {
		return nil, err
	}
	f.connect(ctx, cfg, o.Version, log)
	f.warm(ctx, groups, log)
	if f.Tasks, err = f.Workspace.Tasks(&workspace.TaskOptions{Channel: o.Channel}); err != nil {
		return nil, err
	}
	if o.Stages != nil || slices.Contains(groups, tools.Auto) || tools.Offers(groups, tools.Stages) {
		if f.Stages, err = OpenStages(ctx, f.Workspace, log, o.Stages); err != nil {
			return nil, err
		}
	}
	if cfg.Usage.Record && !o.NoRecord {
		f.recorder = tools.Record(f.toolbox, log)
	}
	calls, lacked := f.observe(&o)
	var watch func(context.Context, func(index.WatchEvent)) error // the source of change notifications
	if w.Watch {
		watch = f.Workspace.Watch
	}
	var proxy *tools.Proxy
	if f.gateway != nil {
		proxy = &tools.Proxy{Box: f.toolbox, Gateway: f.gateway, Masks: cfg.Masks(), Count: f.Tasks.Budget.Count, Records: planrun.Folder(f.Workspace.Place())}
	}
	f.Tools = tools.New(f.Workspace.Folder, &tools.Options{
		Proxy:       proxy,
		Version:     o.Version,
		Logger:      log,
		NoRateLimit: o.NoRateLimit || os.Getenv("CAIRN_RATE_LIMIT") == "off" || !cfg.MCP.RateLimit,
		DefaultMode: retriever.Mode(cfg.Search.DefaultMode),
		Groups:      groups,
		Budget:      f.Tasks.Budget,
		Watch:       watch,
		Status:      index.StatusRequest{Selection: sel},
		Scan:        f.Workspace.Scan,
		Toolbox:     f.toolbox,
		Tasks:       f.Tasks,
		Stages:      f.Stages,
		Recorder:    f.recorder,
		Workspace:   o.Name,
		Listener:    observe.Join(calls, idle),
		Lacked:      lacked,
	})
	return f, nil
}

// configuredGroups returns the groups of mcp.tools. It adds DAG if the environment enables
// the task graph. It does not if the configuration file does, because cairn init writes that
// setting, and the tools would lengthen the list of every agent.
func configuredGroups(cfg config.Config) ([]tools.Group, error) {
	if len(cfg.MCP.Tools) == 0 {
		cfg.MCP.Tools = []string{string(tools.Auto)}
	}
	groups, err := tools.ParseGroups(strings.Join(cfg.MCP.Tools, ","))
	if err != nil {
		return nil, fmt.Errorf("configuration: mcp.tools: %w", err)
	}
	if cfg.DAG.Enabled && slices.Contains(cfg.FromEnvironment, "dag.enabled") {
		groups = append(groups, tools.DAG)
	}
	return groups, nil
}

// connect opens the gateway to other servers. It logs an error, because the search of
// documents does not need them.
func (f *Folder) connect(ctx context.Context, cfg config.Config, version string, log *slog.Logger) {
	store, err := gateway.Open(cfg.MCP.Servers)
	if err == nil {
		f.gateway = gateway.New(store, gateway.Options{Version: version, Root: f.Root, Audit: gateway.AuditFile(f.Workspace.Place()), Logger: log})
		err = store.Sync(ctx, f.toolbox)
	}
	if err != nil {
		log.Error("the servers of `cairn tools add` cannot be used", "error", err)
	}
}

// warm prepares the search of tools in the background, if the tools of the catalogue are
// offered and it is not empty. It logs an error, because the search of documents does not
// need the tools, and the first search of tools returns the same error.
func (f *Folder) warm(ctx context.Context, groups []tools.Group, log *slog.Logger) {
	known, err := toolbox.StatsOp.Call(ctx, f.toolbox, struct{}{}, nil)
	if err != nil {
		log.Error("the tools of this folder cannot be used; `cairn verify --repair` may help", "error", err)
	} else if known.Tools > 0 && (slices.Contains(groups, tools.Auto) || tools.Offers(groups, tools.Catalog)) {
		f.warming = job.Start(func(ctx context.Context, progress func(job.Progress)) (none, error) {
			p, err := toolbox.PrepareOp.Call(ctx, f.toolbox, maxWait, progress)
			if err == nil && p.Failure != "" {
				err = errors.New(p.Failure)
			}
			if err != nil && ctx.Err() == nil {
				log.Warn("preparing the search of tools", "error", err)
			}
			return none{}, err
		})
	}
}

type none = struct{}

// maxWait is longer than the preparation of any catalogue.
const maxWait = 24 * time.Hour

// observe sets the counts. It returns Listener and Lacked of tools.Options.
func (f *Folder) observe(o *Options) (calls observe.Listener, lacked func([]string)) {
	f.traces = o.Telemetry.Traces()
	if o.Metrics == nil {
		return o.Telemetry.Calls(nil), nil
	}
	f.counts = o.Metrics.Workspace(o.Name, func(ctx context.Context) (metrics.Index, error) {
		st, err := index.StatusOp.Call(ctx, f.Workspace.Folder, index.StatusRequest{Selection: f.Workspace.Selection()}, nil)
		if err != nil {
			return metrics.Index{}, err
		}
		return server.IndexState(st), nil
	})
	return o.Telemetry.Calls(f.counts), f.counts.SetDegraded
}

// Served returns the folder as a workspace of an HTTP server with metrics.
func (f *Folder) Served() server.Workspace {
	return server.Workspace{Name: f.Name, Folder: f.Workspace.Folder, Tools: f.Tools, Degraded: f.counts.Degraded}
}

// Mount adds the folder's pages and the API of its question tasks to s.
func (f *Folder) Mount(s *server.Server, log *slog.Logger) {
	folders := func(r *http.Request) (all []web.Served) {
		for _, w := range s.Permitted(r) {
			all = append(all, web.Served{Name: w.Name, Folder: w.Folder})
		}
		return all
	}
	pages := web.New(web.Site{
		Name: f.Name, Root: f.Root, Folder: f.Workspace.Folder, Tasks: f.Tasks, Toolbox: f.toolbox,
		Prefix: server.Prefix, Folders: folders, Scan: f.Workspace.Scan, MayWrite: server.MayWrite, Logger: log, Listener: observe.Join(f.traces, f.counts), Lacked: f.counts.SetDegraded,
	})
	for _, pattern := range pages.Patterns() {
		s.Handle(f.Name, pattern, pages)
	}
	s.Handle(f.Name, "/tasks/", rest.Handler(f.Stages.Engine))
}

// Close closes everything that is open. It returns after CloseLimit at the latest.
func (f *Folder) Close() error {
	closed := make(chan error, 1)
	go func() {
		var servers sync.WaitGroup
		if f.gateway != nil {
			servers.Go(f.gateway.Close)
		}
		if f.warming != nil {
			f.warming.Stop()
		}
		if f.recorder != nil {
			f.recorder.Close()
		}
		var errs []error
		if f.Stages != nil {
			errs = append(errs, f.Stages.Close())
		}
		if f.Tasks != nil {
			errs = append(errs, f.Tasks.Close())
		}
		if f.Workspace != nil {
			errs = append(errs, f.Workspace.Close())
		}
		servers.Wait()
		closed <- errors.Join(errs...)
	}()
	select {
	case err := <-closed:
		return err
	case <-time.After(CloseLimit):
		return nil
	}
}

// AddThread sets GOMAXPROCS to one more than the number of processors, unless the
// environment sets it. When searches use all threads, the runtime polls the network only
// every 10 ms, and requests wait for it. With eight clients on two processors, the
// additional thread lowered the p95 from 51-65 ms to 39-44 ms at the same rate.
var AddThread = sync.OnceFunc(func() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
})
