package client

import (
	"context"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
	"unicode"
)

// grace is the time for a server to exit after the end of its input, and again after a
// signal.
const grace = 2 * time.Second

// process is a server started as a child.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.ReadCloser
	stderr *tail
	stop   context.CancelFunc // sends a signal, and kills after grace
	exited chan struct{}
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
	// Do not use cmd.StdoutPipe: Wait would close it during a read.
	r, w := io.Pipe()
	p.stdout, p.cmd.Stdout = r, w
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // a status other than 0 is no error if the server answered
		w.CloseWithError(io.EOF)
		close(p.exited)
	}()
	return p, nil
}

// end closes the server's input and waits. If the server does not exit, end sends it a
// signal, waits again, and kills it.
func (p *process) end() {
	defer p.stop()
	p.stdin.Close()
	p.stdout.Close() // a server that still writes must not delay the end
	select {
	case <-p.exited:
	case <-time.After(grace):
		p.stop()
		<-p.exited
	}
	kill(p.cmd) // the children of the server
}

// tailSize is the size of the end of a server's standard error that tail keeps, in bytes.
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
