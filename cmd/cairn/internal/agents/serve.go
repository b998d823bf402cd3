package agents

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/base/metrics"
	"cairn/internal/face/host"
	"cairn/internal/face/server"
	"cairn/internal/face/token"
)

type serveFlags struct {
	hostFlags
	listen  host.ListenOptions
	tokens  string
	hosts   []string
	workers int
	remote  bool
	servers cli.Servers
}

func (a *app) serveCommand() *cli.Command {
	var f serveFlags
	cmd := cli.NewCommand("serve [NAME=DIR...]", "Serve folders over HTTP: a web page, MCP, a JSON API, health",
		a.Command(func(ctx context.Context, args []string) error { return a.serve(ctx, args, f) }))
	fs := cmd.Flags()
	f.add(fs)
	fs.BoolVar(&f.noRateLimit, "no-rate-limit", false, "do not limit the calls per minute (also CAIRN_RATE_LIMIT=off)")
	fs.StringVar(&f.listen.Address, "addr", "127.0.0.1:7420", "address to listen on; port 0 chooses a free one")
	f.listen.Auth = cmp.Or(os.Getenv("CAIRN_AUTH"), "auto")
	cli.ChoiceVar(fs, &f.listen.Auth, "auth", "require tokens: auto (unless only you can reach the address), on or off (also CAIRN_AUTH)", "auto", "on", "off")
	fs.StringVar(&f.tokens, "tokens", "", "file of the tokens (also CAIRN_TOKENS)")
	fs.StringSliceVar(&f.hosts, "allow-host", nil, "further host names of this server, such as behind a proxy")
	fs.StringVar(&f.listen.Cert, "tls-cert", "", "PEM file with the certificate; serves https")
	fs.StringVar(&f.listen.Key, "tls-key", "", "PEM file with the key of the certificate")
	fs.IntVar(&f.workers, "workers", 2, "stages of question tasks to work on at the same time; 0 if only cairn worker processes do")
	fs.BoolVar(&f.remote, "remote-reasoning", false, "let a cairn worker with a language model do executor_reasoning instead of the calling agent")
	f.servers.Add(fs)
	f.servers.AddQueue(fs)
	a.AddModel(cmd)
	a.AddRerank(cmd)
	return cmd
}

// check returns the servers of question tasks, or a usage error for flags that contradict
// each other.
func (f *serveFlags) check(folders int) (host.StageServers, error) {
	servers, err := f.servers.Addresses()
	noName := func(host string) bool {
		_, err := netip.ParseAddr(host)
		return err != nil && (host == "" || strings.ContainsAny(host, ":/* []"))
	}
	switch {
	case err != nil:
	case !slices.Contains([]string{"auto", "on", "off"}, f.listen.Auth):
		err = cli.BadUsage("CAIRN_AUTH is %q, want auto, on or off", f.listen.Auth)
	case slices.ContainsFunc(f.hosts, noName):
		err = cli.BadUsage("--allow-host is %q, want host names without scheme, port and wildcard, such as docs.example.org", f.hosts)
	case folders > 1 && servers != (host.StageServers{}):
		err = cli.BadUsage("--redis, --postgres and --amqp hold the question tasks of one folder; start a server for each folder")
	case f.workers < 0 || f.workers > cli.MaxWorkers:
		err = cli.BadUsage("--workers is %d, want 0 to %d", f.workers, cli.MaxWorkers)
	case f.workers < 1 && servers.AMQP == "":
		err = cli.BadUsage("--workers 0 leaves stages to cairn worker, which needs --amqp")
	case (f.listen.Cert == "") != (f.listen.Key == ""):
		err = cli.BadUsage("give both --tls-cert and --tls-key, or neither")
	}
	return servers, err
}

func (a *app) serve(ctx context.Context, args []string, f serveFlags) error {
	places, err := a.places(args)
	if err != nil {
		return err
	}
	servers, err := f.check(len(places))
	if err != nil {
		return err
	}
	host.AddThread()
	t, err := a.At(places[0].dir).Telemetry(ctx, f.telemetry, slog.LevelInfo)
	if err != nil {
		return err
	}
	defer t.Close()
	f.listen.Tokens = func() (*token.Store, error) { return cli.TokenStore(f.tokens) }
	f.listen.Proxied = len(f.hosts) > 0
	l, tokens, err := host.Listen(ctx, f.listen, t.Log)
	if err != nil {
		return err
	}
	defer l.Close()
	m := metrics.New()
	folders, err := a.openFolders(ctx, places, &f, servers, t, m)
	defer func() {
		for _, f := range folders {
			if err := f.Close(); err != nil {
				t.Log.Warn("closing a workspace", "workspace", f.Name, "error", err)
			}
		}
	}()
	if err != nil {
		return err
	}
	var served []server.Workspace
	for _, folder := range folders {
		served = append(served, folder.Served())
	}
	s, err := server.New(served, &server.Options{Logger: t.Log, Tokens: tokens, Hosts: f.hosts, Metrics: m, Listener: t.Calls(m), NoRateLimit: f.noRateLimit || os.Getenv("CAIRN_RATE_LIMIT") == "off"})
	if err != nil {
		return err
	}
	url := "http://" + l.Addr().String()
	if f.listen.Cert != "" {
		url = "https://" + l.Addr().String()
	}
	for _, folder := range folders {
		folder.Mount(s, t.Log)
		t.Log.Info("serving", "workspace", folder.Name, "folder", folder.Root, "mcp", url+"/w/"+folder.Name+"/mcp")
	}
	t.Log.Info("listening", "address", l.Addr().String(), "url", url, "tokens", tokens != nil)
	if err := s.Serve(ctx, l); err != nil && ctx.Err() == nil {
		return err
	}
	return nil // a signal is the intended end of a server
}

// openFolders opens the folders in order. It returns those opened before an error, too.
func (a *app) openFolders(ctx context.Context, places []place, f *serveFlags, servers host.StageServers, t *host.Telemetry, m *metrics.Metrics) ([]*host.Folder, error) {
	var folders []*host.Folder
	for _, p := range places {
		folder, err := (&app{a.At(p.dir)}).host(ctx, "serve", p.name, &f.hostFlags, func(o *host.Options) {
			o.Telemetry, o.Metrics = t, m
			o.Stages = &host.StageOptions{Servers: servers}
			o.Stages.Workers, o.Stages.Remote = cmp.Or(f.workers, -1), f.remote
			o.Workspace.Postgres = servers.Postgres
		})
		if err != nil {
			return folders, fmt.Errorf("workspace %s: %w", p.name, err)
		}
		folders = append(folders, folder)
	}
	return folders, nil
}

// place is a folder to serve and the name of its workspace.
type place struct{ name, dir string }

// places parses the arguments of serve.
func (a *app) places(args []string) ([]place, error) {
	if len(args) == 0 {
		return []place{{"default", a.Dir}}, nil
	}
	if a.Dir != "" {
		return nil, cli.BadUsage("give either -C or NAME=DIR, not both")
	}
	var places []place
	seen := map[string]bool{}
	for _, arg := range args {
		name, dir, ok := strings.Cut(arg, "=")
		if !ok || dir == "" {
			return nil, cli.BadUsage("%q is not a workspace, want NAME=DIR, as in: cairn serve notes=/home/ann/notes", arg)
		}
		if _, err := server.ParseName(name); err != nil {
			return nil, &cli.UsageError{Err: err}
		}
		if seen[name] {
			return nil, cli.BadUsage("two workspaces are called %q", name)
		}
		seen[name] = true
		places = append(places, place{name, dir})
	}
	return places, nil
}
