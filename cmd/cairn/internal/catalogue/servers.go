package catalogue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/base/home"
	"cairn/internal/base/owner"
	"cairn/internal/face/connect"
	"cairn/internal/face/term"
	"cairn/internal/face/view"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/catalog"
	"cairn/tools/gateway"
)

// withServers opens the folder and the servers for fn.
func (a *app) withServers(fn func(context.Context, *owner.Folder, *gateway.Gateway, []string) error) func(*cli.Command, []string) error {
	return a.WithTools(func(ctx context.Context, folder *owner.Folder, args []string) error {
		sel, cfg, err := a.Choose()
		if err != nil {
			return err
		}
		store, err := gateway.Open(cfg.MCP.Servers)
		if err != nil {
			return err
		}
		place, err := home.Of(sel.Root)
		if err != nil {
			return err
		}
		g := gateway.New(store, gateway.Options{Version: a.Version, Root: sel.Root, Audit: gateway.AuditFile(place)})
		defer g.Close()
		return fn(ctx, folder, g, args)
	})
}

type addFlags struct {
	env            []string
	headers        map[string]string
	tokenEnv, from string
	accept, oauth  bool
}

func (a *app) toolsAddCommand() *cli.Command {
	var f addFlags
	cmd := &cli.Command{
		Use:   "add NAME -- COMMAND [ARG...] | NAME URL | --from CLIENT",
		Short: "Add an MCP server whose tools agents call through cairn",
	}
	cmd.Args = cobra.ArbitraryArgs
	fs := cmd.Flags()
	add := a.withServers(func(ctx context.Context, folder *owner.Folder, g *gateway.Gateway, args []string) error {
		dash := fs.ArgsLenAtDash()
		switch {
		case dash == 1 && len(args) > 1:
			return a.addServer(ctx, folder, g, gateway.Server{Name: args[0], Command: args[1:], Env: f.env})
		case dash < 0 && len(args) == 2 && strings.Contains(args[1], "://"):
			return a.addServer(ctx, folder, g, gateway.Server{Name: args[0], URL: args[1], TokenEnv: f.tokenEnv, Headers: f.headers, OAuth: f.oauth})
		}
		return cli.BadUsage("want NAME -- COMMAND, NAME URL or --from CLIENT, as in: cairn tools add time -- uvx mcp-server-time")
	})
	cmd.RunE = func(cmd *cli.Command, args []string) error {
		switch {
		case f.from == "":
			return add(cmd, args)
		case len(args) > 0:
			return cli.BadUsage("--from takes no NAME")
		}
		return a.Command(func(context.Context, []string) error { return a.addFrom(cmd, f) })(cmd, args)
	}
	fs.StringSliceVar(&f.env, "env", nil, "environment variables that the command receives; their values stay in your environment")
	fs.StringVar(&f.tokenEnv, "token-env", "", "environment variable that holds a bearer token for the URL")
	fs.StringToStringVar(&f.headers, "header", nil, "header=variable: an HTTP header for the URL, and the environment variable that holds its value")
	fs.BoolVar(&f.oauth, "oauth", false, "log in to the URL on a page of your browser")
	fs.StringVar(&f.from, "from", "", "add the servers that this client has configured, such as cursor")
	fs.BoolVarP(&f.accept, "yes", "y", false, "do not ask before starting the commands of --from")
	a.AddModel(cmd)
	return cmd
}

// addServer starts a server, approves its tools, and adds it and them.
func (a *app) addServer(ctx context.Context, folder *owner.Folder, g *gateway.Gateway, s gateway.Server) error {
	if err := s.Check(); err != nil {
		return &cli.UsageError{Err: err}
	}
	all, err := g.Store().All()
	if err != nil {
		return err
	}
	if old, ok := all[s.Name]; ok && !old.Folder && old.Target() != s.Target() {
		return fmt.Errorf("there is another server %s: %s; remove it with `cairn tools remove %[1]s`", s.Name, old.Target())
	} else if ok {
		s.Permissions = old.Permissions
	}
	if s.OAuth {
		err := g.Login(ctx, s, func(page string) { a.Out.Notes.Printf("open this page to log in:\n%s\n", term.Plain(page)) })
		if err != nil {
			return err
		}
	}
	batch, err := g.Definitions(ctx, s)
	if err != nil {
		return err
	}
	if err := errors.Join(g.Store().Approve(&s, batch.Tools), g.Store().SetValues(&s)); err != nil {
		return err
	}
	if err := g.Store().Change(func(all map[string]gateway.Server) error { all[s.Name] = s; return nil }); err != nil {
		return err
	}
	return a.importServer(ctx, folder, &s, batch)
}

