package main

import (
	"cmp"
	"context"
	"os"

	"github.com/spf13/cobra"

	"cairn/internal/face/term"
	"cairn/internal/folder/config"
	"cairn/internal/folder/mirror"
	"cairn/internal/folder/workspace"
)

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
	return a.out.Line(report, "%d documents in %d chunks, %d copied now, %d removed, nothing embedded; %d queries have %.3f of their best ten in common; %.1f s",
		report.Documents, report.Chunks, report.Copied, report.Removed, report.Probes, report.Overlap, report.Seconds)
}
