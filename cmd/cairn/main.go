// Command cairn searches a folder of documents, from the command line and for agents over
// MCP. `cairn help` lists its commands.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"cairn/cmd/cairn/internal/cli"
	_ "cairn/internal/base/heap"
	"cairn/internal/face/term"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// Exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitNothing     = 1 // a search found nothing
	exitUsage       = 2 // and any error of a search
	exitInterrupted = 130
)

// run runs the program with the arguments and streams of a process and returns
// its exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	a := cli.New(versionName(), stdin, stdout, stderr)
	defer a.Out.Notes.Close()
	root := newRoot(a)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(a.Out)
	root.SetErr(a.Out.Notes)
	err := withGracePeriod(ctx, gracePeriod, func() error { return root.ExecuteContext(ctx) })
	if failed := a.Out.Close(); err == nil && failed != nil {
		err, a.Started = failed, true // a failed write is never wrong usage
	}
	switch {
	case err == nil && a.FoundNothing():
		return exitNothing
	case err == nil:
		return exitDone
	case ctx.Err() != nil:
		a.Out.Notes.Printf("cairn: interrupted\n")
		return exitInterrupted
	}
	text, usage := cli.Explain(err)
	if !errors.Is(err, syscall.EPIPE) { // the reader of the output has closed it
		a.Out.Notes.Printf("cairn: %s\n", term.OneLine(text))
	}
	if usage || !a.Started || a.Searching {
		return exitUsage
	}
	return exitFailed
}

// gracePeriod is how long a command may run after a signal. A write to the keyword index
// cannot be interrupted and can take seconds on a busy machine. The end of the process at
// any moment does not damage the index.
const gracePeriod = 1800 * time.Millisecond

// withGracePeriod runs fn and returns its error. If fn still runs when the period after the
// end of ctx is over, it returns the error of ctx; the process must end then.
func withGracePeriod(ctx context.Context, period time.Duration, fn func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- fn() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(period):
		return ctx.Err()
	}
}
