// Command cairn searches a folder of Markdown, from the command line and for
// agents over MCP. `cairn help` lists what it does.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

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
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitDone
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "cairn: interrupted")
		return exitInterrupted
	case errors.Is(err, syscall.EPIPE):
		return exitFailed // the reader of our output has left; there is nobody to tell
	}
	fmt.Fprintln(stderr, "cairn: "+oneLine(err.Error()))
	if _, wrong := errors.AsType[*usageError](err); wrong || !a.started {
		return exitUsage
	}
	if _, wrong := errors.AsType[*retriever.InvalidError](err); wrong {
		return exitUsage
	}
	return exitFailed
}

// usageError is a request that makes no sense as it was put.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usage(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
