package tools

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/base/owner"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata with what the server says")

// TestTranscripts plays testdata/*.txt: lines that begin with "> " go to the
// server, lines with "< " are its answers, other lines are prose. The test waits for
// each answer before it sends the next request.
func TestTranscripts(t *testing.T) {
	playAll(t, "testdata/*.txt", func(t *testing.T, ar *txtar.Archive) string { return play(t, string(ar.Comment), nil) })
}

// TestCatalogTranscripts plays testdata/catalog/*.txt with a small catalogue.
func TestCatalogTranscripts(t *testing.T) {
	playAll(t, "testdata/catalog/*.txt", func(t *testing.T, ar *txtar.Archive) string {
		return play(t, string(ar.Comment), &Options{Groups: []Group{Catalog}, Toolbox: openBox(t)})
	})
}

// playAll plays the transcripts that match pattern, which a folder may follow as in
// txtar, and compares the answers with the transcript.
func playAll(t *testing.T, pattern string, play func(*testing.T, *txtar.Archive) string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := string(ar.Comment)
			got := play(t, ar)
			if *update {
				ar.Comment = []byte(got)
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the answers differ (-want +got); rewrite with -update if that is right:\n%s", diff)
			}
		})
	}
}

// play runs a transcript against a new server and returns it with the server's
// lines in the order of their arrival.
func play(t *testing.T, script string, o *Options) string {
	s := newSession(t, (&fake{}).folder(), o)
	var out strings.Builder
	for text := range strings.Lines(script) {
		switch {
		case strings.HasPrefix(text, "< "):
		case strings.HasPrefix(text, "> "):
			out.WriteString(text)
			message := strings.TrimSuffix(strings.TrimPrefix(text, "> "), "\n")
			s.send(message)
			for owed := answers(message); owed > 0; {
				line := s.receive()
				out.WriteString("< " + line + "\n")
				if !strings.Contains(line, `"method":`) {
					owed--
				}
			}
		default:
			out.WriteString(text)
		}
	}
	if rest := s.close(); rest != "" {
		t.Errorf("the server sent more than the answers:\n%s", rest)
	}
	return out.String()
}

// answers is the number of lines a message is answered with, progress aside.
func answers(message string) int {
	if strings.TrimSpace(message) == "" {
		return 0
	}
	var m struct{ ID, Method any }
	if err := json.Unmarshal([]byte(message), &m); err != nil || m.Method == nil || m.ID != nil {
		return 1
	}
	return 0
}

// session is a server and the streams to it.
type session struct {
	t    *testing.T
	in   *io.PipeWriter
	out  *bufio.Reader
	done chan error
}

func newSession(t *testing.T, folder *owner.Folder, o *Options) *session {
	t.Helper()
	return startSession(t, New(folder, o))
}

// startSession starts a session with a server.
func startSession(t *testing.T, server *Server) *session {
	t.Helper()
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	s := &session{t: t, in: inWrite, out: bufio.NewReader(outRead), done: make(chan error, 1)}
	go func() {
		err := server.ServeStdio(t.Context(), inRead, outWrite)
		outWrite.Close()
		s.done <- err
	}()
	return s
}

func (s *session) send(lines ...string) {
	s.t.Helper()
	if _, err := io.WriteString(s.in, strings.Join(lines, "\n")+"\n"); err != nil {
		s.t.Fatal(err)
	}
}

// sendAll is send for a separate goroutine. It ignores the error of a server that
// stops reading, which shows in what is received.
func (s *session) sendAll(lines ...string) {
	_, _ = io.WriteString(s.in, strings.Join(lines, "\n")+"\n")
}

func (s *session) receive() string {
	s.t.Helper()
	line, err := s.out.ReadString('\n')
	if err != nil {
		s.t.Fatalf("after %q: %v", line, err)
	}
	return strings.TrimSuffix(line, "\n")
}

// close ends the input and returns the rest of the output.
func (s *session) close() string {
	s.t.Helper()
	s.in.Close()
	rest, err := io.ReadAll(s.out)
	if err != nil {
		s.t.Error(err)
	}
	if err := <-s.done; err != nil {
		s.t.Errorf("ServeStdio = %v", err)
	}
	return string(bytes.TrimSpace(rest))
}
