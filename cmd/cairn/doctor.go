package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/doctor"
	"cairn/internal/workspace"
)

func (a *app) doctorCommand() *cobra.Command {
	var repair bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong with the folder, and say how to put it right",
		Long: `Look for what is wrong with the folder: its configuration, its cards, links
between its documents and its index. It ends with 1 when something is wrong,
with 0 when all is well or there are only warnings. --repair does away with what
has one obvious repair, and with nothing else.`,
		Args: cobra.NoArgs,
		RunE: a.command(func(ctx context.Context, _ []string) error { return a.doctor(ctx, repair) }),
	}
	cmd.Flags().BoolVar(&repair, "repair", false, "repair what has one obvious repair")
	return cmd
}

func (a *app) doctor(ctx context.Context, repair bool) error {
	sel, err := workspace.Select(workspace.SelectOptions{Flag: a.dir})
	if err != nil {
		return err
	}
	report, err := doctor.Check(ctx, sel, doctor.Options{Repair: repair, Environ: os.Environ(), Index: func(ctx context.Context) (*workspace.Status, error) {
		cfg, err := workspace.LoadConfig(sel.Root, os.Environ())
		if err != nil {
			cfg = workspace.DefaultConfig() // which is a finding of its own
		}
		o := workspace.Options{Command: "cairn doctor"}
		if err := a.model.apply(&o); err != nil {
			return nil, err
		}
		w, err := workspace.Open(ctx, sel, cfg, workspace.Reading, o)
		if err != nil {
			return nil, err
		}
		status, err := w.Status(ctx)
		return status, errors.Join(err, w.Close())
	}})
	if err != nil {
		return err
	}
	if a.json {
		err = a.printJSON(report)
	} else {
		err = a.printReport(report)
	}
	if err == nil && !report.Healthy {
		err = fmt.Errorf("%s and %s; each is named with what to do about it", many(report.Errors, "error"), many(report.Warnings, "warning"))
	}
	return err
}

// maxShown bounds the findings shown to a person.
const maxShown = 200

func (a *app) printReport(r *doctor.Report) error {
	s := styleOf(a.stdout)
	var b strings.Builder
	for _, line := range r.Repaired {
		fmt.Fprintf(&b, "%s %s\n", s.paint(bold, "repaired"), cut(plain(line), a.columns()-9))
	}
	for i, f := range r.Findings {
		if i == maxShown {
			fmt.Fprintf(&b, "and %d more; --json shows all\n", len(r.Findings)-i)
			break
		}
		word := s.paint(dim, "warning ")
		if f.Error {
			word = s.paint(match, "error   ")
		}
		place := plain(f.Path)
		if f.Line > 0 {
			place = fmt.Sprintf("%s:%d", place, f.Line)
		}
		fmt.Fprintf(&b, "%s %s\n", word, s.paint(bold, strings.TrimSpace(place+"  "+f.Check)))
		fix := f.Fix
		if f.Repairable && !strings.Contains(fix, "--repair") {
			fix += " (--repair does it)"
		}
		for _, text := range []string{f.Message, "fix: " + fix} {
			for _, line := range wrap(plain(text), a.columns()-9) {
				fmt.Fprintf(&b, "         %s\n", cut(line, a.columns()-9))
			}
		}
	}
	fmt.Fprintf(&b, "looked at %s, %s, %s: %s, %s\n", many(r.Cards, "card"), many(r.Documents, "document"), many(r.Links, "link"),
		many(r.Errors, "error"), many(r.Warnings, "warning"))
	_, err := fmt.Fprint(a.stdout, b.String())
	return err
}

// many is a number of things in words.
func many(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
