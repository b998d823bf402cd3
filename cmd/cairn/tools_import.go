package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/catalog"
	"cairn/internal/workspace"
	"cairn/tools/client"
)

type importFlags struct {
	mcp, noEmbed                  bool
	url, tokenEnv, server, source string
}

func (a *app) toolsImportCommand() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import [flags] FILE | --mcp COMMAND [ARG...] | --url URL",
		Short: "Import the tools of an MCP server, a list or an OpenAPI description",
		Long: `Import the tools of an MCP server, a list or an OpenAPI description.

FILE is an answer to tools/list, one tool a line (name, server, description,
inputSchema, outputSchema, annotations, depends_on), or OpenAPI 3.0 or 3.1 in JSON or
YAML; "-" is standard input. --mcp runs the command that follows and asks
it; --url asks a server over HTTP. Importing a source again brings the catalogue
up to date with it: tools it has no more are removed, and what changed is listed.

The tools are found by keyword as soon as they are imported. Then their vectors are
made, which can be interrupted: the first search goes on with them.`,
		Example: `  cairn tools import --mcp npx -y @modelcontextprotocol/server-filesystem .
  cairn tools import --url https://example.com/mcp --token-env MCP_TOKEN
  cairn tools import --server shop openapi.yaml`,
	}
	fs := cmd.Flags()
	fs.SetInterspersed(false) // what follows --mcp COMMAND is the command's
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if f.mcp || len(args) < 2 {
			return nil
		}
		fs.SetInterspersed(true) // but flags may follow a file
		return cmd.ParseFlags(args)
	}
	cmd.RunE = a.withToolbox(func(ctx context.Context, box *workspace.Toolbox, _ []string) error {
		return a.toolsImport(ctx, box, fs.Args(), f)
	})
	fs.BoolVar(&f.mcp, "mcp", false, "the arguments are a command that serves MCP on standard input and output")
	fs.StringVar(&f.url, "url", "", "endpoint of an MCP server")
	fs.StringVar(&f.tokenEnv, "token-env", "", "environment variable that holds a bearer token for --url")
	fs.StringVar(&f.server, "server", "", "name of the server (default: what it calls itself; in files, for tools that bring none)")
	fs.BoolVar(&f.noEmbed, "no-embed", false, "leave the vectors to the first search; keywords find the tools at once")
	a.model.add(cmd)
	fs.StringVar(&f.source, "source", "", "name of the source, for importing it again (default: the file, command or URL)")
	return cmd
}

// importReport is what an import did.
type importReport struct {
	Source string `json:"source"`
	Tools  int    `json:"tools"`
	catalog.Diff
	Refused  int          `json:"refused"`
	Broken   []brokenTool `json:"broken"`
	Flagged  []brokenTool `json:"flagged"`
	Warnings []string     `json:"warnings"`
}

// brokenTool is one that was kept with a remark.
type brokenTool struct {
	ID    string         `json:"id"`
	Error string         `json:"error,omitempty"`
	Flags []catalog.Flag `json:"flags,omitempty"`
}

func (a *app) toolsImport(ctx context.Context, box *workspace.Toolbox, args []string, f importFlags) error {
	batch, source, err := a.readTools(ctx, args, f)
	if err != nil {
		return err
	}
	if f.source != "" {
		source = f.source
	}
	r := importReport{Source: source, Tools: len(batch.Tools), Refused: batch.Refused, Broken: []brokenTool{}, Flagged: []brokenTool{}, Warnings: append([]string{}, batch.Warnings...)}
	if r.Diff, err = box.Catalog.Import(source, batch.Tools); err != nil {
		return err
	}
	for _, t := range batch.Tools {
		if t.SchemaError != "" {
			r.Broken = append(r.Broken, brokenTool{ID: t.ID, Error: t.SchemaError})
		}
		if len(t.Flags) > 0 {
			r.Flagged = append(r.Flagged, brokenTool{ID: t.ID, Flags: t.Flags})
		}
	}
	if err := a.printImport(&r); err != nil || f.noEmbed || len(r.Added)+len(r.Changed) == 0 {
		return err
	}
	return a.makeVectors(ctx, box)
}

