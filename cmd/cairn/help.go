package main

import (
	_ "embed"
	"strings"

	"github.com/spf13/cobra"
)

// helpText has the description and the examples of the commands: a line "# cairn index",
// the description, a line "Examples:" and the examples.
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

// describe completes the commands from cmd on: with their help, and with the check of
// their arguments unless they have their own.
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

// argsOf returns the check of arguments that a line of usage describes, such as
// "view [flags] DOCUMENT [TASK...]".
func argsOf(use string) cobra.PositionalArgs {
	required, optional := 0, 0
	words := strings.Fields(use)[1:]
	for i := 0; i < len(words); i++ {
		inside, bracket := strings.CutPrefix(words[i], "[")
		name, closed := strings.CutSuffix(inside, "]")
		switch {
		case name == "flags":
		case strings.HasPrefix(name, "--"):
			if !closed {
				i++ // the value of the flag
			}
		case strings.HasSuffix(name, "..."):
			if !bracket {
				required++
			}
			return cobra.MinimumNArgs(required)
		case bracket:
			optional++
		default:
			required++
		}
	}
	switch {
	case optional > 0:
		return cobra.MaximumNArgs(required + optional) // no command has both
	case required > 0:
		return cobra.ExactArgs(required)
	}
	return cobra.NoArgs
}
