package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/config"
	"cairn/internal/home"
	"cairn/internal/index"
	"cairn/internal/mirror"
	"cairn/internal/term"
	"cairn/internal/walk"
	"cairn/internal/workspace"
)

func (a *app) indexCommand() *cobra.Command {
	var req index.IndexRequest
	var try bool
	cmd := &cobra.Command{
		Use:   "index",
		Short: "Build or refresh the index; unchanged files cost nothing",
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if try {
			return a.withTasks(a.indexable)(cmd, args)
		}
		return a.command(func(ctx context.Context, _ []string) error { return a.index(ctx, req) })(cmd, args)
	}
	cmd.Flags().BoolVar(&req.Rebuild, "rebuild", false, "remove the index first; needed after a change of model or format")
	cmd.Flags().BoolVar(&req.NoEmbed, "no-embed", false, "make no vectors; keyword search works without them")
	cmd.Flags().BoolVarP(&try, "dry-run", "d", false, "only print the files that would be indexed and left out")
	a.addModel(cmd)
	return cmd
}

// indexable prints what an index would hold.
func (a *app) indexable(ctx context.Context, t *workspace.Tasks, _ []string) error {
	var v struct {
		Files   []string            `json:"files"`
		Skipped []index.SkippedFile `json:"skipped"`
	}
	var err error
	v.Files, err = t.Paths(ctx, func(e walk.Entry) {
		v.Skipped = append(v.Skipped, index.SkippedFile{Path: e.Path, Reason: e.Reason.String()})
	})
	if err != nil {
		return err
	}
	return a.print(v, func(w *term.Writer) {
		for _, p := range v.Files {
			w.Printf("%s\n", term.Plain(p))
		}
		for _, s := range v.Skipped {
			a.stderr.Dim(fmt.Sprintf("left out: %s (%s)", term.Plain(s.Path), walk.WithAdvice(s.Reason)))
		}
		a.stderr.Printf("%s to index, %d left out\n", term.Count(len(v.Files), "file"), len(v.Skipped))
	})
}

func (a *app) index(ctx context.Context, req index.IndexRequest) error {
	w, err := a.open(ctx, "index", workspace.Owning, func(o *workspace.Options) { o.Rebuild = req.Rebuild })
	if err != nil {
		return err
	}
	defer w.Close()
	if found, fix := workspace.Former(w.Place().Root); found != "" {
		a.stderr.Warn("%s: %s", found, fix)
	}
	report, err := withProgress(a, func(bar *term.Progress) (*index.IndexReport, error) { return w.Index(ctx, req, bar.Show) })
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return a.print(report, func(*term.Writer) { a.stderr.Printf("%s\n", term.Summary(report)) })
}

func (a *app) statusCommand() *cobra.Command {
	var list bool
	cmd := newCommand("status", "Print which folder is chosen and the state of its index",
		a.withWorkspace("status", workspace.Reading, func(ctx context.Context, w *workspace.Workspace, _ []string) error {
			s, err := w.Status(ctx)
			if err != nil {
				return err
			}
			if found, fix := workspace.Former(s.Workspace.Root); found != "" {
				s.Warnings = append(s.Warnings, found+": "+fix)
				a.stderr.Warn("%s: %s", found, fix)
			}
			full := struct {
				*index.Status
				home.Place
				SkippedFiles []index.SkippedFile `json:"skipped_files,omitempty"`
			}{Status: s, Place: w.Place()}
			if list {
				if full.SkippedFiles, err = w.Skipped(ctx); err != nil {
					return err
				}
			}
			return a.print(full, func(w *term.Writer) { w.Status(s, full.Place, full.SkippedFiles) })
		}))
	cmd.Flags().BoolVar(&list, "skipped", false, "list the files that are not indexed, by reason")
	return cmd
}

