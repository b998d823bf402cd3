// Command cairn searches a folder of Markdown, from the command line and for
// agents over MCP. `cairn help` lists what it does.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"cairn/retriever"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// Exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// run is the whole program, apart from the process it runs in.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	out, said := newOutput(stdout), newOutput(stderr)
	a := &app{stdin: stdin, stdout: out, stderr: said}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(out)
	root.SetErr(said)
	err := heeding(ctx, interruptLimit, func() error { return root.ExecuteContext(ctx) })
	defer said.end()
	if lost := out.end(); err == nil && lost != nil {
		err, a.started = lost, true // however well it was put, it was not answered
	}
	switch {
	case err == nil:
		return exitDone
	case ctx.Err() != nil:
		fmt.Fprintln(said, "cairn: interrupted")
		return exitInterrupted
	case errors.Is(err, syscall.EPIPE):
		return exitFailed // the reader of our output has left; there is nobody to tell
	}
	fmt.Fprintln(said, "cairn: "+oneLine(inWords(err)))
	if _, wrong := errors.AsType[*usageError](err); wrong || !a.started {
		return exitUsage
	}
	if _, wrong := errors.AsType[*retriever.InvalidError](err); wrong {
		return exitUsage
	}
	return exitFailed
}

// interruptLimit bounds what a command still does after a signal. A write to
// the keyword index can take seconds on a busy machine and cannot be cut short;
// the index survives the end of the process at any moment.
const interruptLimit = 1800 * time.Millisecond

// heeding runs fn and returns its error, or ctx's when fn goes on for limit
// after ctx has ended. The process is about to end then.
func heeding(ctx context.Context, limit time.Duration, fn func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- fn() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case err := <-ended:
		return err
	case <-late.C:
		return ctx.Err()
	}
}

// usageError is a request that makes no sense as it was put.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func badUsage(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// bounds are what an integer flag accepts when it is given. Left out, a flag
// means its default, which need not lie between them.
type bounds struct {
	flag        string
	least, most int
}

// noBound is the upper end of bounds that have none.
const noBound = math.MaxInt

// inRange checks flags that were given.
func inRange(cmd *cobra.Command, flags ...bounds) error {
	for _, b := range flags {
		n, err := cmd.Flags().GetInt(b.flag)
		if err != nil {
			return err // unreachable: the names are those of integer flags
		}
		switch {
		case !cmd.Flags().Changed(b.flag) || n >= b.least && n <= b.most:
		case b.most == noBound:
			return badUsage("--%s is %d, want at least %d", b.flag, n, b.least)
		default:
			return badUsage("--%s is %d, want %d to %d", b.flag, n, b.least, b.most)
		}
	}
	return nil
}

// inWords is what an error says, without the names of functions that could not
// read the value of a flag.
func inWords(err error) string {
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

// badDuration is what package time says of a duration that it cannot read.
var badDuration = regexp.MustCompile(`time: (invalid|missing unit in|unknown unit "[^"]*" in) duration "[^"]*"`)

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
