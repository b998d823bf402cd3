// Package client connects to other MCP servers and lists their tools.
//
// A server is a command on standard input and output, or a URL. It is an untrusted
// program: the client bounds what it reads.
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
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/toolbox/catalog"
)

// Timeout bounds an Import, from starting the server to its last page.
const Timeout = 30 * time.Second

// maxMessage bounds one message of a server in bytes, maxTotal one response over HTTP. Decoding a
// message takes about twenty times its size in memory.
const (
	maxMessage = 8 << 20
	maxTotal   = 2 * catalog.MaxLiveBytes
)

// Target is the address of a server. Exactly one of Command and URL is set.
type Target struct {
	// Command is a program with its arguments. Env is its environment; nil is that of this
	// process. Dir is its folder; "" is that of this process. Log receives its standard error
	// and the lines of its standard output that are no messages; nil discards them.
	Command []string
	Env     []string
	Dir     string
	Log     io.Writer
	// Grace is the time for the program to exit after the end of its input, and again after
	// a signal; 0 is two seconds.
	Grace time.Duration
	// URL is the address of a streamable HTTP endpoint.
	URL string
	// Token is sent to the URL as a bearer token; "" sends none. OAuth authorizes requests
	// instead; nil does not.
	Token string
	OAuth *OAuth
	// Header is sent with each request to the URL.
	Header http.Header
	// Version is the version of cairn.
	Version string
}

// Import lists all tools of a server within Timeout and ends the connection. server is its
// name in the catalogue; "" means the name that the server reports. If a command fails, the
// error ends with the standard error of the command.
func Import(ctx context.Context, t Target, server string) (*catalog.Batch, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, Timeout, fmt.Errorf("the server took longer than %v", Timeout))
	defer cancel()
	s, err := Connect(ctx, t, nil)
	var batch *catalog.Batch
	if err == nil {
		batch, err = catalog.FromServer(ctx, s, server)
		s.Close()
		err = s.explain(err)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(cause, context.Canceled) {
		return nil, fmt.Errorf("%w: %w", cause, err)
	}
	return batch, err
}

// Session is a connection to a server. It is a catalog.Lister.
type Session struct {
	*mcp.ClientSession
	process *process // nil for a URL
}

// Connect starts a session, which the caller closes. o has the capabilities and handlers of
// the client; nil declares none.
func Connect(ctx context.Context, t Target, o *mcp.ClientOptions) (*Session, error) {
	switch {
	case len(t.Command) > 0 && t.URL != "":
		return nil, errors.New("both a command and a URL are given, want one")
	case len(t.Command) > 0:
		return t.connectCommand(ctx, o)
	}
	u, err := url.Parse(t.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("URL %q: want http:// or https:// and a host", t.URL)
	}
	web := &http.Client{
		Transport: authorized{t.header()},
		CheckRedirect: func(req *http.Request, via []*http.Request) error { // another host would receive the token
			if req.URL.Host != u.Host || len(via) >= 5 {
				return fmt.Errorf("the server redirects to %s", req.URL.Redacted())
			}
			return nil
		},
	}
	transport := &mcp.StreamableClientTransport{
		Endpoint: t.URL, HTTPClient: web, MaxRetries: -1, DisableStandaloneSSE: o == nil, MaxEventSize: maxMessage,
	}
	if t.OAuth != nil {
		transport.OAuthHandler = t.OAuth
	}
	s, err := t.connect(ctx, o, transport)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", u.Redacted(), unreachable(err))
	}
	return &Session{ClientSession: s}, nil
}

func (t Target) connectCommand(ctx context.Context, o *mcp.ClientOptions) (*Session, error) {
	p, err := start(t)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", t.Command[0], err)
	}
	s := &Session{process: p}
	s.ClientSession, err = t.connect(ctx, o, &mcp.IOTransport{Reader: &messages{Closer: p.stdout, lines: bufio.NewReaderSize(p.stdout, 64<<10), log: p.cmd.Stderr}, Writer: p.stdin, MaxLineLength: maxMessage})
	if err != nil {
		p.end()
		return nil, s.explain(fmt.Errorf("connecting to %s: %w", t.Command[0], noServer(err)))
	}
	return s, nil
}

// Close ends the session and the program of the server.
func (s *Session) Close() {
	if s.process != nil {
		s.process.end() // first, because a write of the session may wait for a stopped program
	}
	_ = s.ClientSession.Close() // the session ends in any case
}