// importServer adds the tools of a server to the catalogue, and prints the changes.
func (a *app) importServer(ctx context.Context, folder *owner.Folder, s *gateway.Server, batch *catalog.Batch) error {
	var asks []string
	for i := range batch.Tools {
		if t := &batch.Tools[i]; s.Permission(t) == gateway.Ask {
			asks = append(asks, t.ID)
		}
	}
	changed, err := a.importBatch(ctx, folder, batch, s.Source())
	if len(asks) > 0 && !a.Out.JSON {
		a.Out.Notes.Printf("asks before each call: %s\n", term.Plain(strings.Join(asks, ", ")))
	}
	if err != nil || !changed {
		return err
	}
	return a.makeVectors(ctx, folder)
}

// addFrom adds the servers that a client has configured.
func (a *app) addFrom(cmd *cli.Command, f addFlags) error {
	c, err := connect.ByName(f.from)
	if err != nil {
		return cli.BadUsage("--from: %w", err)
	}
	sel, err := a.Selection()
	if err != nil {
		return err
	}
	path, err := c.File(connect.PlaceOf(sel.Root))
	if err != nil {
		return err
	}
	found, err := c.Servers(connect.File{Root: sel.Root, Path: path})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%s has no servers but cairn in %s", c.Title, path)
	}
	if err != nil {
		return err
	}
	added, err := TakeOver(cmd, a.App, found, "Start and add them?", f.accept)
	if err == nil && added != nil && len(added) < len(found) {
		err = fmt.Errorf("%d of %d servers are not added", len(found)-len(added), len(found))
	}
	return err
}

// TakeOver shows servers of a client, and adds them if the user agrees. It returns the names of
// those that it could add, nil if the user declines.
func TakeOver(cmd *cli.Command, c *cli.App, found []connect.Configured, question string, accept bool) (added []string, err error) {
	a := &app{c}
	for _, s := range found {
		a.Out.Notes.Printf("%s: %s\n", term.Plain(s.Name), term.Plain(strings.Join(append(s.Command, s.URL), " ")))
	}
	if agreed, err := a.agreed(question, accept); err != nil || !agreed {
		return nil, err
	}
	added = []string{}
	err = a.withServers(func(ctx context.Context, folder *owner.Folder, g *gateway.Gateway, _ []string) error {
		for _, s := range found {
			err := fmt.Errorf("only the client can supply %s", s.Bound)
			if s.Bound == "" {
				err = a.addServer(ctx, folder, g, gateway.Server{Name: s.Name, Command: s.Command, URL: s.URL, Env: s.Env, Headers: s.Headers, Values: s.Values})
			}
			if err != nil {
				a.Out.Notes.Warn("%s is not added: %v", s.Name, err)
				continue
			}
			added = append(added, s.Name)
		}
		return ctx.Err()
	})(cmd, nil)
	return added, err
}

// agreed asks a question on a terminal. Elsewhere only --yes agrees.
func (a *app) agreed(question string, accept bool) (bool, error) {
	if accept {
		return true, nil
	}
	if !a.Asks() {
		return false, cli.BadUsage("cairn cannot ask you here: add --yes to agree")
	}
	return a.Agrees(question)
}

// serverState is a server in the list.
type serverState struct {
	gateway.Server
	Name     string   `json:"name"`
	Missing  []string `json:"missing,omitempty"` // variables that the environment lacks
	Approved bool     `json:"approved"`
	Tools    int      `json:"tools"`
}

