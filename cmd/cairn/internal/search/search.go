// Package search holds the commands that search and read the folder.
package search

import (
	"cmp"
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"cairn/cmd/cairn/internal/cli"
	"cairn/cmd/cairn/internal/tasks"
	"cairn/internal/face/term"
	"cairn/internal/folder/index"
	"cairn/internal/folder/scan"
	"cairn/internal/folder/workspace"
	"cairn/retriever"
)

// app adds the commands of this package to cli.App.
type app struct{ *cli.App }

// Commands returns the commands in the order of the help.
func Commands(c *cli.App) []*cli.Command {
	a := &app{c}
	return []*cli.Command{a.searchCommand(), a.contextCommand(), a.refsCommand(), a.Searches(a.grepCommand()), a.readCommand(), a.changesCommand(), a.receiptCommand(), a.Searches(a.checkCommand()), tasks.Ask(c), a.openCommand(), a.explainCommand(), a.watchCommand()}
}

// searchFlags are the flags of search and explain.
type searchFlags struct {
	retriever.Query
	wait               time.Duration
	exhaustive, regexp bool
	at                 string
}

func (a *app) searchCommand() *cli.Command {
	var f searchFlags
	cmd := cli.NewCommand("search [flags] QUERY...", "Search the folder, after indexing what has changed",
		a.Command(func(ctx context.Context, args []string) error {
			f.Text = strings.Join(args, " ")
			if f.exhaustive || f.regexp { // every line that matches in the current files
				if f.Cursor != "" || f.Mode != "" || f.at != "" || f.Query.Explain || f.MaxTokens != 0 || len(f.Filter.Tags)+len(f.Context) > 0 || f.Filter.Priority != "" || f.Filter.Assignee != "" {
					return cli.BadUsage("an exhaustive search takes only --path, --kind and --limit")
				}
				return a.grep(ctx, "search", scan.Request{Pattern: f.Text, Regexp: f.regexp, PathPrefix: f.Filter.PathPrefix, Kind: f.Filter.Kind, MaxLines: f.Limit})
			}
			return a.search(ctx, f)
		}))
	f.add(a, cmd)
	fs := cmd.Flags()
	fs.BoolVar(&f.Query.Explain, "explain", false, "show the components of each score")
	fs.StringVar(&f.Cursor, "cursor", "", "continue an earlier answer, whose last line names it")
	fs.StringSliceVar(&f.Filter.Tags, "tag", nil, "only documents with any of these tags")
	fs.StringVar(&f.Filter.Priority, "priority", "", "only documents of this priority")
	fs.StringVar(&f.Filter.Assignee, "assignee", "", "only documents of this assignee")
	fs.StringVar(&f.at, "at", "", "search the documents of a commit by words: a tag, a branch, a hash, or HEAD~N")
	fs.BoolVar(&f.exhaustive, "exhaustive", false, "print every line with this exact text, as grep does, instead of the best sections")
	fs.BoolVar(&f.regexp, "regexp", false, "print every line that matches this regular expression (RE2)")
	return a.Searches(cmd)
}

// add adds the flags of every search to cmd, and the check of the query. cobra checks both
// before the command opens the folder, which may index it.
func (f *searchFlags) add(a *app, cmd *cli.Command) {
	f.addScope(a, cmd)
	fs := cmd.Flags()
	cli.IntVar(fs, &f.Limit, "limit", 0, 1, retriever.MaxLimit, "most results, 1 to 50 (default: mcp.search_limit, 10; with --max-tokens as many as fit)")
	cli.IntVar(fs, &f.MaxTokens, "max-tokens", 0, retriever.MinBudget, cli.NoBound, "include the text of the sections, within this many tokens")
}

// addScope adds the flags that narrow a search, and the check of the query.
func (f *searchFlags) addScope(a *app, cmd *cli.Command) {
	fs := cmd.Flags()
	cli.ChoiceVar(fs, &f.Filter.Kind, "kind", "docs, code (source code), cards, notes or all", "docs", "code", "cards", "notes", "all")
	cli.ChoiceVar(fs, &f.Mode, "mode", "hybrid, keyword or semantic (default: search.default_mode, hybrid)", "hybrid", "keyword", "semantic")
	fs.StringSliceVar(&f.Context, "context", nil, "documents and tools in use; what was used with them ranks higher")
	fs.StringVar(&f.Filter.PathPrefix, "path", "", "only documents below this folder, from the current one")
	fs.DurationVar(&f.wait, "wait", cli.AnyWait, "longest wait for vectors before the answer (default: 30s for the last 200, else none)")
	fs.Lookup("wait").DefValue = "0s" // the usage describes the default
	a.AddModel(cmd)
	a.AddRerank(cmd)
	cmd.Args = func(_ *cli.Command, args []string) error {
		query := strings.TrimSpace(strings.Join(args, " "))
		if query == "" {
			return cli.BadUsage(`want a query, as in: cairn %s "how do I rotate a token"`, cmd.Name())
		}
		if n := utf8.RuneCountInString(query); n > retriever.MaxQuery {
			return cli.BadUsage("the query has %d characters, want at most %d", n, retriever.MaxQuery)
		}
		return nil
	}
}

