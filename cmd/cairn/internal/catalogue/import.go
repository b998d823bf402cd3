package catalogue

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/base/owner"
	"cairn/internal/face/term"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/catalog"
	"cairn/tools/client"
)

type importFlags struct {
	mcp, noEmbed                  bool
	url, tokenEnv, server, source string
}

func (a *app) toolsImportCommand() *cli.Command {
	var f importFlags
	cmd := &cli.Command{
		Use:   "import [flags] FILE | --mcp COMMAND [ARG...] | --url URL",
		Short: "Import the tools of an MCP server, a list or an OpenAPI description",
	}
	fs := cmd.Flags()
	fs.SetInterspersed(false) // flags after --mcp COMMAND belong to that command
	cmd.Args = func(cmd *cli.Command, args []string) error {
		if f.mcp || len(args) < 2 {
			return nil
		}
		fs.SetInterspersed(true) // flags after FILE belong to cairn
		return cmd.ParseFlags(args)
	}
	cmd.RunE = a.WithTools(func(ctx context.Context, folder *owner.Folder, _ []string) error {
		limit := debug.SetMemoryLimit(-1)
		defer debug.SetMemoryLimit(limit)
		debug.SetMemoryLimit(min(limit, importMemory))
		batch, source, err := a.readTools(ctx, fs.Args(), f)
		if err != nil {
			return err
		}
		changed, err := a.importBatch(ctx, folder, batch, cmp.Or(f.source, source))
		debug.SetMemoryLimit(limit)
		if err != nil || f.noEmbed || !changed {
			return err
		}
		return a.makeVectors(ctx, folder)
	})
	fs.BoolVar(&f.mcp, "mcp", false, "the arguments are a command that serves MCP on standard input and output")
	fs.StringVar(&f.url, "url", "", "endpoint of an MCP server")
	fs.StringVar(&f.tokenEnv, "token-env", "", "environment variable that holds a bearer token for --url")
	fs.StringVar(&f.server, "server", "", "name of the server (default: the name it reports; in files, for tools without one)")
	fs.BoolVar(&f.noEmbed, "no-embed", false, "make no vectors now; the first search makes them")
	a.AddModel(cmd)
	fs.StringVar(&f.source, "source", "", "name of the source, for importing it again (default: the file, command or URL)")
	return cmd
}

// importMemory is the heap size beyond which an import collects garbage more often. A list
// may be large or hostile.
const importMemory = 160 << 20

// importBatch adds the tools of a source to the catalogue, and prints the changes. changed
// reports whether vectors are missing.
func (a *app) importBatch(ctx context.Context, folder *owner.Folder, batch *catalog.Batch, source string) (changed bool, err error) {
	r := term.ImportReport{Source: source, Tools: len(batch.Tools), Refused: batch.Refused, Broken: []term.BrokenTool{}, Flagged: []term.BrokenTool{}, Warnings: append([]string{}, batch.Warnings...)}
	if r.Diff, err = toolbox.ImportOp.Call(ctx, folder, toolbox.ImportRequest{Source: source, Tools: batch.Tools}, nil); err != nil {
		return false, err
	}
	for _, t := range batch.Tools {
		if t.SchemaError != "" {
			r.Broken = append(r.Broken, term.BrokenTool{ID: t.ID, Error: t.SchemaError})
		}
		if len(t.Flags) > 0 {
			r.Flagged = append(r.Flagged, term.BrokenTool{ID: t.ID, Flags: t.Flags})
		}
	}
	return len(r.Added)+len(r.Changed) > 0, a.Out.Print(r, func() { a.Out.Import(&r) })
}

// importWait is longer than the vectors of any catalogue take.
const importWait = 24 * time.Hour

// makeVectors makes the vectors for searches.
func (a *app) makeVectors(ctx context.Context, folder *owner.Folder) error {
	err := a.prepareTools(ctx, folder, importWait)
	if ctx.Err() != nil {
		return fmt.Errorf("%w: the imported tools are kept and found by keyword; the first search makes the missing vectors", ctx.Err())
	}
	return err
}

// readTools reads the tools and returns the name of their source.
func (a *app) readTools(ctx context.Context, args []string, f importFlags) (b *catalog.Batch, source string, err error) {
	if f.tokenEnv != "" && f.url == "" {
		return nil, "", cli.BadUsage("--token-env goes with --url")
	}
	switch {
	case f.mcp && f.url != "":
		return nil, "", cli.BadUsage("--mcp and --url name two servers, want one")
	case f.mcp:
		if len(args) == 0 {
			return nil, "", cli.BadUsage("--mcp wants a command")
		}
		b, err = client.Import(ctx, client.Target{Command: args, Version: a.Version}, f.server)
		return b, "mcp: " + strings.Join(args, " "), err
	case f.url != "":
		if len(args) > 0 {
			return nil, "", cli.BadUsage("--url takes no file")
		}
		target := client.Target{URL: f.url, Version: a.Version}
		if f.tokenEnv != "" {
			if target.Token = os.Getenv(f.tokenEnv); target.Token == "" {
				return nil, "", cli.BadUsage("the environment variable %s is not set", f.tokenEnv)
			}
		}
		b, err = client.Import(ctx, target, f.server)
		source = f.url
		if u, parseErr := url.Parse(f.url); parseErr == nil { // the name must not contain a password or a key
			u.User, u.RawQuery = nil, ""
			source = u.String()
		}
		return b, source, err
	case len(args) == 0:
		return nil, "", cli.BadUsage("want a FILE, --mcp COMMAND or --url URL; see cairn tools import --help")
	case len(args) > 1:
		return nil, "", cli.BadUsage("%d files, want one at a time; a command that serves MCP goes after --mcp", len(args))
	case args[0] == "-":
		b, err = catalog.Read(ctx, a.Stdin, f.server)
		return b, "standard input", err
	}
	file, err := os.Open(args[0])
	if err != nil {
		return nil, "", err
	}
	defer file.Close()
	if b, err = catalog.Read(ctx, file, f.server); err != nil {
		err = fmt.Errorf("%s: %w", args[0], err)
	}
	return b, filepath.Clean(args[0]), err
}
