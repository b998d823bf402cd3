package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/workspace"
	"cairn/retriever"
	"cairn/tools"
)

func (a *app) readCommand() *cobra.Command {
	var r retriever.ReadRequest
	cmd := &cobra.Command{
		Use:   "read [flags] PLACE...",
		Short: "Print a document, a section (path#anchor) or lines (path:from-to)",
		Example: `  cairn read operations/incidents.md#escalation
  cairn read --json reference/limits.md:10-20`,
		RunE: a.command(func(ctx context.Context, args []string) error { return a.read(ctx, args, r) }),
	}
	fs := cmd.Flags()
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) < 1 || len(args) > retriever.MaxPaths {
			return badUsage("got %d places, want 1 to %d, as in: cairn read 'guide.md#install'", len(args), retriever.MaxPaths)
		}
		return inRange(cmd, bounds{"max-tokens", retriever.MinBudget, noBound})
	}
	fs.StringVar(&r.Anchor, "anchor", "", "heading or slug of the section")
	fs.IntVar(&r.MaxTokens, "max-tokens", 0, "largest answer; a longer document comes in parts")
	fs.StringVar(&r.Next, "next", "", "continue with the part after an earlier answer (its next)")
	fs.StringVar(&r.ExpectedHash, "expected-hash", "", "fail if the file has another hash by now")
	return cmd
}

func (a *app) read(ctx context.Context, args []string, r retriever.ReadRequest) error {
	w, err := a.open(ctx, "read", workspace.Reading, nil)
	if err != nil {
		return err
	}
	defer w.Close()
	if len(args) > 1 {
		return a.readAll(ctx, w, args, r)
	}
	r.Path = args[0]
	reading, err := w.Read(ctx, r)
	if err != nil {
		return a.unread(err)
	}
	if a.json {
		return a.printJSON(reading)
	}
	if err := a.printReading(reading); err != nil {
		return err
	}
	if reading.Next != "" {
		fmt.Fprintf(a.stderr, "there is more: --next %s\n", reading.Next)
	}
	return nil
}

func (a *app) readAll(ctx context.Context, w *workspace.Workspace, args []string, r retriever.ReadRequest) error {
	r.Paths = args
	all, err := w.ReadAll(ctx, r)
	if err != nil {
		return a.unread(err)
	}
	if a.json {
		if err := a.printJSON(all); err != nil {
			return err
		}
	} else {
		for i := range all.Documents {
			d := &all.Documents[i]
			place := d.Path
			if d.LineRange != nil {
				place += fmt.Sprintf(":%d-%d", d.LineRange.Start, d.LineRange.End)
			}
			fmt.Fprintf(a.stdout, "==> %s <==\n", place)
			if err := a.printReading(d); err != nil {
				return err
			}
		}
	}
	for _, f := range all.Failed {
		fmt.Fprintf(a.stderr, "cairn: %s\n", oneLine(f.Error))
	}
	for _, o := range all.Omitted {
		fmt.Fprintf(a.stderr, "cairn: %s was left out: about %d tokens, beyond the budget\n", o.Path, o.Tokens)
	}
	if len(all.Failed) > 0 {
		return fmt.Errorf("%d of %d places could not be read", len(all.Failed), len(args))
	}
	return nil
}

// unread says why a place could not be read: on standard error in a line, and
// with --json on standard output as the tool says it.
func (a *app) unread(err error) error {
	if a.json {
		if err := a.printJSON(tools.FailureOf(err)); err != nil {
			return err
		}
	}
	missing, ok := errors.AsType[*retriever.NotFoundError](err)
	if !ok || missing.Anchor == "" {
		return err
	}
	have, names := "nearest", missing.Nearest
	if len(names) == 0 {
		have, names = "it has", missing.Anchors
	}
	if len(names) == 0 {
		return fmt.Errorf("%q has no section %q, nor any other", missing.Path, missing.Anchor)
	}
	more := ""
	if len(names) > shownAnchors {
		names, more = names[:shownAnchors], " …"
	}
	return fmt.Errorf("%q has no section %q; %s: %s%s", missing.Path, missing.Anchor, have, strings.Join(names, ", "), more)
}

// shownAnchors is how many names fit a line.
const shownAnchors = 5

// printReading prints the content as it is, ending in a newline.
func (a *app) printReading(r *retriever.Reading) error {
	if r.Content == "" {
		return nil
	}
	_, err := io.WriteString(a.stdout, r.Content+"\n")
	return err
}
