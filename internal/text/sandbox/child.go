package sandbox

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// child is a process that answers one call at a time.
type child struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr io.Reader   // the message of a crash
	expiry *time.Timer // set while the child is idle
}

// argument precedes the name of the pool in the first argument of a child.
const argument = "cairn-sandbox-"

// The exit statuses of a child that exceeded a limit, or for which the system refused the
// limits.
const (
	exitTime    = 3
	exitMemory  = 4
	exitRefused = 5
)

// start starts a child, which calls Serve.
func start(name string, limits Limits) (*child, error) {
	path, err := executable()
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{
		Path: path,
		Args: []string{argument + name},
		Dir:  string(filepath.Separator),
		// There are as many children as processors, so each uses one. The garbage collector
		// works harder when the memory is nearly used up.
		Env: []string{"GOMAXPROCS=1", "GOGC=800", fmt.Sprint("GOMEMLIMIT=", limits.Memory*3/4), "GOTRACEBACK=none"},
	}
	c := &child{cmd: cmd}
	var errs [3]error
	c.in, errs[0] = cmd.StdinPipe()
	out, err := cmd.StdoutPipe()
	c.out, errs[1] = bufio.NewReaderSize(out, maxBatchBytes), err
	c.stderr, errs[2] = cmd.StderrPipe()
	return c, errors.Join(append(errs[:], cmd.Start())...)
}

// executable returns the file of this program. On Linux it names the file that runs, even
// after an upgrade has replaced it.
func executable() (string, error) {
	if runtime.GOOS == "linux" {
		const self = "/proc/self/exe"
		if _, err := os.Lstat(self); err == nil {
			return self, nil
		}
	}
	return os.Executable()
}

// maxWait bounds a call by the clock. Only a child that another process stopped takes so
// long.
const maxWait = 10 * time.Minute

// answer sends the requests of a batch together and receives a response to each.
func (c *child) answer(batch []*call) error {
	late := time.AfterFunc(maxWait, func() { _ = c.cmd.Process.Kill() })
	defer late.Stop()
	size := 0
	for _, b := range batch {
		size += headSize + b.size
	}
	w := bufio.NewWriterSize(c.in, min(size+headSize, maxBatchBytes))
	_, _ = w.Write(head(size)) // Flush returns the error
	for _, b := range batch {
		_, _ = w.Write(head(b.size))
		for _, part := range b.request {
			_, _ = w.Write(part)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, b := range batch {
		response, err := readFrame(c.out)
		if err != nil {
			return err
		}
		b.response = response
	}
	return nil
}

// end ends the process and returns why its call failed.
func (c *child) end(limits Limits) error {
	_ = c.cmd.Process.Kill() // a process that has exited keeps its status
	message, _ := io.ReadAll(io.LimitReader(c.stderr, 4<<10))
	_ = c.cmd.Wait()
	line, _, _ := strings.Cut(string(message), "\n")
	switch code := c.cmd.ProcessState.ExitCode(); {
	case code == exitTime:
		return limits.errTime()
	// Linux kills a process without a message. Go's collector fails with a bare signal where it
	// does not check that it got memory; a fault of a parser is a panic.
	case code == exitMemory, line == "", strings.Contains(line, "memory"), strings.HasPrefix(line, "SIGSEGV"):
		return limits.errMemory()
	case code == exitRefused:
		return fmt.Errorf("cannot limit the process that reads it: %s", line)
	}
	return &Error{"crashes the process that reads it: " + line}
}

// maxFrame is the most bytes in a response or a batch.
const maxFrame = 1 << 30

// headSize is the size of the head of a frame in bytes.
const headSize = 4

// head returns the head of a frame, the number of its bytes, little endian.
func head(n int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(n)) }

// readFrame reads the content of a frame.
func readFrame(r io.Reader) ([]byte, error) {
	var head [headSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > maxFrame {
		return nil, errors.New("the message is too long")
	}
	data := make([]byte, n)
	_, err := io.ReadFull(r, data)
	return data, err
}
