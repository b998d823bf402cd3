// Package client lists the tools of other MCP servers. It calls none of them.
//
// A server is a command on standard input and output, or a URL. It is an untrusted
// program: the client declares no capabilities and bounds what it reads.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/catalog"
)

// Timeout bounds an Import, from starting the server to its last page.
const Timeout = 30 * time.Second

// maxMessage bounds one message of a server in bytes, maxTotal all of them. A message
// takes some twenty times its size while it is decoded.
const (
	maxMessage = 8 << 20
	maxTotal   = 2 * catalog.MaxLiveBytes
)

// Target is the place of a server: exactly one of Command and URL is set.
type Target struct {
	// Command is a program with its arguments. It inherits the environment.
	Command []string
	// URL is the address of a streamable HTTP endpoint.
	URL string
	// Token is sent to the URL as a bearer token; "" sends none.
	Token string
	// Version is the version of cairn.
	Version string
}

// Import lists all tools of a server within Timeout and ends the connection.
// server is its name in the catalogue; "" takes the name that the server reports.
// When a command fails, the error ends with the command's standard error.
func Import(ctx context.Context, t Target, server string) (*catalog.Batch, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, Timeout, fmt.Errorf("the server took longer than %v", Timeout))
	defer cancel()
	c, err := Dial(ctx, t)
	if err != nil {
		return nil, err
	}
	batch, err := catalog.FromServer(ctx, c, server)
	closeErr := c.Close()
	if err != nil {
		return nil, c.explain(ctx, err)
	}
	if closeErr != nil && !errors.Is(closeErr, errEnded) {
		return nil, closeErr
	}
	return batch, nil
}

// Client is a connection to one server. It is a catalog.Lister.
type Client struct {
	session *mcp.ClientSession
	process *process // nil over HTTP
}

// Dial starts the command or connects to the URL, and initializes the session.
func Dial(ctx context.Context, t Target) (*Client, error) {
	switch {
	case len(t.Command) > 0 && t.URL != "":
		return nil, errors.New("both a command and a URL are given, want one")
	case len(t.Command) > 0:
		p, err := start(t.Command)
		if err != nil {
			return nil, fmt.Errorf("starting %s: %w", t.Command[0], err)
		}
		c, err := dial(ctx, t, &mcp.IOTransport{Reader: bounded(p.stdout), Writer: p.stdin, MaxLineLength: maxMessage})
		if err != nil {
			p.end()
			return nil, (&Client{process: p}).explain(ctx, fmt.Errorf("connecting to %s: %w", t.Command[0], noServer(err)))
		}
		c.process = p
		return c, nil
	}
	u, err := url.Parse(t.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("URL %q: want http:// or https:// and a host", t.URL)
	}
	c, err := dial(ctx, t, &mcp.StreamableClientTransport{
		Endpoint: t.URL, HTTPClient: httpClient(u.Host, t.Token), MaxRetries: -1, DisableStandaloneSSE: true, MaxEventSize: maxMessage,
	})
	if err != nil {
		return nil, (&Client{}).explain(ctx, fmt.Errorf("connecting to %s: %w", u.Redacted(), unreachable(err)))
	}
	return c, nil
}

func dial(ctx context.Context, t Target, transport mcp.Transport) (*Client, error) {
	version := t.Version
	if version == "" {
		version = "devel"
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "cairn", Version: version}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}}).Connect(ctx, transport, nil)
	if err != nil {
		return nil, err
	}
	return &Client{session: session}, nil
}

// Server is the name that the server reports.
func (c *Client) Server() string {
	if r := c.session.InitializeResult(); r != nil && r.ServerInfo != nil {
		return r.ServerInfo.Name
	}
	return ""
}

// ListTools returns one page of tools/list.
func (c *Client) ListTools(ctx context.Context, cursor string) (catalog.Page, error) {
	r, err := c.session.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
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

// Close ends the session and a command's process group.
func (c *Client) Close() error {
	err := c.session.Close()
	if c.process != nil {
		err = c.process.end()
	}
	return err
}

// explain adds the cause of a timeout and a command's standard error.
func (c *Client) explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	if c.process == nil {
		return err
	}
	if said := strings.TrimSpace(c.process.stderr.String()); said != "" {
		return fmt.Errorf("%w; it said: %s", err, said)
	}
	return err
}

// noServer explains the error of a command that does not speak the protocol.
func noServer(err error) error {
	if s := err.Error(); errors.Is(err, io.EOF) || strings.HasSuffix(s, "EOF") || strings.Contains(s, "broken pipe") || strings.Contains(s, "client is closing") {
		return errors.New("it ended before it answered; run it by itself to see why, it has to serve MCP on standard input and output")
	} else if strings.Contains(s, "invalid character") {
		return errors.New("it wrote something else than MCP; standard output must carry the protocol alone")
	}
	return err
}

// unreachable shortens the error of a URL that does not answer: the SDK's error
// names each of its layers.
func unreachable(err error) error {
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return fmt.Errorf("%w; is the server running, and the port right?", e.Err)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	text := err.Error()
	for _, status := range []struct{ sent, hint string }{
		{"Unauthorized", "the server requires a token: name the environment variable that holds it with --token-env"},
		{"Forbidden", "the token may not do this"},
		{"Not Found", "nothing is served at this path; an endpoint often ends in /mcp"},
		{"Method Not Allowed", "this path takes no requests of MCP; an endpoint often ends in /mcp"},
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

// bounded returns a reader that fails beyond maxTotal bytes.
func bounded(r io.ReadCloser) io.ReadCloser { return &limit{ReadCloser: r, left: maxTotal} }

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

// httpClient follows no redirect to another host, which would get the token.
func httpClient(host, token string) *http.Client {
	return &http.Client{
		Transport: authorized{token},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if req.URL.Host != host || len(via) >= 5 {
				return fmt.Errorf("the server redirects to %s", req.URL.Redacted())
			}
			return nil
		},
	}
}

type authorized struct{ token string }

func (a authorized) RoundTrip(req *http.Request) (*http.Response, error) {
	if a.token != "" {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = bounded(resp.Body)
	return resp, nil
}
