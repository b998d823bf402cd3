package main

import (
	_ "embed"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/face/view"
)

// helpText has one part per command: a line such as "# cairn index", the description, the
// line "Examples:" and the examples.
//
//go:embed help.txt
var helpText string

// help is the part of helpText for one command.
type help struct{ long, example string }

func parseHelp(text string) map[string]help {
	all := map[string]help{}
	for part := range strings.SplitSeq("\n"+text, "\n# ") {
		command, rest, _ := strings.Cut(part, "\n")
		long, example, _ := strings.Cut("\n"+rest, "\nExamples:\n")
		all[command] = help{strings.TrimSpace(long), strings.TrimRight(example, "\n")}
	}
	return all
}

// describe sets the help of cmd and its subcommands, and the check of their arguments unless
// a command has its own.
func describe(cmd *cobra.Command, all map[string]help) {
	h := all[cmd.CommandPath()]
	cmd.Long, cmd.Example = h.long, h.example
	if cmd.Args == nil {
		cmd.Args = argsOf(cmd.Use)
	}
	for _, sub := range cmd.Commands() {
		describe(sub, all)
	}
}

// argsOf returns the check for the number of arguments in a line of usage such as
// "view [flags] DOCUMENT [TASK...]".
func argsOf(use string) cobra.PositionalArgs {
	least, most := 0, 0
	words := strings.Fields(use)[1:]
	for i := 0; i < len(words); i++ {
		inside, optional := strings.CutPrefix(words[i], "[")
		name, closed := strings.CutSuffix(inside, "]")
		switch {
		case name == "flags":
			continue
		case strings.HasPrefix(name, "--"):
			if !closed {
				i++ // the value of the flag
			}
			continue
		case strings.HasSuffix(name, "..."):
			most = math.MaxInt
		default:
			most++
		}
		if !optional {
			least++
		}
	}
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return cli.BadUsage("got %s, want: %s", view.Count(len(args), "argument"), cmd.UseLine())
		}
		return nil
	}
}