// searching returns the function of a command whose arguments are the words of a query.
func (a *app) searching(command string, f *searchFlags, answer func(context.Context, *workspace.Workspace, retriever.Query) error) func(*cli.Command, []string) error {
	return a.Command(func(ctx context.Context, args []string) error {
		f.Text = strings.Join(args, " ")
		return a.answerSearch(ctx, command, *f, answer)
	})
}

// answerSearch opens the folder and completes the query of the flags with its configuration. It
// calls answer with them when the index is sufficiently up to date, and then completes the refresh.
func (a *app) answerSearch(ctx context.Context, command string, f searchFlags, answer func(context.Context, *workspace.Workspace, retriever.Query) error) error {
	w, err := a.Open(ctx, command, workspace.Reading, func(o *workspace.Options) {
		o.Warm, o.Refresh = f.Mode != retriever.Keyword, true
	})
	if err != nil {
		return err
	}
	defer w.Close()
	q, p, cfg := f.Query, a.Paths(w.Selection()), w.Config()
	q.Context, q.Filter.PathPrefix = p.Documents(q.Context), p.Folder(q.Filter.PathPrefix)
	q.Mode = cmp.Or(q.Mode, retriever.Mode(cfg.Search.DefaultMode))
	if q.Limit == 0 && q.MaxTokens == 0 {
		q.Limit = cfg.MCP.SearchLimit
	}
	r, err := a.Refresh(ctx, w, q.Mode, f.wait)
	if err != nil {
		return err
	}
	if err := answer(ctx, w, q); err != nil {
		return err
	}
	return r.Finish(ctx)
}

func (a *app) search(ctx context.Context, f searchFlags) error {
	return a.answerSearch(ctx, "search", f, func(ctx context.Context, w *workspace.Workspace, q retriever.Query) error {
		ask := func() (*retriever.Answer, error) { return index.SearchOp.Call(ctx, w.Folder, q, nil) }
		if f.at != "" {
			if f.Cursor != "" || f.Mode != "" {
				return cli.BadUsage("--at takes neither --mode nor --cursor")
			}
			ask = func() (*retriever.Answer, error) {
				return at(w, f.at, func(p *workspace.Past) (*retriever.Answer, error) { return p.Search(ctx, w, q) })
			}
		}
		answer, err := ask()
		if err != nil {
			return err
		}
		if err := a.foundIn(w, f.Filter.PathPrefix, len(answer.Results)); err != nil {
			return err
		}
		return a.Out.Print(answer, func() { a.Out.Answer(answer, q.Text, retriever.Offset(q.Cursor), a.Paths(w.Selection())) })
	})
}

// foundIn records the number of results below a path that a person typed. Without results it
// returns an error if the path names no file or folder.
func (a *app) foundIn(w *workspace.Workspace, path string, n int) error {
	a.Found(n > 0)
	missing, near := a.Paths(w.Selection()).Near(path)
	switch {
	case n > 0 || !missing:
		return nil
	case near != "":
		return cli.BadUsage("--path %s: there is no such file or folder, did you mean %q?", path, near)
	}
	return cli.BadUsage("--path %s: there is no such file or folder in this one", path)
}

func (a *app) explainCommand() *cli.Command {
	var f searchFlags
	var candidates int
	cmd := cli.NewCommand("explain [flags] QUERY...", "Show every step of one search, and the time of each",
		a.searching("explain", &f, func(ctx context.Context, w *workspace.Workspace, q retriever.Query) error {
			trace, err := index.ExplainOp.Call(ctx, w.Folder, index.ExplainRequest{Query: q, Candidates: candidates}, nil)
			if err == nil {
				err = a.foundIn(w, f.Filter.PathPrefix, len(trace.Answer.Results))
			}
			return term.Show(a.Out, (*term.Output).Trace)(trace, err)
		}))
	f.add(a, cmd)
	cli.IntVar(cmd.Flags(), &candidates, "candidates", 10, 1, retriever.TraceLimit, "entries to show per list, 1 to 100")
	return a.Searches(cmd)
}
