package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// writeManual writes the manual pages of a command tree to dir/man1 and its shell completions
// to dir/completions. It adds no text of its own.
func writeManual(root *cobra.Command, dir string) error {
	pages, completions := filepath.Join(dir, "man1"), filepath.Join(dir, "completions")
	for _, d := range []string{pages, completions} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	if err := writePages(root, pages); err != nil {
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

// writePages writes the manual page of a command and of those below it.
func writePages(c *cobra.Command, dir string) error {
	if err := os.WriteFile(filepath.Join(dir, pageName(c)+".1"), manualPage(c), 0o644); err != nil {
		return err
	}
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			continue
		}
		if err := writePages(sub, dir); err != nil {
			return err
		}
	}
	return nil
}

func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// roff escapes text for a manual page. A line that begins with a dot or a quote would be a
// request.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'").Replace("\n" + strings.TrimSpace(text))
	return strings.ReplaceAll(text[1:], "\n\n", "\n.PP\n")
}

// manualPage returns a page in the format of man(7). It has no date, so the same
// commands make the same pages.
func manualPage(c *cobra.Command) []byte {
	var b bytes.Buffer
	c.InitDefaultHelpFlag()
	long := cmp.Or(c.Long, c.Short)
	fmt.Fprintf(&b, ".nh\n.TH \"CAIRN\" \"1\" \"\" \"cairn\" \"cairn\"\n.SH NAME\n%s \\- %s\n", roff(pageName(c)), roff(c.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n\\fB%s\\fP\n.SH DESCRIPTION\n%s\n", roff(c.UseLine()), roff(long))
	writeFlags(&b, "OPTIONS", c.NonInheritedFlags())
	writeFlags(&b, "OPTIONS INHERITED FROM PARENT COMMANDS", c.InheritedFlags())
	if c.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLE\n.EX\n%s\n.EE\n", roff(c.Example))
	}
	var related []string
	if c.HasParent() {
		related = append(related, pageName(c.Parent()))
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && !sub.IsAdditionalHelpTopicCommand() {
			related = append(related, pageName(sub))
		}
	}
	if len(related) > 0 {
		fmt.Fprintf(&b, ".SH SEE ALSO\n\\fB%s(1)\\fP\n", roff(strings.Join(related, "(1), ")))
	}
	return b.Bytes()
}

func writeFlags(b *bytes.Buffer, heading string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", heading)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" && f.ShorthandDeprecated == "" {
			name = "-" + f.Shorthand + ", " + name
		}
		fmt.Fprintf(b, ".TP\n\\fB%s\\fP=%s\n%s\n", roff(name), roff(f.DefValue), roff(f.Usage))
	})
}
