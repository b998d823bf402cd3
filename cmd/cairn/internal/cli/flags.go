package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Command is a command of cairn, and FlagSet its flags.
type (
	Command = cobra.Command
	FlagSet = pflag.FlagSet
)

// NewCommand returns a command that calls run.
func NewCommand(use, short string, run func(*cobra.Command, []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, RunE: run}
}

// Group returns a command with subcommands. Without one of them it prints its help.
func Group(use, short string, subs ...*cobra.Command) *cobra.Command {
	cmd := NewCommand(use, short, func(cmd *cobra.Command, _ []string) error { return cmd.Help() })
	cmd.Args, cmd.SuggestionsMinimumDistance = NoSuchCommand, 2
	cmd.AddCommand(subs...)
	return cmd
}

// NoSuchCommand returns an error for the arguments of a group, which name no subcommand.
func NoSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	near := ""
	for i, name := range cmd.SuggestionsFor(args[0]) {
		near += []string{"; did you mean ", " or "}[min(i, 1)] + cmd.CommandPath() + " " + name
	}
	if near == "" {
		near = fmt.Sprintf("; %s --help lists the commands", cmd.CommandPath())
	}
	return BadUsage("unknown command %q%s", args[0], near)
}

// NoBound is the maximum of a flag that has none.
const NoBound = math.MaxInt

// boundedInt is an integer flag with bounds. Its default may be outside the bounds.
type boundedInt struct {
	p        *int
	min, max int
}

// IntVar adds an integer flag with bounds.
func IntVar(fs *pflag.FlagSet, p *int, name string, value, min, max int, usage string) {
	*p = value
	fs.Var(Bounded(p, min, max), name, usage)
}

// Bounded returns an integer flag with bounds, whose default is *p.
func Bounded(p *int, min, max int) pflag.Value { return &boundedInt{p, min, max} }

func (b *boundedInt) String() string { return strconv.Itoa(*b.p) }
func (b *boundedInt) Type() string   { return "int" }

// Set implements pflag.Value.
func (b *boundedInt) Set(s string) error {
	n, err := strconv.ParseInt(s, 0, 0)
	if err != nil {
		return err
	}
	switch {
	case int(n) >= b.min && int(n) <= b.max:
		*b.p = int(n)
		return nil
	case b.max == NoBound:
		return wantError(fmt.Sprintf("at least %d", b.min))
	}
	return wantError(fmt.Sprintf("%d to %d", b.min, b.max))
}

// wantError describes the values that a flag accepts.
type wantError string

func (e wantError) Error() string { return "want " + string(e) }

// choice is a flag with a fixed set of values.
type choice[S ~string] struct {
	p       *S
	choices []string
}

// ChoiceVar adds a flag with a fixed set of values. Its default is *p, which may be "". The value
// all is "".
func ChoiceVar[S ~string](fs *pflag.FlagSet, p *S, name, usage string, choices ...string) {
	fs.Var(choice[S]{p, choices}, name, usage)
}

func (c choice[S]) Type() string { return "string" }

// String implements pflag.Value.
func (c choice[S]) String() string {
	if *c.p == "" && slices.Contains(c.choices, "all") {
		return "all"
	}
	return string(*c.p)
}

// Set implements pflag.Value.
func (c choice[S]) Set(s string) error {
	if !slices.Contains(c.choices, s) {
		return wantError("{" + strings.Join(c.choices, ",") + "}")
	}
	if *c.p = S(s); s == "all" {
		*c.p = ""
	}
	return nil
}

// AddModel adds the flags that choose the embedding model.
func (a *App) AddModel(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.Model.Dir, "model", "", "folder of an ONNX sentence encoder (default: the built-in all-MiniLM-L6-v2)")
	a.Model.Engine = "bert"
	ChoiceVar(cmd.Flags(), &a.Model.Engine, "engine", "engine of the embedding model: bert (native) or hugot (any ONNX encoder)", "bert", "hugot")
}

// AddRerank adds the flag that chooses the re-ranker.
func (a *App) AddRerank(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.Model.Rerank, "rerank", "", "folder of an ONNX cross-encoder that reorders the best results (default: retrieval.rerank, if set)")
}

// FlagError is the usage error for a flag that pflag refused.
func FlagError(cmd *cobra.Command, err error) error {
	if want, ok := errors.AsType[wantError](err); ok {
		if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
			return BadUsage("--%s is %s, %w", bad.GetFlag().Name, bad.GetValue(), want)
		}
	}
	return BadUsage("%w (see `%s --help`)", err, cmd.CommandPath())
}
