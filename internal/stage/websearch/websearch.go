// Package websearch implements the stage web_search of question tasks. The search engine
// answers HTTP requests with JSON, such as SearXNG, or is a command that prints JSON. Its
// results are untrusted: they are limited in size and quoted like passages.
package websearch

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"time"

	"cairn/internal/stage"
)

// The limits of a search.
const (
	timeout    = 20 * time.Second
	maxBody    = 2 << 20 // bytes of an answer
	maxResults = 8
)

// placeholder is replaced by the query in an address.
const placeholder = "{query}"

// Client is a stage.WebSearcher. It is safe for concurrent use.
type Client struct {
	client  http.Client
	address string   // with the placeholder; "" for a command
	name    string   // the host or the command, for errors, which must not contain keys
	command []string // takes the query as its last argument
}

// New returns a client of a search engine. spec is an address such as
// https://search.example.com/search?q={query}&format=json, or a command with its arguments,
// separated by blanks. New neither connects to the address nor runs the command. It returns
// nil, nil if spec is blank.
func New(spec string) (*Client, error) {
	if spec = strings.TrimSpace(spec); spec == "" {
		return nil, nil
	}
	if !strings.Contains(spec, "://") {
		command := strings.Fields(spec)
		return &Client{command: command, name: command[0]}, nil
	}
	u, err := url.Parse(strings.ReplaceAll(spec, placeholder, "q"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || !strings.Contains(spec, placeholder) {
		return nil, errors.New("want the address of a search engine with {query}, such as https://search.example.com/search?q={query}&format=json")
	}
	c := &Client{address: spec, name: u.Host}
	c.client.CheckRedirect = func(*http.Request, []*http.Request) error {
		return errors.New("the search engine redirects; configure the final address")
	}
	return c, nil
}

// SearchWeb implements stage.WebSearcher.
func (c *Client) SearchWeb(ctx context.Context, query string) (*stage.WebResults, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	fetch := c.get
	if c.command != nil {
		fetch = c.run
	}
	text, err := fetch(ctx, query)
	var results *stage.WebResults
	if err == nil {
		results, err = parse(text)
	}
	if err != nil {
		return nil, fmt.Errorf("searching the web with %s: %w", c.name, err)
	}
	return results, nil
}

func (c *Client) get(ctx context.Context, query string) ([]byte, error) {
	address := strings.ReplaceAll(c.address, placeholder, url.QueryEscape(query))
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("the address is not valid")
	}
	r.Header.Set("Accept", "application/json")
	resp, err := c.client.Do(r)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err // without the address, which may contain a key
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New(resp.Status)
	}
	return io.ReadAll(io.LimitReader(resp.Body, maxBody))
}

func (c *Client) run(ctx context.Context, query string) ([]byte, error) {
	// The command would parse a query that begins with a dash as an option.
	query = strings.TrimLeft(query, "- \t")
	cmd := exec.CommandContext(ctx, c.command[0], append(c.command[1:len(c.command):len(c.command)], query)...)
	cmd.WaitDelay = time.Second
	out := &limited{}
	cmd.Stdout = out
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// limited is a buffer of at most maxBody bytes.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxBody {
		return 0, fmt.Errorf("more than %d bytes of results", maxBody)
	}
	return l.Buffer.Write(p)
}

// found is a result with the field names of several search engines.
type found struct {
	URL, Link                           string
	Title                               string
	Text, Content, Snippet, Description string
}

// parse decodes the results: a list, or an object with a list in "results", "items" or
// "web.results".
func parse(text []byte) (*stage.WebResults, error) {
	var in struct {
		Results, Items []found
		Web            struct{ Results []found }
	}
	err := json.Unmarshal(text, &in)
	list := append(append(in.Results, in.Items...), in.Web.Results...)
	if err != nil && json.Unmarshal(text, &list) != nil {
		return nil, errors.New("the answer is not a JSON list of results")
	}
	w := &stage.WebResults{Results: []stage.WebResult{}}
	for _, f := range list {
		address := cmp.Or(f.URL, f.Link)
		if !strings.HasPrefix(address, "https://") && !strings.HasPrefix(address, "http://") || len(w.Results) == maxResults {
			continue
		}
		w.Results = append(w.Results, stage.WebResult{URL: address, Title: f.Title, Text: cmp.Or(f.Text, f.Content, f.Snippet, f.Description)})
	}
	return w, nil
}
