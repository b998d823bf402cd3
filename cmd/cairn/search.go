package main

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"cairn/internal/config"
	"cairn/internal/store"
	"cairn/internal/term"
	"cairn/internal/workspace"
	"cairn/retriever"
)

type searchFlags struct {
	mode, cursor                 string
	limit, maxTokens             int
	explain                      bool
	tags, context                []string
	priority, assignee, pathPart string
	kind                         string
	wait                         time.Duration
	exhaustive, regexp           bool
}

func (a *app) searchCommand() *cobra.Command {
	var f searchFlags
	cmd := newCommand("search [flags] QUERY...", "Search the folder, after indexing what has changed",
		a.command(func(ctx context.Context, args []string) error {
			if f.exhaustive || f.regexp {
				return a.searchLines(ctx, strings.Join(args, " "), f)
			}
			return a.search(ctx, strings.Join(args, " "), f)
		}))
	f.add(cmd)
	fs := cmd.Flags()
	fs.BoolVar(&f.explain, "explain", false, "show the components of each score")
	fs.StringVar(&f.cursor, "cursor", "", "continue after an earlier answer (its next_cursor)")
	fs.StringSliceVar(&f.tags, "tag", nil, "only documents with any of these tags")
	fs.StringVar(&f.priority, "priority", "", "only documents of this priority")
	fs.StringVar(&f.assignee, "assignee", "", "only documents of this assignee")
	fs.BoolVar(&f.exhaustive, "exhaustive", false, "print every line with this exact text, as grep does, instead of the best sections")
	fs.BoolVar(&f.regexp, "regexp", false, "print every line that matches this regular expression (RE2)")
	a.addModel(cmd)
	a.addRerank(cmd)
	return cmd
}

// add adds the flags of every search to cmd, and the check of its arguments:
// everything is checked before the folder is opened, which may index it.
func (f *searchFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.kind, "kind", "all", "docs, code (source code) or all")
	fs.StringVar(&f.mode, "mode", "", "hybrid, keyword or semantic (default: search.default_mode, hybrid)")
	intVar(fs, &f.limit, "limit", 0, 1, retriever.MaxLimit, "most results, 1 to 50 (default: mcp.search_limit, 10; with --max-tokens as many as have room)")
	intVar(fs, &f.maxTokens, "max-tokens", 0, retriever.MinBudget, noBound, "include the text of the sections, within this many tokens")
	fs.StringSliceVar(&f.context, "context", nil, "documents and tools in use; what was used with them ranks higher")
	fs.StringVar(&f.pathPart, "path", "", "only documents below this folder, from the current one")
	fs.DurationVar(&f.wait, "wait", anyWait, "longest wait for vectors before the answer (default: 30s for the last 200, else none)")
	fs.Lookup("wait").DefValue = "0s" // the usage describes the default
	cmd.Args = func(_ *cobra.Command, args []string) error {
		query := strings.TrimSpace(strings.Join(args, " "))
		if query == "" {
			return badUsage(`want a query, as in: cairn %s "how do I rotate a token"`, cmd.Name())
		}
		if n := utf8.RuneCountInString(query); n > retriever.MaxQuery {
			return badUsage("the query has %d characters, want at most %d", n, retriever.MaxQuery)
		}
		if _, err := retriever.ParseMode(f.mode); err != nil {
			return badUsage("--%w", err)
		}
		if _, err := store.ParseKind(f.kind); err != nil {
			return badUsage("--kind: %w", err)
		}
		return nil
	}
}

// query returns the query for text, with the defaults of the configuration.
func (f *searchFlags) query(text string, cfg config.Config) (retriever.Query, error) {
	mode, err := retriever.ParseMode(cmp.Or(f.mode, cfg.Search.DefaultMode))
	kind, wrong := store.ParseKind(f.kind)
	limit := f.limit
	if limit == 0 && f.maxTokens == 0 {
		limit = cfg.MCP.SearchLimit
	}
	return retriever.Query{
		Text: text, Mode: mode, Limit: limit, Cursor: f.cursor, MaxTokens: f.maxTokens, Explain: f.explain, Context: f.context,
		Filter: store.Filter{Tags: f.tags, Priority: f.priority, Assignee: f.assignee, PathPrefix: f.pathPart, Kind: kind},
	}, errors.Join(err, wrong)
}

// openSearch opens the folder and makes the query for it. refresh says that the caller
// will bring the index up to date.
func (a *app) openSearch(ctx context.Context, command, text string, f searchFlags, refresh bool) (*workspace.Workspace, retriever.Query, error) {
	w, err := a.open(ctx, command, workspace.Reading, func(o *workspace.Options) {
		o.Warm, o.Refresh = f.mode != string(retriever.Keyword), refresh
	})
	if err != nil {
		return nil, retriever.Query{}, err
	}
	p := a.paths(w.Selection())
	f.context, f.pathPart = p.documents(f.context), p.folder(f.pathPart)
	q, err := f.query(text, w.Config())
	if err != nil {
		return nil, q, errors.Join(err, w.Close())
	}
	return w, q, nil
}

// answerSearch calls answer with the folder and the query, once the index is as far up to
// date as the answer needs, and then completes the refresh.
func (a *app) answerSearch(ctx context.Context, command, text string, f searchFlags, answer func(*workspace.Workspace, retriever.Query) error) error {
	w, q, err := a.openSearch(ctx, command, text, f, true)
	if err != nil {
		return err
	}
	defer w.Close()
	r, err := a.refresh(ctx, w, q.Mode, f.wait)
	if err != nil {
		return err
	}
	if err := answer(w, q); err != nil {
		return err
	}
	return r.finish(ctx)
}

func (a *app) search(ctx context.Context, text string, f searchFlags) error {
	return a.answerSearch(ctx, "search", text, f, func(w *workspace.Workspace, q retriever.Query) error {
		answer, err := w.Search(ctx, q)
		if err != nil {
			return err
		}
		sel := w.Selection()
		return a.print(answer, func(w *term.Writer) {
			w.Answer(answer, text, a.paths(sel))
			for _, note := range term.Notes(answer) {
				a.stderr.Dim(note)
			}
		})
	})
}
