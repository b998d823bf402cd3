package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"cairn/internal/workspace"
)

// storeVariable names the store where --store does not.
const storeVariable = "CAIRN_STORE"

// chooseStore returns the store that --store or the environment names; nil is the
// folder. A configuration lies in the repository it speaks about and must not open
// a socket by itself, so the one it names is used when that is said: "config".
func (a *app) chooseStore(cfg workspace.Config) (*workspace.Store, error) {
	address := cmp.Or(a.store, os.Getenv(storeVariable))
	switch address {
	case "", "flat":
		return nil, nil
	case "config":
		if address = cfg.Store.Address; address == "" {
			return nil, badUsage("--store config: the configuration has no store.address; set it with: cairn config set store.address qdrant://HOST:6334/COLLECTION")
		}
	}
	store, err := workspace.ParseStore(address, os.Getenv)
	if err != nil {
		return nil, &usageError{err}
	}
	return store, nil
}

// useStore has a workspace keep its index in the store, if one is chosen.
func (a *app) useStore(o *workspace.Options, cfg workspace.Config) (err error) {
	o.Store, err = a.chooseStore(cfg)
	return err
}

func (a *app) storeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "store", Short: "Move an index between the folder and a Qdrant server", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	var from, to string
	copying := &cobra.Command{
		Use:   "copy --from flat --to qdrant://HOST:6334/COLLECTION",
		Short: "Copy an index without embedding anything again; goes on where it was cut short",
		Args:  cobra.NoArgs,
		Example: `  cairn store copy --from flat --to qdrant://localhost:6334/docs
  cairn store copy --from qdrant://localhost:6334/docs --to flat`,
		RunE: a.command(func(ctx context.Context, _ []string) error { return a.copyStore(ctx, from, to) }),
	}
	copying.Flags().StringVar(&from, "from", "", "flat, or the address of a store")
	copying.Flags().StringVar(&to, "to", "", "flat, or the address of a store")
	a.model.add(copying)
	cmd.AddCommand(copying)
	return cmd
}

func (a *app) copyStore(ctx context.Context, from, to string) error {
	address, run := to, workspace.CopyOut
	if to == "flat" {
		address, run = from, workspace.CopyIn
	}
	if (from == "flat") == (to == "flat") || from == "" || to == "" {
		return badUsage("--from %q --to %q: want flat on one side and qdrant://HOST:6334/COLLECTION on the other", from, to)
	}
	store, err := workspace.ParseStore(address, os.Getenv)
	if err != nil {
		return &usageError{err}
	}
	sel, _, err := a.choose()
	if err != nil {
		return err
	}
	o := workspace.Options{Command: "cairn store copy", Logger: a.logger(slog.LevelWarn)}
	if err := a.model.apply(&o); err != nil {
		return err
	}
	bar := a.newProgress()
	report, err := run(ctx, sel, store, o, bar.show)
	bar.end()
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(report)
	}
	_, err = fmt.Fprintf(a.stdout, "%d documents in %d chunks, %d copied now, %d removed, nothing embedded; %d queries have %.3f of their best ten in common; %.1f s\n",
		report.Documents, report.Chunks, report.Copied, report.Removed, report.Probes, report.Overlap, report.Seconds)
	return err
}
