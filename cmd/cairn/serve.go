package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"cairn/internal/metrics"
	"cairn/internal/observe"
	"cairn/internal/server"
	"cairn/internal/stage/rest"
	"cairn/internal/token"
	"cairn/internal/web"
	"cairn/internal/workspace"
	"cairn/retriever"
	"cairn/tools"
)

type serveFlags struct {
	addr                 string
	noRateLimit, noIndex bool
	noRecord             bool
	watch                bool
	groups               string
	auth, tokens         string
	hosts                []string
	cert, key            string
	see                  telemetryFlags
	metrics              *metrics.Metrics
	seen                 *telemetry
	stages               stageFlags
}

func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve [NAME=DIR...]",
		Short: "Serve folders over HTTP: a web page, MCP, a JSON API, health",
		Long: `Serve folders over HTTP: a page for the browser at /, MCP at /mcp, search and
reading as JSON below /api, described by /api/openapi.json; /healthz, /readyz, and
/metrics for Prometheus.

Without arguments the folder around you is served. With them, each DIR is served
under its NAME at /w/NAME/mcp and /w/NAME/api, strictly apart from the others; the
first one also without its name. The folders are indexed in the background from
the start; keyword search answers while vectors are still being made.

On this machine's own address everybody on it may ask. On any other address each
request needs a token (` + "`cairn token new`" + `), unless --auth off says otherwise.`,
		Example: `  cairn serve
  cairn serve -C ~/notes --addr 127.0.0.1:8080
  cairn serve notes=~/notes handbook=/srv/handbook
  cairn token new ann
  cairn serve --addr :7420 --tls-cert cert.pem --tls-key key.pem
  curl 'http://127.0.0.1:7420/api/search?q=rotate+a+token'`,
		RunE: a.command(func(ctx context.Context, args []string) error { return a.serve(ctx, args, f) }),
	}
	fs := cmd.Flags()
	fs.StringVar(&f.addr, "addr", "127.0.0.1:7420", "address to listen on; port 0 takes a free one")
	fs.StringVar(&f.groups, "tools", "", "tools to offer: groups of {core,tasks,dag,docs,tools,stages,all}, or names of tools (default: core, and tools where some have been imported)")
	fs.BoolVar(&f.noRecord, "no-record", false, noRecordText)
	fs.BoolVar(&f.noRateLimit, "no-rate-limit", false, "do not limit calls a minute (also CAIRN_RATE_LIMIT=off)")
	fs.BoolVar(&f.noIndex, "no-index", false, "do not index at the start, nor watch")
	fs.BoolVar(&f.watch, "watch", true, "keep the index up to date with the files (also watcher.enabled)")
	fs.StringVar(&f.auth, "auth", "auto", "ask for tokens: auto (everywhere but on loopback), on or off")
	fs.StringVar(&f.tokens, "tokens", "", "file of the tokens (also CAIRN_TOKENS)")
	fs.StringSliceVar(&f.hosts, "allow-host", nil, "further names this server is called by, as behind a proxy")
	fs.StringVar(&f.cert, "tls-cert", "", "file with the certificate, PEM; serves https")
	fs.StringVar(&f.key, "tls-key", "", "file with its key, PEM")
	fs.IntVar(&f.stages.workers, "workers", 2, "stages of question tasks worked on at once; -1 for none, with cairn worker elsewhere")
	fs.BoolVar(&f.stages.remote, "remote-reasoning", false, "leave executor_reasoning to a cairn worker with a language model, not to the calling agent")
	f.stages.servers.add(fs)
	f.stages.servers.addQueue(fs)
	f.see.addCalls(fs)
	a.model.add(cmd)
	return cmd
}

// attend has the runtime use one thread more than there are processors. When
// searches have them all, it looks at the network every 10 ms at most, and who
// asks then waits longer than those who were lucky: eight clients on two
// processors had their p95 at 51 to 65 ms, and 39 to 44 with a thread more, at as
// many searches a second. Who sets GOMAXPROCS has what was set.
var attend = sync.OnceFunc(func() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
})

