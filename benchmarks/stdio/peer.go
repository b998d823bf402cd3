package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// peer is another search program for the same queries. A nil peer does nothing.
type peer struct {
	in  io.Writer
	out *bufio.Reader
}

// startPeer starts a command, whose words are separated by spaces. It ends with its
// standard input. There is no peer without a command.
func startPeer(command string) (*peer, error) {
	words := strings.Fields(command)
	if len(words) == 0 {
		return nil, nil
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &peer{in, bufio.NewReader(out)}, cmd.Start()
}

// ask returns the milliseconds from the query to the end of its answer.
func (p *peer) ask(query string) (float64, error) {
	if p == nil {
		return 0, nil
	}
	line, err := json.Marshal(query)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return 0, err
	}
	_, err = p.out.ReadSlice('\n')
	return ms(time.Since(began)), err
}
