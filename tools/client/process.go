package client

import (
	"errors"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
	"unicode"
)

// grace is how long a server may take to end once its input has, and again
// once it has been told to.
const grace = 2 * time.Second

// errEnded says that a server ended in its own way, with a status of its own.
var errEnded = errors.New("the server ended with an error")

// process is a server started as a child.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.ReadCloser
	stderr *tail
	exited chan struct{}
	err    error // of the process, once exited is closed
	once   sync.Once
}

// start runs a command in a process group of its own, so that wrappers such
// as shells and package runners end together with what they run.
func start(command []string) (*process, error) {
	p := &process{cmd: exec.Command(command[0], command[1:]...), stderr: &tail{}, exited: make(chan struct{})}
	p.cmd.Stderr = p.stderr
	p.cmd.WaitDelay = time.Second // grandchildren may hold standard error open
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

// end closes the server's input, waits, asks it to end, waits, and ends it.
// Calling it again waits for the first call and returns the same.
func (p *process) end() error {
	p.once.Do(func() {
		p.stdin.Close()
		p.stdout.Close() // so that a server that still writes is not waited for
		if p.gone() {
			return
		}
		terminate(p.cmd)
		if p.gone() {
			return
		}
		kill(p.cmd)
		<-p.exited
	})
	kill(p.cmd) // what the group's leader left behind
	if p.err != nil {
		return errEnded
	}
	return nil
}

func (p *process) gone() bool {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}

// tailSize is how much of a server's standard error is kept, in bytes.
const tailSize = 2 << 10

// tail keeps the end of what is written to it.
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

// String is what was kept, fit for a terminal.
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
