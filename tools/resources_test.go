package tools

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/folder/index"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/catalog"
)

func TestResourceURI(t *testing.T) {
	for _, c := range []struct{ path, anchor, uri string }{
		{"docs/auth.md", "", "cairn://docs/auth.md"},
		{"docs/auth.md", "login-flow", "cairn://docs/auth.md#login-flow"},
		{"docs/with space.md", "über", "cairn://docs/with%20space.md#%C3%BCber"},
		{"a#b%.md", "c", "cairn://a%23b%25.md#c"},
	} {
		if got := resourceURI(c.path, c.anchor); got != c.uri {
			t.Errorf("resourceURI(%q, %q) = %q, want %q", c.path, c.anchor, got, c.uri)
		}
		if path, anchor, ok := parseURI(c.uri); path != c.path || anchor != c.anchor || !ok {
			t.Errorf("parseURI(%q) = %q, %q, %v, want %q, %q", c.uri, path, anchor, ok, c.path, c.anchor)
		}
	}
	for _, uri := range []string{"", "cairn://", "cairn://%zz", "file:///etc/passwd", "cairn://#x"} {
		if path, _, ok := parseURI(uri); ok {
			t.Errorf("parseURI(%q) = %q, want none", uri, path)
		}
	}
}

func TestResources(t *testing.T) {
	_, server := startHTTP(t, (&fake{}).folder(), nil, nil)
	for _, session := range []*mcp.ClientSession{connectHTTP(t, server.URL, "", nil)} {
		var uris []string
		for r, err := range session.Resources(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			uris = append(uris, r.URI)
		}
		if want := []string{"skill://cairn/SKILL.md", "cairn://docs/auth.md", "cairn://docs/with%20space.md", "cairn://notes/a%23b.md"}; !slices.Equal(uris, want) {
			t.Errorf("resources %q, want %q", uris, want)
		}
		list, err := session.ListResourceTemplates(t.Context(), nil)
		if err != nil || len(list.ResourceTemplates) != 1 || list.ResourceTemplates[0].URITemplate != documentTemplate {
			t.Errorf("templates %v, %v, want %s", list, err, documentTemplate)
		}
		for uri, want := range map[string]string{
			"cairn://docs/auth.md": "# Auth", "cairn://docs/with%20space.md": "# Auth", "cairn://docs/auth.md#login-flow": "# Auth",
		} {
			r, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if err != nil || !strings.HasPrefix(r.Contents[0].Text, want) || r.Contents[0].URI != uri || r.Contents[0].MIMEType != "text/markdown" {
				t.Errorf("reading %s: %v, %v", uri, r, err)
			}
		}
		for uri, want := range map[string]string{
			"cairn://docs/missing.md": "not found", "cairn://%zz": "not found", "other://x": "not found", "cairn://../x.md": "out of the workspace", "cairn://docs/huge.md": "Token Limit",
		} {
			if r, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("reading %s: %v, %v, want %q", uri, r, err, want)
			}
		}
		if _, err := session.ListResources(t.Context(), &mcp.ListResourcesParams{Cursor: "nonsense"}); err == nil || !strings.Contains(err.Error(), "cursor") {
			t.Errorf("a cursor of somewhere else: %v", err)
		}
	}
}

// TestResourcesPages: the pages list every document once.
func TestResourcesPages(t *testing.T) {
	const n = 2*resourcesPage + 7
	e := &fake{documents: many(n)}
	_, server := startHTTP(t, e.folder(), nil, nil)
	session := connectHTTP(t, server.URL, "", nil)
	seen := map[string]bool{}
	for r, err := range session.Resources(t.Context(), nil) {
		if err != nil || seen[r.URI] {
			t.Fatalf("%v, %v, want each once", r, err)
		}
		seen[r.URI] = true
	}
	if len(seen) != n+1 { // with the skill
		t.Errorf("%d resources, want %d", len(seen), n+1)
	}
}

