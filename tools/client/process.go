package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
	"unicode"
)

// grace is the default of Target.Grace.
const grace = 2 * time.Second

// process is a server started as a child.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.ReadCloser
	stderr *tail              // of cmd.Stderr
	stop   context.CancelFunc // sends a signal, and kills after grace
	exited chan struct{}
}

// start runs a command in its own process group, so that wrappers such as shells
// and package runners end together with their children.
func start(t Target) (*process, error) {
	ctx, stop := context.WithCancel(context.Background())
	p := &process{cmd: exec.CommandContext(ctx, t.Command[0], t.Command[1:]...), stop: stop, stderr: &tail{}, exited: make(chan struct{})}
	p.cmd.Env, p.cmd.Dir, p.cmd.Stderr = t.Env, t.Dir, p.stderr
	if t.Log != nil {
		p.cmd.Stderr = io.MultiWriter(p.stderr, t.Log)
	}
	p.cmd.Cancel = func() error { return terminate(p.cmd) }
	p.cmd.WaitDelay = cmp.Or(t.Grace, grace) // grandchildren may hold standard error open
	ownGroup(p.cmd)
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	// Do not use cmd.StdoutPipe: Wait would close it during a read.
	r, w := io.Pipe()
	p.stdout, p.cmd.Stdout = r, w
	started := make(chan error)
	go func() {
		// On Linux the server ends with the thread that has started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // a status other than 0 is no error if the server answered
			w.CloseWithError(io.EOF)
		}
		close(p.exited)
	}()
	if err := <-started; err != nil {
		stop()
		return nil, err
	}
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
	case <-time.After(p.cmd.WaitDelay):
		p.stop()
		<-p.exited
	}
	kill(p.cmd) // the children of the server
}

// messages reads the messages in a server's output and writes all else to log: many servers
// greet, warn or print objects on standard output, also within the line of a message.
type messages struct {
	io.Closer
	lines *bufio.Reader
	log   io.Writer
	line  []byte // the beginning of the present line
	rest  []byte // of messages, not yet returned
}

func (m *messages) Read(p []byte) (int, error) {
	for len(m.rest) == 0 {
		part, err := m.lines.ReadSlice('\n')
		m.line = append(m.line, part...)
		if errors.Is(err, bufio.ErrBufferFull) && len(m.line) <= maxMessage {
			continue
		}
		switch {
		case len(m.line) == 0:
			return 0, err
		case len(m.line) > maxMessage && m.line[0] == '{':
			return 0, fmt.Errorf("the server sent a message of more than %d MiB", maxMessage>>20)
		}
		var other []byte
		m.rest, other = split(m.line)
		m.line = m.line[:0]
		if _, err := m.log.Write(other); err != nil {
			return 0, err
		}
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

// split returns the messages in a line, one a line, and its other text. A line that should have
// been a message counts as one: the session then fails with the reason.
func split(line []byte) (found, other []byte) {
	const maxStarts = 64 // bounds the time for a line of braces
	rest := line
	for range maxStarts {
		start := bytes.IndexByte(rest, '{')
		if start < 0 {
			break
		}
		other, rest = append(other, rest[:start]...), rest[start:]
		var message struct{ JSONRPC string }
		values, n := json.NewDecoder(bytes.NewReader(rest)), 1
		if values.Decode(&message) == nil {
			n = int(values.InputOffset())
		}
		if message.JSONRPC != "" {
			found = append(append(found, legible(rest[:n])...), '\n')
		} else {
			other = append(other, rest[:n]...)
		}
		rest = rest[n:]
	}
	if len(found) == 0 && line[0] == '{' && bytes.Contains(line, []byte(`"jsonrpc"`)) && !json.Valid(line) {
		return line, nil
	}
	if other = append(other, rest...); len(bytes.Trim(other, "[, \t\r\n]")) == 0 {
		other = nil // at most the brackets of a batch
	}
	return found, other
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
