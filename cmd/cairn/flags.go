package main

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageError is a request that cannot be carried out as it was written.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func badUsage(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// group returns a command that has nothing but subcommands.
func group(use, short string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(subs...)
	return cmd
}

// noBound is the maximum of a flag that has none.
const noBound = math.MaxInt

// boundedInt is an integer flag whose value must be between two bounds if it is
// given; its default may be outside of them.
type boundedInt struct {
	p        *int
	min, max int
}

// intVar adds an integer flag with bounds.
func intVar(fs *pflag.FlagSet, p *int, name string, value, min, max int, usage string) {
	*p = value
	fs.Var(&boundedInt{p, min, max}, name, usage)
}

func (b *boundedInt) String() string { return strconv.Itoa(*b.p) }
func (b *boundedInt) Type() string   { return "int" }

// Set implements pflag.Value.
func (b *boundedInt) Set(s string) error {
	n, err := strconv.ParseInt(s, 0, 0)
	if err != nil {
		return err
	}
	if int(n) < b.min || int(n) > b.max {
		return &boundsError{b.min, b.max}
	}
	*b.p = int(n)
	return nil
}

// boundsError reports a value outside of the bounds of its flag.
type boundsError struct{ min, max int }

func (e *boundsError) Error() string {
	if e.max == noBound {
		return fmt.Sprintf("want at least %d", e.min)
	}
	return fmt.Sprintf("want %d to %d", e.min, e.max)
}

// flagError is the usage error for a flag that pflag refused.
func flagError(cmd *cobra.Command, err error) error {
	if out, ok := errors.AsType[*boundsError](err); ok {
		if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
			return badUsage("--%s is %s, %w", bad.GetFlag().Name, bad.GetValue(), out)
		}
	}
	return badUsage("%w (see `%s --help`)", err, cmd.CommandPath())
}

// message returns the text of an error for a person, without the names of the
// functions that could not parse the value of a flag.
func message(err error) string {
	text := err.Error()
	if bad, ok := errors.AsType[*strconv.NumError](err); ok {
		want := map[string]string{"ParseFloat": "want a number", "ParseBool": "want true or false"}[bad.Func]
		if want == "" {
			want = "want a whole number"
		}
		if errors.Is(bad, strconv.ErrRange) {
			want = "that number is too large or too small"
		}
		return strings.Replace(text, bad.Error(), want, 1)
	}
	return badDuration.ReplaceAllLiteralString(text, "want a time such as 30s or 5m")
}

// badDuration matches the errors of time.ParseDuration.
var badDuration = regexp.MustCompile(`time: (invalid|missing unit in|unknown unit "[^"]*" in) duration "[^"]*"`)
