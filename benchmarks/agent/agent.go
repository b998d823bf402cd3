// Package agent is a client of `cairn mcp`, or of another program that answers lines of JSON,
// for benchmarks. It sends one request at a time and does little work between sending and
// receiving.
package agent

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// Client is a client of one server. It is not safe for concurrent use.
type Client struct {
	in    io.WriteCloser
	out   *bufio.Reader
	id    int
	close func() error
}

// New returns a client that writes requests to in and reads answers from out.
func New(in io.WriteCloser, out io.Reader) *Client {
	return &Client{in: in, out: bufio.NewReaderSize(out, 1<<20), close: func() error { return nil }}
}

// Start runs the program cairn with args, which must make it serve on its standard input and
// output.
func Start(cairn string, args ...string) (*Client, *os.Process, error) {
	cmd := exec.Command(cairn, args...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	c := New(in, out)
	c.close = cmd.Wait
	return c, cmd.Process, nil
}

// Close ends the requests, reads the remaining answers, and waits for the program if Start
// has started one.
func (c *Client) Close() error {
	c.in.Close()
	_, _ = io.Copy(io.Discard, c.out)
	return c.close()
}

// Ask sends a value as a line of JSON and returns the next line.
func (c *Client) Ask(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if _, err := c.in.Write(append(text, '\n')); err != nil {
		return nil, err
	}
	return c.out.ReadBytes('\n')
}

// Line sends one request and returns the line of its answer, which it does not check. It
// skips notifications.
func (c *Client) Line(method string, params any) ([]byte, error) {
	c.id++
	line, err := c.Ask(map[string]any{"jsonrpc": "2.0", "id": c.id, "method": method, "params": params})
	for ; ; line, err = c.out.ReadBytes('\n') {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		var head struct{ Method string }
		if len(line) > 4<<10 || json.Unmarshal(line, &head) != nil || head.Method == "" {
			return line, nil
		}
	}
}

// Call sends one request and decodes its result into result.
func (c *Client) Call(method string, params, result any) error {
	line, err := c.Line(method, params)
	if err != nil {
		return err
	}
	return Decode(method, line, result)
}

// Decode checks an answer to method and decodes its result. result may be nil.
func Decode(method string, line []byte, result any) error {
	var answer struct{ Result, Error json.RawMessage }
	if err := json.Unmarshal(line, &answer); err != nil {
		return fmt.Errorf("the answer to %s is not JSON: %w", method, err)
	}
	if answer.Error != nil {
		return fmt.Errorf("%s: %.300s", method, answer.Error)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(answer.Result, result)
}

// Notify sends a notification.
func (c *Client) Notify(method string) error {
	_, err := fmt.Fprintf(c.in, `{"jsonrpc":"2.0","method":%q}`+"\n", method)
	return err
}