// many lists n documents.
func many(n int) func(index.DocumentsRequest) *index.Documents {
	return func(r index.DocumentsRequest) *index.Documents {
		out := &index.Documents{}
		for i := range n {
			path := "d" + string(rune('0'+i/100)) + string(rune('0'+i/10%10)) + string(rune('0'+i%10)) + ".md"
			if path <= r.After {
				continue
			}
			if out.More = len(out.Documents) == r.Limit; out.More {
				break
			}
			out.Documents = append(out.Documents, index.DocumentEntry{Path: path})
		}
		return out
	}
}

// events is an engine whose changes the test triggers.
type events struct {
	fake
	tell chan index.WatchEvent
}

func (e *events) Watch(ctx context.Context, fn func(index.WatchEvent)) error {
	for {
		select {
		case ev := <-e.tell:
			fn(ev)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// TestChangesAreTold: a client hears that the list has changed, and that a document
// it subscribed to has.
func TestChangesAreTold(t *testing.T) {
	e := &events{tell: make(chan index.WatchEvent)}
	_, server := startHTTP(t, e.folder(), &Options{Watch: e.Watch}, nil)
	list, updated := make(chan struct{}, 8), make(chan string, 8)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "0"}, &mcp.ClientOptions{
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { list <- struct{}{} },
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
			updated <- r.Params.URI
		},
	})
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: server.URL}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "cairn://docs/auth.md"}); err != nil {
		t.Fatal(err)
	}
	e.tell <- index.WatchEvent{Paths: []string{"docs/auth.md", "docs/other.md"}, Changed: 2}
	for range 2 {
		select {
		case <-list:
			list = nil
		case uri := <-updated:
			if uri != "cairn://docs/auth.md" {
				t.Errorf("told of %s, want only what was asked about", uri)
			}
		}
	}
}

// TestChangesOverStdio: a session hears of changes, and so does a subscription of
// the stateless revision, which does not delay the end; a client of bare requests
// gets only their answers.
func TestChangesOverStdio(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}`
	for _, c := range []struct {
		name  string
		begin []string
		heard int    // lines that follow from begin
		want  string // the note of a change; "" for none
	}{
		{"bare requests", nil, 0, ""},
		{"a session", []string{request(1, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`), `{"jsonrpc":"2.0","method":"notifications/initialized"}`}, 1, `"method":"notifications/resources/list_changed"`},
		{"a stateless client", []string{request(1, "tools/list", `{`+meta+`}`)}, 1, ""},
		{"a subscription", []string{request(1, "subscriptions/listen", `{`+meta+`,"notifications":{"resourcesListChanged":true}}`)}, 1, `"io.modelcontextprotocol/subscriptionId":1`},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := &events{tell: make(chan index.WatchEvent)}
			s := newSession(t, e.folder(), &Options{Watch: e.Watch})
			if len(c.begin) > 0 {
				s.send(c.begin...)
			}
			for range c.heard {
				s.receive()
			}
			synctest.Wait()
			e.tell <- index.WatchEvent{Paths: []string{"docs/auth.md"}, Changed: 1}
			if c.want != "" {
				if line := s.receive(); !strings.Contains(line, c.want) {
					t.Errorf("%s: %s, want %s", c.name, line, c.want)
				}
			}
			time.Sleep(time.Minute) // for a note to come
			s.send(request(7, "read_context", `{"query":"auth"}`))
			if line := s.receive(); !strings.Contains(line, `"id":7`) {
				t.Errorf("%s: %s, want the answer to request 7", c.name, line)
			}
			begin := time.Now()
			s.close()
			if took := time.Since(begin); took > grace {
				t.Errorf("%s: %v to end", c.name, took)
			}
		})
	}
}