// explain adds the standard error of a command to an error.
func (s *Session) explain(err error) error {
	if err == nil || s.process == nil {
		return err
	}
	if text := strings.TrimSpace(s.process.stderr.String()); text != "" {
		return fmt.Errorf("%w; its standard error: %s", err, text)
	}
	return err
}

// connect initializes a session.
func (t Target) connect(ctx context.Context, o *mcp.ClientOptions, transport mcp.Transport) (*mcp.ClientSession, error) {
	o = cmp.Or(o, &mcp.ClientOptions{})
	o.Capabilities = cmp.Or(o.Capabilities, &mcp.ClientCapabilities{})
	return mcp.NewClient(&mcp.Implementation{Name: "cairn", Version: t.Version}, o).Connect(ctx, transport, nil)
}

// Server returns the name that the server reports.
func (s *Session) Server() string {
	if r := s.InitializeResult(); r != nil && r.ServerInfo != nil {
		return r.ServerInfo.Name
	}
	return ""
}

// ListTools returns one page of tools/list.
func (s *Session) ListTools(ctx context.Context, cursor string) (catalog.Page, error) {
	r, err := s.ClientSession.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
	if err != nil {
		return catalog.Page{}, err
	}
	page := catalog.Page{Next: r.NextCursor}
	for _, t := range r.Tools {
		raw, err := json.Marshal(t)
		if err != nil {
			return page, err
		}
		page.Tools = append(page.Tools, raw)
	}
	return page, nil
}

// legible returns a message with content of an unknown type as text, because the SDK refuses it.
func legible(message []byte) []byte {
	var m struct {
		Result struct{ Content []json.RawMessage }
	}
	_ = json.Unmarshal(message, &m) // other messages have none
	for _, block := range m.Result.Content {
		if block[0] == '{' && json.Unmarshal(fmt.Appendf(nil, `{"content":[%s]}`, block), &mcp.CallToolResult{}) != nil {
			text, _ := json.Marshal(&mcp.TextContent{Text: string(block)}) // never fails
			message = bytes.Replace(message, block, text, 1)
		}
	}
	return message
}

// noServer explains the error of a command that does not speak the protocol.
func noServer(err error) error {
	if s := err.Error(); errors.Is(err, io.EOF) || strings.HasSuffix(s, "EOF") || strings.Contains(s, "broken pipe") || strings.Contains(s, "client is closing") {
		return errors.New("it ended before it answered; run it alone to see why: it must serve MCP on standard input and output")
	}
	return err
}

const otherPath = "an endpoint often ends in /mcp; one in /sse has the older transport HTTP+SSE, which cairn does not speak"

// unreachable shortens the error of a URL that does not answer: the error of the SDK names
// each of its layers.
func unreachable(err error) error {
	if errors.Is(err, errLogin) {
		return errLogin
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return fmt.Errorf("%w; is the server running, and the port right?", e.Err)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	text := err.Error()
	for _, status := range []struct{ sent, hint string }{
		{"Unauthorized", "the server requires a token: name the environment variable that holds it with --token-env, or log in with --oauth"},
		{"Forbidden", "the token may not do this"},
		{"Not Found", "nothing is served at this path; " + otherPath},
		{"Method Not Allowed", "this path does not accept MCP requests; " + otherPath},
	} {
		if strings.HasSuffix(text, ": "+status.sent) {
			return fmt.Errorf("%s; %s", status.sent, status.hint)
		}
	}
	if _, refused, ok := strings.Cut(text, `sending "initialize": `); ok {
		return fmt.Errorf("%s; is an MCP endpoint there?", refused)
	}
	return err
}

// limit is a reader that fails beyond a number of bytes.
type limit struct {
	io.ReadCloser
	left int
}

func (l *limit) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("the server sent more than %d MiB", maxTotal>>20)
	}
	n, err := l.ReadCloser.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// header returns the headers of each request, with the token.
func (t *Target) header() http.Header {
	if t.Token == "" {
		return t.Header
	}
	header := http.Header{"Authorization": {"Bearer " + t.Token}}
	maps.Copy(header, t.Header)
	return header
}

type authorized struct{ header http.Header }

func (a authorized) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	maps.Copy(req.Header, a.header)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = &limit{resp.Body, maxTotal}
	return resp, nil
}
