package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manCommand writes the files that packages of cairn install with it.
func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write manual pages to DIR/man1 and completions to DIR/completions",
		Example: "  cairn man build",
		Args:    cobra.ExactArgs(1),
		Hidden:  true,
		RunE: a.command(func(_ context.Context, args []string) error {
			return writeManual(a.root(), args[0])
		}),
	}
}

func writeManual(root *cobra.Command, dir string) error {
	pages, completions := filepath.Join(dir, "man1"), filepath.Join(dir, "completions")
	for _, d := range []string{pages, completions} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	root.InitDefaultCompletionCmd()
	// A fixed date makes the same pages every time.
	at := time.Unix(0, 0).UTC()
	header := &doc.GenManHeader{Title: "CAIRN", Section: "1", Source: "cairn", Manual: "cairn", Date: &at}
	if err := doc.GenManTree(root, header, pages); err != nil {
		return fmt.Errorf("writing manual pages: %w", err)
	}
	for name, generate := range map[string]func(*bytes.Buffer) error{
		"cairn.bash": func(b *bytes.Buffer) error { return root.GenBashCompletionV2(b, true) },
		"_cairn":     func(b *bytes.Buffer) error { return root.GenZshCompletion(b) },
		"cairn.fish": func(b *bytes.Buffer) error { return root.GenFishCompletion(b, true) },
		"cairn.ps1":  func(b *bytes.Buffer) error { return root.GenPowerShellCompletionWithDesc(b) },
	} {
		var b bytes.Buffer
		if err := generate(&b); err != nil {
			return fmt.Errorf("writing completions: %w", err)
		}
		if err := os.WriteFile(filepath.Join(completions, name), b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