// makeVectors makes the vectors that searches will want. Without them the tools
// are found by keyword, so a model that fails is only a warning.
func (a *app) makeVectors(ctx context.Context, box *workspace.Toolbox) error {
	err := a.useModel(box)
	if err == nil {
		bar := a.newProgress()
		defer bar.end()
		if _, err := box.Index(ctx, bar.show); err != nil {
			return err
		}
		err = box.WaitVectors(ctx, bar.show)
		bar.end()
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: what was read is kept and found by keyword; the first search makes the vectors that are missing", ctx.Err())
	}
	if err != nil {
		fmt.Fprintf(a.stderr, "cairn: warning: searches will answer by keywords alone: %s\n", plain(err.Error()))
	}
	return nil
}

// maxListed is how many tools of each kind of change are printed.
const maxListed = 20

func (a *app) printImport(r *importReport) error {
	if a.json {
		return a.printJSON(r)
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(a.stderr, "cairn: warning: %s\n", plain(w))
	}
	for _, b := range r.Broken {
		fmt.Fprintf(a.stderr, "cairn: warning: %s is kept without its parameters: %s\n", plain(b.ID), plain(b.Error))
	}
	for _, b := range r.Flagged {
		fmt.Fprintf(a.stderr, "cairn: warning: %s may speak to the model rather than to you: %s\n", plain(b.ID), flagText(b.Flags))
	}
	_, err := fmt.Fprintf(a.stdout, "%s: %s (%d added, %d changed, %d removed, %d unchanged)\n",
		plain(r.Source), count(r.Tools, "tool"), len(r.Added), len(r.Changed), len(r.Removed), r.Unchanged)
	if len(r.Changed)+len(r.Removed)+r.Unchanged == 0 {
		return err // the first import: all is new
	}
	for _, kind := range []struct {
		mark string
		ids  []string
	}{{"+", r.Added}, {"~", r.Changed}, {"-", r.Removed}} {
		for _, id := range kind.ids[:min(len(kind.ids), maxListed)] {
			fmt.Fprintf(a.stdout, "  %s %s\n", kind.mark, plain(id))
		}
		if more := len(kind.ids) - maxListed; more > 0 {
			fmt.Fprintf(a.stdout, "  %s and %d more; --json lists them all\n", kind.mark, more)
		}
	}
	return err
}

// readTools reads the tools, and names where they came from.
func (a *app) readTools(ctx context.Context, args []string, f importFlags) (b *catalog.Batch, source string, err error) {
	if f.tokenEnv != "" && f.url == "" {
		return nil, "", badUsage("--token-env goes with --url")
	}
	switch {
	case f.mcp && f.url != "":
		return nil, "", badUsage("--mcp and --url name two servers, want one")
	case f.mcp:
		if len(args) == 0 {
			return nil, "", badUsage("--mcp wants a command")
		}
		b, err = client.Import(ctx, client.Target{Command: args, Version: versionName()}, f.server)
		return b, "mcp: " + strings.Join(args, " "), err
	case f.url != "":
		if len(args) > 0 {
			return nil, "", badUsage("--url takes no file")
		}
		target := client.Target{URL: f.url, Version: versionName()}
		if f.tokenEnv != "" {
			if target.Token = os.Getenv(f.tokenEnv); target.Token == "" {
				return nil, "", badUsage("the environment variable %s is not set", f.tokenEnv)
			}
		}
		b, err = client.Import(ctx, target, f.server)
		source = f.url
		if u, parseErr := url.Parse(f.url); parseErr == nil { // a name is kept; a password or key is not
			u.User, u.RawQuery = nil, ""
			source = u.String()
		}
		return b, source, err
	case len(args) == 0:
		return nil, "", badUsage("want a FILE, --mcp COMMAND or --url URL; see cairn tools import --help")
	case len(args) > 1:
		return nil, "", badUsage("%d files, want one at a time; a command that serves MCP goes after --mcp", len(args))
	case args[0] == "-":
		b, err = catalog.Read(a.stdin, f.server)
		return b, "standard input", err
	}
	file, err := os.Open(args[0])
	if err != nil {
		return nil, "", err
	}
	defer file.Close()
	if b, err = catalog.Read(file, f.server); err != nil {
		err = fmt.Errorf("%s: %w", args[0], err)
	}
	return b, filepath.Clean(args[0]), err
}

// count is a number of things.
func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// plain is text of somebody else's on one line, without what steers a terminal.
func plain(s string) string { return cut(oneLine(s), 1000) }

func flagText(flags []catalog.Flag) string {
	var parts []string
	for _, f := range flags {
		parts = append(parts, fmt.Sprintf("%s (%s)", f.Kind, plain(f.Evidence)))
	}
	return strings.Join(parts, ", ")
}