func (a *app) serve(ctx context.Context, args []string, f serveFlags) error {
	folders, err := a.folders(args)
	if err != nil {
		return err
	}
	f.stages.servers = f.stages.servers.read()
	if len(folders) > 1 && f.stages.servers != (taskServers{}) {
		return badUsage("--redis, --postgres and --amqp hold the question tasks of one folder; start a server for each folder")
	}
	if n := f.stages.workers; n != -1 && (n < 1 || n > maxWorkers) {
		return badUsage("--workers is %d, want 1 to %d, or -1 for none", n, maxWorkers)
	}
	if f.stages.workers == -1 && f.stages.servers.amqp == "" {
		return badUsage("--workers -1 leaves stages to cairn worker, which needs --amqp")
	}
	if (f.cert == "") != (f.key == "") {
		return badUsage("give both --tls-cert and --tls-key, or neither")
	}
	attend()
	here := *a
	here.dir = folders[0].dir
	_, cfg, err := here.choose()
	if err != nil {
		return err
	}
	if f.seen, err = a.telemetry(ctx, f.see, cfg.Log, slog.LevelInfo); err != nil {
		return err
	}
	defer f.seen.close()
	f.metrics = metrics.New()
	log := f.seen.log
	l, tokens, err := listen(ctx, f, log)
	if err != nil {
		return err
	}
	defer l.Close()
	var opened []*folder
	defer func() {
		for _, o := range opened {
			if err := o.close(); err != nil {
				log.Warn("closing a workspace", "workspace", o.name, "error", err)
			}
		}
	}()
	var all []server.Workspace
	for _, at := range folders {
		o, err := a.openFolder(ctx, at, f, log)
		if err != nil {
			return fmt.Errorf("workspace %s: %w", at.name, err)
		}
		opened = append(opened, o)
		all = append(all, server.Workspace{Name: o.name, Engine: o.engine, Tools: o.tools, Lacks: o.counts.Lacks})
	}
	s, err := server.New(all, &server.Options{Logger: log, Tokens: tokens, Hosts: f.hosts, Metrics: f.metrics, Listener: f.seen.calls(f.metrics)})
	if err != nil {
		return err
	}
	for _, o := range opened {
		if err := o.mountPages(s, log); err != nil {
			return fmt.Errorf("workspace %s: %w", o.name, err)
		}
	}
	url := "http://"
	if f.cert != "" {
		url = "https://"
	}
	url += l.Addr().String()
	for _, o := range opened {
		log.Info("serving", "workspace", o.name, "folder", o.root, "mcp", url+"/w/"+o.name+"/mcp")
	}
	log.Info("listening", "address", l.Addr().String(), "url", url, "tokens", tokens != nil)
	if err := s.Serve(ctx, l); err != nil && ctx.Err() == nil {
		return err
	}
	return nil // a server that is told to end has done its work
}

// listen opens the address, with TLS where files are given, and decides whether
// tokens are asked for: nil lets everybody in.
func listen(ctx context.Context, f serveFlags, log *slog.Logger) (_ net.Listener, _ *token.Store, err error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.addr)
	if err != nil {
		return nil, nil, fmt.Errorf("listening on %s: %w; choose another address with --addr", f.addr, err)
	}
	defer func() {
		if err != nil {
			l.Close()
		}
	}()
	local := l.Addr().(*net.TCPAddr).IP.IsLoopback()
	var store *token.Store
	switch f.auth {
	case "on", "auto":
		if f.auth == "auto" && local {
			break
		}
		if store, err = tokenStore(f.tokens); err != nil {
			return nil, nil, err
		}
		known, err := store.List()
		if err != nil {
			return nil, nil, err
		}
		if len(known) == 0 {
			return nil, nil, fmt.Errorf("serving on %s needs a token and %s has none: make one with `cairn token new NAME`, or let everybody in with --auth off", l.Addr(), store.Path())
		}
		if !local && f.cert == "" {
			log.Warn("tokens travel in the clear; give --tls-cert and --tls-key, or put a proxy with TLS in front")
		}
	case "off":
		if !local {
			log.Warn("everybody who reaches this address may read and write", "address", l.Addr().String())
		}
	default:
		return nil, nil, badUsage("--auth: %q, want {auto,on,off}", f.auth)
	}
	if f.cert == "" {
		return l, store, nil
	}
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, nil, fmt.Errorf("reading --tls-cert and --tls-key: %w", err)
	}
	return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}), store, nil
}

// place is a folder to serve and its name.
type place struct{ name, dir string }

// folders reads the arguments of serve.
func (a *app) folders(args []string) ([]place, error) {
	if len(args) == 0 {
		return []place{{"default", a.dir}}, nil
	}
	if a.dir != "" {
		return nil, badUsage("give either -C or NAME=DIR, not both")
	}
	var all []place
	seen := map[string]bool{}
	for _, arg := range args {
		name, dir, ok := strings.Cut(arg, "=")
		if !ok || dir == "" {
			return nil, badUsage("%q is no workspace, want NAME=DIR, as in: cairn serve notes=/home/ann/notes", arg)
		}
		if _, err := server.ParseName(name); err != nil {
			return nil, &usageError{err}
		}
		if seen[name] {
			return nil, badUsage("two workspaces are called %q", name)
		}
		seen[name] = true
		all = append(all, place{name, dir})
	}
	return all, nil
}