func (a *app) toolsServersCommand() *cli.Command {
	return cli.NewCommand("servers", "List the MCP servers whose tools agents call through cairn",
		a.withServers(func(_ context.Context, _ *owner.Folder, g *gateway.Gateway, _ []string) error {
			all, err := g.Store().All()
			if err != nil {
				return err
			}
			list := []serverState{}
			for _, name := range slices.Sorted(maps.Keys(all)) {
				s := all[name]
				tools, err := g.Store().Approved(&s)
				if err != nil {
					return err
				}
				list = append(list, serverState{s, name, s.Missing(), tools != nil, len(tools)})
			}
			return a.Out.Print(map[string]any{"servers": list}, func() {
				for _, s := range list {
					state := view.Count(s.Tools, "tool")
					if !s.Approved {
						state = "not approved"
					}
					if len(s.Missing) > 0 {
						state += ", needs " + strings.Join(s.Missing, ", ")
					}
					a.Out.Printf("%s  %s  %s\n", s.Name, state, term.Plain(s.Target()))
				}
				if len(list) == 0 {
					a.Out.Notes.Printf("there are no servers; add one with `cairn tools add NAME -- COMMAND`\n")
				}
			})
		}))
}

func (a *app) toolsRemoveCommand() *cli.Command {
	return cli.NewCommand("remove NAME", "Remove a server of cairn tools add, with its tools",
		a.withServers(func(ctx context.Context, folder *owner.Folder, g *gateway.Gateway, args []string) error {
			s, err := g.Store().Server(args[0])
			if err != nil {
				return err
			}
			if s.Folder {
				return fmt.Errorf("the configuration of the folder names %s; change mcp.servers there", s.Name)
			}
			if err := g.Store().Change(func(all map[string]gateway.Server) error { delete(all, s.Name); return nil }); err != nil {
				return err
			}
			if err := g.Store().Forget(&s); err != nil {
				return err
			}
			if err := g.Store().Sync(ctx, folder); err != nil {
				return err
			}
			return a.Out.Line(map[string]any{"removed": s.Name}, "removed %s", s.Name)
		}))
}

func (a *app) toolsApproveCommand() *cli.Command {
	var accept bool
	cmd := cli.NewCommand("approve NAME[:TOOL]", "Approve the present definitions of a server's tools",
		a.withServers(func(ctx context.Context, folder *owner.Folder, g *gateway.Gateway, args []string) error {
			name, only, _ := strings.Cut(args[0], ":")
			s, err := g.Store().Server(name)
			if err != nil {
				return err
			}
			batch, err := g.Definitions(ctx, s)
			if err != nil {
				return err
			}
			before, err := g.Store().Approved(&s)
			if err != nil {
				return err
			}
			changes := gateway.Compare(before, batch.Tools)
			if only != "" {
				changes = slices.DeleteFunc(changes, func(c gateway.Change) bool { return c.Name != only })
				batch.Tools = gateway.Apply(before, changes)
			}
			for _, c := range changes {
				if c.Old != nil {
					a.Out.Notes.Printf("- %s:%s  %s\n", name, term.Plain(c.Name), term.Plain(gateway.Text(c.Old)))
				}
				if c.New != nil {
					a.Out.Notes.Printf("+ %s:%s  %s\n", name, term.Plain(c.Name), term.Plain(gateway.Text(c.New)))
				}
			}
			if agreed, err := a.agreed("Approve?", accept || len(changes) == 0); err != nil || !agreed {
				return err
			}
			if err := g.Store().Approve(&s, batch.Tools); err != nil {
				return err
			}
			return a.importServer(ctx, folder, &s, batch)
		}))
	cmd.Flags().BoolVarP(&accept, "yes", "y", false, "do not ask")
	return cmd
}

func (a *app) toolsPermitCommand() *cli.Command {
	cmd := cli.NewCommand("permit TOOL allow|ask|deny", "Say whether agents may call a tool",
		a.withServers(func(ctx context.Context, folder *owner.Folder, g *gateway.Gateway, args []string) error {
			permission, err := gateway.ParsePermission(args[1])
			if err != nil {
				return &cli.UsageError{Err: err}
			}
			t, err := toolbox.LookupOp.Call(ctx, folder, args[0], nil)
			if err != nil {
				return err
			}
			err = g.Store().Change(func(all map[string]gateway.Server) error {
				s, ok := all[t.Server]
				if !ok {
					return fmt.Errorf("%q is none of your servers; add it with `cairn tools add`", t.Server)
				}
				permissions := map[string]gateway.Permission{}
				maps.Copy(permissions, s.Permissions)
				permissions[t.BareName()] = permission
				s.Permissions = permissions
				all[t.Server] = s
				return nil
			})
			if err != nil {
				return err
			}
			return a.Out.Line(map[string]any{"tool": t.ID, "permission": permission}, "%s: %s", term.Plain(t.ID), permission)
		}))
	return cmd
}
