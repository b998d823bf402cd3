package main

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cairn/internal/store"
	"cairn/internal/workspace"
	"cairn/retriever"
)

type searchFlags struct {
	mode, cursor                 string
	limit, maxTokens             int
	explain                      bool
	tags, context                []string
	priority, assignee, pathPart string
	wait                         time.Duration
}

func (a *app) searchCommand() *cobra.Command {
	var f searchFlags
	cmd := &cobra.Command{
		Use:   "search [flags] QUERY...",
		Short: "Search the folder; indexes it first when there is no index",
		Example: `  cairn search "how do I rotate a token"
  cairn search --mode keyword 'retry_after_seconds'
  cairn search --json --limit 3 --max-tokens 2000 backup`,
	}
	fs := f.add(cmd)
	cmd.RunE = a.command(func(ctx context.Context, args []string) error {
		return a.search(ctx, strings.Join(args, " "), f)
	})
	fs.BoolVar(&f.explain, "explain", false, "show the components of each score")
	fs.StringVar(&f.cursor, "cursor", "", "continue an earlier answer (its next_cursor)")
	fs.StringSliceVar(&f.tags, "tag", nil, "only documents with any of these tags")
	fs.StringVar(&f.priority, "priority", "", "only documents of this priority")
	fs.StringVar(&f.assignee, "assignee", "", "only documents of this assignee")
	a.model.add(cmd)
	return cmd
}

// add gives a command that searches the flags of every search, and has its
// arguments checked: all is checked before the folder is opened, which may index it.
func (f *searchFlags) add(cmd *cobra.Command, more ...bounds) *pflag.FlagSet {
	fs := cmd.Flags()
	fs.StringVar(&f.mode, "mode", "", "hybrid, keyword or semantic (default: the configuration's, hybrid)")
	fs.IntVar(&f.limit, "limit", 0, "most results, 1 to 50 (default: the configuration's, 10)")
	fs.IntVar(&f.maxTokens, "max-tokens", 0, "include the sections' text, within this many tokens")
	fs.StringSliceVar(&f.context, "context", nil, "documents and tools in use, which make what was used with them rank higher")
	fs.StringVar(&f.pathPart, "path", "", "only documents below this path")
	fs.DurationVar(&f.wait, "wait", 30*time.Second, "longest wait for vectors when the folder is indexed first")
	cmd.Args = func(_ *cobra.Command, args []string) error {
		query := strings.TrimSpace(strings.Join(args, " "))
		if query == "" {
			return badUsage(`want a query, as in: cairn %s "how do I rotate a token"`, cmd.Name())
		}
		if n := utf8.RuneCountInString(query); n > retriever.MaxQuery {
			return badUsage("the query has %d characters, want at most %d", n, retriever.MaxQuery)
		}
		if _, err := retriever.ParseMode(f.mode); err != nil {
			return badUsage("--mode: %w", err)
		}
		return inRange(cmd, append([]bounds{{"limit", 1, retriever.MaxLimit}, {"max-tokens", retriever.MinBudget, noBound}}, more...)...)
	}
	return fs
}

// query fills in what was not given from the configuration.
func (f *searchFlags) query(text string, cfg workspace.Config) (retriever.Query, error) {
	mode := f.mode
	if mode == "" {
		mode = cfg.Search.DefaultMode
	}
	parsed, err := retriever.ParseMode(mode)
	if err != nil {
		return retriever.Query{}, err
	}
	limit := f.limit
	if limit == 0 {
		limit = cfg.MCP.SearchLimit
	}
	return retriever.Query{
		Text: text, Mode: parsed, Limit: limit, Cursor: f.cursor, MaxTokens: f.maxTokens, Explain: f.explain, Context: f.context,
		Filter: store.Filter{Tags: f.tags, Priority: f.priority, Assignee: f.assignee, PathPrefix: f.pathPart},
	}, nil
}

func (a *app) search(ctx context.Context, text string, f searchFlags) error {
	w, err := a.open(ctx, "search", workspace.Reading, func(o *workspace.Options) { o.Warm = f.mode != string(retriever.Keyword) })
	if err != nil {
		return err
	}
	defer w.Close()
	q, err := f.query(text, w.Config())
	if err != nil {
		return err
	}
	answer, err := w.Search(ctx, q)
	if err != nil {
		return err
	}
	if unfinished(answer, q.Mode) {
		if err := a.indexFirst(ctx, w, q.Mode, f.wait); err != nil {
			return err
		}
		if answer, err = w.Search(ctx, q); err != nil {
			return err
		}
	}
	if a.json {
		return a.printJSON(answer)
	}
	return a.printAnswer(answer, text)
}

// unfinished reports whether the folder was never indexed to the end and nobody
// is at it. Keyword results need no vectors, so an answer that has some will do.
func unfinished(a *retriever.Answer, asked retriever.Mode) bool {
	switch a.Index.State {
	case "missing":
		return true
	case "partial":
		return a.Index.BuiltAt == "" && (asked != retriever.Keyword || len(a.Results) == 0)
	}
	return false
}

// indexFirst makes the index of a folder that has none, or goes on with one
// that was interrupted. It returns once
// keyword search sees every file and, in the other modes, the vectors are
// made or wait has passed; the run then ends with the process and is resumed by the next.
// Vectors that cannot be kept, as on a full disk, do not stand in the way of an
// answer either.
func (a *app) indexFirst(ctx context.Context, w *workspace.Workspace, mode retriever.Mode, wait time.Duration) error {
	bar := a.newProgress()
	defer bar.end()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var vectors *time.Timer // set once keyword search sees every file
	defer func() {
		if vectors != nil {
			vectors.Stop()
		}
	}()
	_, err := w.Index(ctx, workspace.IndexRequest{Join: true, NoEmbed: mode == retriever.Keyword}, func(p workspace.Progress) {
		bar.show(p)
		if p.Searchable && vectors == nil {
			vectors = time.AfterFunc(wait, func() { cancel(errWaited) })
		}
	})
	if err != nil && context.Cause(ctx) == errWaited {
		bar.end()
		fmt.Fprintf(a.stderr, "answering after %s with the vectors made so far; `cairn index` makes the rest\n", wait)
		return nil
	}
	if err != nil && vectors != nil && ctx.Err() == nil {
		bar.end()
		fmt.Fprintf(a.stderr, "answering with the vectors made so far, since making more failed: %s\n", oneLine(err.Error()))
		return nil
	}
	return err
}

var errWaited = fmt.Errorf("waited long enough")