// folder is a workspace that is served, with all that was opened for it.
type folder struct {
	name, root string
	workspace  *workspace.Workspace
	engine     tools.Engine // the workspace, observed, for the pages
	counts     *metrics.Workspace
	tasks      *workspace.Tasks
	box        *workspace.Toolbox
	stages     *workspace.Stages
	recorder   *tools.Recorder // nil where nothing is noted
	tools      *tools.Server
}

// openFolder opens a folder with its tools.
func (a *app) openFolder(ctx context.Context, at place, f serveFlags, log *slog.Logger) (_ *folder, err error) {
	here := *a
	here.dir = at.dir
	sel, cfg, err := here.choose()
	if err != nil {
		return nil, err
	}
	o := &folder{name: at.name, root: sel.Root}
	defer func() {
		if err != nil {
			err = errors.Join(err, o.close())
		}
	}()
	var groups []tools.Group
	if o.box, groups, err = here.toolGroups(f.groups); err != nil {
		return nil, err
	}
	log = log.With("workspace", at.name)
	wo := workspace.Options{Command: "cairn serve", Background: !f.noIndex, Watch: f.watch && !f.noIndex, Stateless: f.noIndex, Warm: true, Serves: true, Logger: log}
	if err := a.model.apply(&wo); err != nil {
		return nil, err
	}
	if wo.Store, err = a.chooseStore(cfg); err != nil {
		return nil, err
	}
	o.box.UseModel(wo.Description, wo.Model)
	if slices.Contains(groups, tools.Catalog) {
		o.box.Warm(log)
	}
	if o.workspace, err = workspace.Open(ctx, sel, cfg, workspace.Owning, wo); err != nil {
		return nil, err
	}
	if o.tasks, err = o.workspace.Tasks(nil); err != nil {
		return nil, err
	}
	if o.stages, err = here.openStages(ctx, o.workspace, log, f.stages); err != nil {
		return nil, err
	}
	var watch func(context.Context, func(workspace.WatchEvent)) error
	if wo.Watch {
		watch = o.workspace.Watch
	}
	if cfg.Usage.Record && !f.noRecord {
		o.recorder = tools.Record(o.box.Usage, log)
	}
	o.counts = f.metrics.Workspace(at.name, func(ctx context.Context) (metrics.Index, error) {
		st, err := o.workspace.Status(ctx)
		if err != nil {
			return metrics.Index{}, err
		}
		return server.IndexState(st), nil
	})
	o.engine = &tools.Observed{Engine: o.workspace, Listener: observe.Join(f.seen.traces(), o.counts), Lacked: o.counts.Lacked}
	o.tools = tools.New(o.workspace, &tools.Options{
		Version:     versionName(),
		Logger:      log,
		NoRateLimit: f.noRateLimit || os.Getenv("CAIRN_RATE_LIMIT") == "off" || !cfg.MCP.RateLimit,
		DefaultMode: retriever.Mode(cfg.Search.DefaultMode),
		Groups:      groups,
		Watch:       watch,
		Toolbox:     o.box,
		Tasks:       o.tasks,
		Stages:      o.stages,
		Recorder:    o.recorder,
		Workspace:   at.name,
		Listener:    f.seen.calls(o.counts),
		Lacked:      o.counts.Lacked,
	})
	return o, nil
}

// mountPages adds the pages for a browser, and the faces of question tasks.
func (o *folder) mountPages(s *server.Server, log *slog.Logger) error {
	pages, err := web.New(web.Sources{Name: o.name, Engine: o.engine, Tasks: o.tasks, Toolbox: o.box}, &web.Options{Prefix: server.Prefix, Logger: log})
	if err != nil {
		return err
	}
	for _, pattern := range pages.Patterns() {
		if err := s.Handle(o.name, pattern, pages); err != nil {
			return err
		}
	}
	return s.Handle(o.name, "/tasks/", rest.Handler(o.stages.Engine))
}

// close closes what is open, for at most closeLimit: the index survives the
// end of the process at any moment.
func (o *folder) close() error {
	ended := make(chan error, 1)
	go func() {
		var err error
		if o.recorder != nil {
			o.recorder.Close()
		}
		if o.stages != nil {
			err = o.stages.Close()
		}
		if o.tasks != nil {
			err = errors.Join(err, o.tasks.Close())
		}
		if o.workspace != nil {
			err = errors.Join(err, o.workspace.Close())
		}
		if o.box != nil {
			err = errors.Join(err, o.box.Close())
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-time.After(closeLimit):
		return nil
	}
}
