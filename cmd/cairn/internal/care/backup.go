package care

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/base/atomicfile"
	"cairn/internal/base/owner"
	"cairn/internal/face/term"
	"cairn/internal/face/view"
	"cairn/internal/folder/workspace"
	"cairn/internal/toolbox"
)

func (a *app) backupCommand() *cli.Command {
	var force bool
	cmd := cli.NewCommand("backup FILE", "Write what cairn cannot rebuild to a file",
		a.WithWorkspace("backup", workspace.Reading, func(ctx context.Context, w *workspace.Workspace, args []string) error {
			var r *workspace.BackupReport
			write := func(to io.Writer) (err error) {
				if r, err = w.Backup(ctx, to); err == nil {
					for _, file := range r.LeftOut {
						a.Out.Notes.Warn("%s; the backup does not contain it", term.Plain(file))
					}
				}
				return err
			}
			if args[0] == "-" {
				return write(a.Out.Raw())
			}
			switch info, err := os.Lstat(args[0]); {
			case err != nil: // creating the file reports other errors
			case !info.Mode().IsRegular():
				return cli.BadUsage("%s is not a regular file; name another file, or - for standard output", term.Plain(args[0]))
			case !force:
				return cli.BadUsage("%s exists; --force replaces it", term.Plain(args[0]))
			}
			if err := atomicfile.WriteBy(args[0], 0o600, func(f *os.File) error { return write(f) }); err != nil {
				return err
			}
			return a.Out.Line(r, "wrote %s and %s to %s", view.Count(r.Records, "record"), view.Count(r.Files, "file"), term.Plain(args[0]))
		}))
	cmd.Flags().BoolVar(&force, "force", false, "replace an existing file")
	return cmd
}

func (a *app) restoreCommand() *cli.Command {
	var o workspace.RestoreOptions
	cmd := cli.NewCommand("restore FILE", "Replace the records of the folder with those of a backup",
		a.WithWorkspace("restore", workspace.Reading, func(ctx context.Context, w *workspace.Workspace, args []string) error {
			in, err := a.Input(args[0])
			if err != nil {
				return err
			}
			defer in.Close()
			r, err := w.Restore(ctx, in, o)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			for _, name := range r.Kept {
				a.Out.Notes.Warn("%s differs from the backup and is kept; --overwrite replaces it", term.Plain(name))
			}
			if r.Previous != "" {
				a.Out.Notes.Dim(fmt.Sprintf("the records before it are in %s", term.Plain(r.Previous)))
			}
			return a.Out.Line(r, "restored %s and %s; skipped %s", view.Count(r.Records, "record"), view.Count(r.Files, "file"), view.Count(r.Damaged, "damaged line"))
		}))
	cmd.Flags().BoolVar(&o.SkipDamaged, "skip-damaged", false, "skip damaged lines, and restore the others")
	cmd.Flags().BoolVar(&o.Overwrite, "overwrite", false, "replace files that differ from those of the backup")
	return cmd
}

func (a *app) exportCommand() *cli.Command {
	return cli.NewCommand("export", "Print the tools and the usage as JSON lines",
		a.WithTools(func(ctx context.Context, folder *owner.Folder, _ []string) error {
			out := json.NewEncoder(a.Out)
			var failed error
			_, err := toolbox.ExportOp.Call(ctx, folder, struct{}{}, func(x toolbox.Exported) {
				if failed == nil {
					failed = out.Encode(x)
				}
			})
			return errors.Join(err, failed)
		}))
}

func (a *app) importCommand() *cli.Command {
	return cli.NewCommand("import FILE", "Add the tools and the usage in the output of cairn export",
		a.WithTools(func(ctx context.Context, folder *owner.Folder, args []string) error {
			in, err := a.Input(args[0])
			if err != nil {
				return err
			}
			defer in.Close()
			var list []toolbox.Exported
			for dec := json.NewDecoder(in); err == nil; {
				var x toolbox.Exported
				if err = dec.Decode(&x); err == nil {
					list = append(list, x)
				}
			}
			if !errors.Is(err, io.EOF) {
				return fmt.Errorf("%s: line %d: %w; want the output of cairn export", args[0], len(list)+1, err)
			}
			m, err := toolbox.MergeOp.Call(ctx, folder, list, nil)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return a.Out.Line(m, "changed %s and %s of usage", view.Count(m.Tools, "tool"), view.Count(m.Usage, "record"))
		}))
}
