package client

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
	"unicode"
)

// grace is how long a server may take to exit after its input has ended, and again
// after a signal.
const grace = 2 * time.Second

// errEnded means that a server exited with a status of its own.
var errEnded = errors.New("the server ended with an error")

// process is a server started as a child.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.ReadCloser
	stderr *tail
	stop   context.CancelFunc // sends a signal, and kills after grace
	exited chan struct{}
	err    error // of the process, once exited is closed
	once   sync.Once
}

// start runs a command in its own process group, so that wrappers such as shells
// and package runners end together with their children.
func start(command []string) (*process, error) {
	ctx, stop := context.WithCancel(context.Background())
	p := &process{cmd: exec.CommandContext(ctx, command[0], command[1:]...), stop: stop, stderr: &tail{}, exited: make(chan struct{})}
	p.cmd.Stderr = p.stderr
	p.cmd.Cancel = func() error { return terminate(p.cmd) }
	p.cmd.WaitDelay = grace // grandchildren may hold standard error open
	ownGroup(p.cmd)
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	// A pipe of our own: cmd.StdoutPipe would be closed under a reader by Wait.
	r, w := io.Pipe()
	p.stdout, p.cmd.Stdout = r, w
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		w.CloseWithError(io.EOF)
		close(p.exited)
	}()
	return p, nil
}

// end closes the server's input, waits, sends it a signal, waits, and kills it.
// A further call waits for the first one and returns its result.
func (p *process) end() error {
	p.once.Do(func() {
		defer p.stop()
		p.stdin.Close()
		p.stdout.Close() // a server that still writes must not delay the end
		select {
		case <-p.exited:
		case <-time.After(grace):
			p.stop()
			<-p.exited
		}
	})
	kill(p.cmd) // the leader's children
	if p.err != nil {
		return errEnded
	}
	return nil
}

// tailSize is how much of a server's standard error tail keeps, in bytes.
const tailSize = 2 << 10

// tail is a writer that keeps the last tailSize bytes.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[max(0, len(p)-tailSize):]...)
	if extra := len(t.text) - tailSize; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
	return len(p), nil
}

// String returns the kept bytes, safe for a terminal.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(t.text), ""))
}