func TestPrompts(t *testing.T) {
	_, server := startHTTP(t, (&fake{}).folder(), nil, nil)
	session := connectHTTP(t, server.URL, "", nil)
	list, err := session.ListPrompts(t.Context(), nil)
	if err != nil || len(list.Prompts) != 3 {
		t.Fatalf("prompts: %v, %v, want 3", list, err)
	}
	for _, c := range []struct {
		name string
		args map[string]string
		want string // part of the first message
		n    int
	}{
		{"find", map[string]string{"question": "auth"}, "from the documents of this workspace: auth", 2},
		{"explain_section", map[string]string{"path": "docs/auth.md", "anchor": "login-flow"}, "Explain the section", 2},
		{"plan_task", map[string]string{"goal": "ship", "tool": "x/y"}, "The plan must use the tool x/y", 1},
	} {
		r, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: c.name, Arguments: c.args})
		if err != nil || len(r.Messages) != c.n || !strings.Contains(r.Messages[0].Content.(*mcp.TextContent).Text, c.want) {
			t.Errorf("prompt %s: %+v, %v, want %d messages with %q", c.name, r, err, c.n, c.want)
		}
	}
	for name, args := range map[string]map[string]string{"find": {}, "explain_section": {"path": "docs/missing.md"}, "nothing": {}} {
		if _, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: name, Arguments: args}); err == nil {
			t.Errorf("prompt %s with %v: no error", name, args)
		}
	}
}

func TestComplete(t *testing.T) {
	box := emptyBox(t)
	var known []catalog.Tool
	for _, name := range []string{"commit", "clone", "push"} {
		tool, err := catalog.New(catalog.Tool{Server: "git", Name: name})
		if err != nil {
			t.Fatal(err)
		}
		known = append(known, tool)
	}
	if _, err := toolbox.ImportOp.Call(t.Context(), box, toolbox.ImportRequest{Source: "git", Tools: known}, nil); err != nil {
		t.Fatal(err)
	}
	_, server := startHTTP(t, (&fake{}).folder(), &Options{Toolbox: box}, nil)
	session := connectHTTP(t, server.URL, "", nil)
	for _, c := range []struct {
		ref             mcp.CompleteReference
		argument, value string
		context         map[string]string
		want            string
	}{
		{mcp.CompleteReference{Type: "ref/resource", URI: documentTemplate}, "path", "docs/", nil, "docs/auth.md|docs/with space.md"},
		{mcp.CompleteReference{Type: "ref/resource", URI: documentTemplate}, "path", "AUTH", nil, "docs/auth.md"},
		{mcp.CompleteReference{Type: "ref/resource", URI: documentTemplate}, "anchor", "", map[string]string{"path": "docs/auth.md"}, "auth|login-flow"},
		{mcp.CompleteReference{Type: "ref/prompt", Name: "explain_section"}, "anchor", "Log", map[string]string{"path": "docs/auth.md"}, "login-flow"},
		{mcp.CompleteReference{Type: "ref/prompt", Name: "explain_section"}, "anchor", "", map[string]string{"path": "docs/none.md"}, ""},
		{mcp.CompleteReference{Type: "ref/prompt", Name: "plan_task"}, "tool", "c", nil, "git:clone|git:commit"},
		{mcp.CompleteReference{Type: "ref/prompt", Name: "find"}, "question", "x", nil, ""},
		{mcp.CompleteReference{Type: "ref/prompt", Name: "nothing"}, "path", "", nil, ""},
	} {
		p := &mcp.CompleteParams{Ref: &c.ref, Argument: mcp.CompleteParamsArgument{Name: c.argument, Value: c.value}}
		if c.context != nil {
			p.Context = &mcp.CompleteContext{Arguments: c.context}
		}
		r, err := session.Complete(t.Context(), p)
		if err != nil {
			t.Errorf("%s of %v: %v", c.argument, c.ref, err)
			continue
		}
		if got := strings.Join(r.Completion.Values, "|"); got != c.want {
			t.Errorf("%s %q of %v: %q, want %q", c.argument, c.value, c.ref, got, c.want)
		}
	}
}