func (a *app) cleanCommand() *cobra.Command {
	var all, try, orphans bool
	cmd := newCommand("clean", "Remove the index; the next search rebuilds it",
		a.command(func(ctx context.Context, _ []string) error {
			r, err := a.clean(ctx, orphans, all, try)
			if err != nil {
				return err
			}
			did := "removed"
			if try {
				did = "would be removed"
			}
			return a.printLine(r, "%s %s, %.1f MB", cmp.Or(strings.Join(r.Removed, ", "), "nothing"), did, float64(r.Bytes)/1e6)
		}))
	cmd.Flags().BoolVar(&all, "all", false, "also remove the cache of embeddings; with --orphans, the records")
	cmd.Flags().BoolVar(&orphans, "orphans", false, "remove the indexes of folders that no longer exist")
	cmd.Flags().BoolVarP(&try, "dry-run", "d", false, "only print what would be removed")
	return cmd
}

func (a *app) clean(ctx context.Context, orphans, all, try bool) (*workspace.CleanReport, error) {
	if orphans {
		return workspace.CleanOrphans(ctx, "cairn clean", all, try)
	}
	sel, err := a.selection()
	if err != nil {
		return nil, err
	}
	return workspace.Clean(ctx, sel, "cairn clean", all, try)
}

func (a *app) migrateCommand() *cobra.Command {
	return newCommand("migrate", "Import what an earlier version kept in .cairn/index, and remove that",
		a.withWorkspace("migrate", workspace.Reading, func(ctx context.Context, w *workspace.Workspace, _ []string) error {
			r, err := w.Migrate(ctx)
			if err != nil {
				return err
			}
			for _, line := range r.Damaged {
				a.stderr.Warn("%s; .cairn/index is kept", line)
			}
			line := "there is nothing to import"
			if r.Found {
				line = fmt.Sprintf("imported %s", term.Count(r.Records, "record"))
				if r.Embeddings {
					line += " and the embeddings"
				}
				line += "; next: cairn index"
			}
			return a.printLine(r, "%s", line)
		}))
}

// chooseStore returns the store that --store or the environment names, or nil for the
// folder's own index. "config" means the store of the configuration, which counts only if
// the user trusts the folder.
func (a *app) chooseStore(cfg config.Config) (*mirror.Store, error) {
	address := cmp.Or(a.store, os.Getenv("CAIRN_STORE"))
	switch address {
	case "", "flat":
		return nil, nil
	case "config":
		if address = cfg.Store.Address; address == "" {
			return nil, badUsage("--store config: the configuration has no store.address; set it with: cairn config set store.address qdrant://HOST:6334/COLLECTION, in a folder that you trust (see cairn trust)")
		}
	}
	store, err := mirror.ParseStore(address, os.Getenv)
	if err != nil {
		return nil, &usageError{err}
	}
	return store, nil
}

func (a *app) storeCommand() *cobra.Command {
	var from, to string
	copying := newCommand("copy --from flat --to qdrant://HOST:6334/COLLECTION", "Copy an index without embedding again; resume an interrupted copy",
		a.command(func(ctx context.Context, _ []string) error { return a.copyStore(ctx, from, to) }))
	copying.Flags().StringVar(&from, "from", "", "flat, or the address of a store")
	copying.Flags().StringVar(&to, "to", "", "flat, or the address of a store")
	a.addModel(copying)
	return group("store", "Move an index between this machine and a Qdrant server", copying)
}

func (a *app) copyStore(ctx context.Context, from, to string) error {
	address, run := to, workspace.CopyOut
	if to == "flat" {
		address, run = from, workspace.CopyIn
	}
	if (from == "flat") == (to == "flat") || from == "" || to == "" {
		return badUsage("--from %q --to %q: want flat on one side and qdrant://HOST:6334/COLLECTION on the other", from, to)
	}
	store, err := mirror.ParseStore(address, os.Getenv)
	if err != nil {
		return &usageError{err}
	}
	sel, cfg, err := a.choose()
	if err != nil {
		return err
	}
	o := workspace.Options{Command: "cairn store copy", Logger: a.logger()}
	if err := a.model.Apply(&o); err != nil {
		return err
	}
	report, err := withProgress(a, func(bar *term.Progress) (*workspace.CopyReport, error) {
		return run(ctx, sel, cfg, store, o, bar.Show)
	})
	if err != nil {
		return err
	}
	return a.printLine(report, "%d documents in %d chunks, %d copied now, %d removed, nothing embedded; %d queries have %.3f of their best ten in common; %.1f s",
		report.Documents, report.Chunks, report.Copied, report.Removed, report.Probes, report.Overlap, report.Seconds)
}
