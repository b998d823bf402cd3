package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/graphrank"
	"cairn/internal/base/home"
	"cairn/internal/base/owner"
	"cairn/internal/text/secret"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/catalog"
	"cairn/models/bpe"
	"cairn/tools/gateway"
)

type noteArgs struct {
	Path string `json:"path"`
	Text string `json:"text,omitempty"`
}

// counted ends a call of count_note.
var counted = make(chan struct{})

// openProxy returns a proxy to one server with a few tools, which are approved and in the
// catalogue.
func openProxy(t *testing.T) *Proxy {
	t.Helper()
	t.Setenv(home.Variable, t.TempDir())
	sdk := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
	add := func(name, description string, fn func(a noteArgs) string) {
		mcp.AddTool(sdk, &mcp.Tool{Name: name, Description: description}, func(_ context.Context, _ *mcp.CallToolRequest, a noteArgs) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fn(a)}}}, nil, nil
		})
	}
	add("create_note", "Creates a note.", func(a noteArgs) string { return `{"note":"note-4711","key":"sk-abcdefghijklmnopqrstuvwx"}` })
	add("publish_note", "Publishes a note.", func(a noteArgs) string { return "published " + a.Path })
	add("delete_note", "Deletes a note.", func(a noteArgs) string { return "deleted " + a.Path })
	mcp.AddTool(sdk, &mcp.Tool{Name: "number_note", Description: "Numbers a note."}, func(context.Context, *mcp.CallToolRequest, noteArgs) (*mcp.CallToolResult, any, error) {
		return nil, json.RawMessage(`{"number":9007199254740993}`), nil
	})
	mcp.AddTool(sdk, &mcp.Tool{Name: "link_note", Description: "Links a note."}, func(context.Context, *mcp.CallToolRequest, noteArgs) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.ResourceLink{Name: "the note", URI: "note://1"}}}, nil, nil
	})
	mcp.AddTool(sdk, &mcp.Tool{Name: "count_note", Description: "Counts notes."}, func(ctx context.Context, req *mcp.CallToolRequest, _ noteArgs) (*mcp.CallToolResult, any, error) {
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: 3, Total: 10})
		<-counted
		return &mcp.CallToolResult{}, nil, nil
	})
	sdk.AddResource(&mcp.Resource{Name: "note", URI: "note://1"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "note://1", Text: strings.Repeat("line of a note\n", 500) + "sk-abcdefghijklmnopqrstuvwx"}}}, nil
	})
	add("read_note", "Reads a note.", func(a noteArgs) string { return strings.Repeat("line of a long note\n", 2000) + "the end" })
	s := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdk }, nil))
	t.Cleanup(s.Close)
	store, err := gateway.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	server := gateway.Server{Name: "notes", URL: s.URL}
	if err := store.Change(func(all map[string]gateway.Server) error { all["notes"] = server; return nil }); err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Box: emptyBox(t), Gateway: gateway.New(store, gateway.Options{}), Count: (&bpe.Counter{}).CountTokens, Records: t.TempDir()}
	t.Cleanup(p.Gateway.Close)
	if p.Masks, err = secret.New(); err != nil {
		t.Fatal(err)
	}
	batch, err := p.Gateway.Definitions(t.Context(), server)
	if err == nil {
		err = store.Approve(&server, batch.Tools)
	}
	if err == nil {
		err = store.Sync(t.Context(), p.Box)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func initialize(s *session, capabilities string) {
	s.send(request(0, "initialize", `{"protocolVersion":"2025-11-25","capabilities":`+capabilities+`,"clientInfo":{"name":"t","version":"0"}}`))
	s.receive()
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

func TestCallTool(t *testing.T) {
	p := openProxy(t)
	recorder := Record(p.Box, nil)
	s := startSession(t, New((&fake{}).folder(), &Options{Groups: []Group{Auto}, Toolbox: p.Box, Proxy: p, Recorder: recorder}))
	initialize(s, `{}`)
	for i, c := range []struct{ name, args, want string }{
		{"search_tools", `{"query":"create a note and publish it"}`, `notes:create_note`},
		{"call_tool", `{"tool":"create_note","arguments":{"path":"plan.md"}}`, `{"type":"text","text":"{\"note\":\"note-4711\",\"key\":\"sk-***\"}"}`},
		{"call_tool", `{"tool":"notes:publish_note","arguments":{"path":"note-4711"}}`, `published note-4711`},
		{"call_tool", `{"tool":"notes:publish_note","arguments":{"pth":"x"}}`, `\"nearest\":{\"pth\":[\"path\"`},
		{"call_tool", `{"tool":"publish","arguments":{}}`, `Tool Not Found`},
		{"call_tool", `{"tool":"delete_note","arguments":{"path":"x"}}`, "ask them to run `cairn tools permit notes:delete_note allow`"},
		{"read_result", `{"id":"nothing"}`, `no such result`},
	} {
		s.send(request(i+1, "tools/call", `{"name":"`+c.name+`","arguments":`+c.args+`}`))
		if line := s.receive(); !strings.Contains(line, c.want) {
			t.Errorf("%s(%s) is answered with %s, want %s in it", c.name, c.args, line, c.want)
		} else if strings.Contains(line, "plan.md") {
			t.Errorf("%s(%s) is answered with %s: that is the example of another call", c.name, c.args, line)
		}
	}
	s.close()
	recorder.Close()
	// The calls taught the order, the flow of data and an example.
	wantLearnt(t, p.Box, "notes:create_note", "notes:publish_note")
	if example, err := toolbox.ExampleOp.Call(t.Context(), p.Box, "notes:create_note", nil); err != nil || string(example) != `{"path":"plan.md"}` {
		t.Errorf("example %s, %v", example, err)
	}
	_, err := p.Call(t.Context(), "notes:create_note", json.RawMessage(`{"path":7}`), 0, gateway.Peer{})
	if f, ok := err.(*Failure); !ok || string(f.Data["example"].(json.RawMessage)) != `{"path":"plan.md"}` {
		t.Errorf("the error for wrong arguments is %+v, want the example in it", err)
	}
}

// TestProgress: the progress of a server reaches the client with its total.
func TestProgress(t *testing.T) {
	p := openProxy(t)
	s := startSession(t, New((&fake{}).folder(), &Options{Groups: []Group{Auto}, Toolbox: p.Box, Proxy: p}))
	initialize(s, `{}`)
	s.send(request(1, "tools/call", `{"name":"call_tool","arguments":{"tool":"count_note","arguments":{"path":"x"}},"_meta":{"progressToken":"p"}}`))
	var n struct {
		Method string
		Params mcp.ProgressNotificationParams
	}
	line := s.receive()
	if err := json.Unmarshal([]byte(line), &n); err != nil || n.Params.ProgressToken != "p" || n.Params.Progress != 3 || n.Params.Total != 10 {
		t.Errorf("%s, %v, want progress 3 of 10", line, err)
	}
	counted <- struct{}{}
	s.receive()
	s.close()
}

// TestCallNewTool: a tool that the server has added since the approval is refused with the command
// that approves it.
func TestCallNewTool(t *testing.T) {
	p := openProxy(t)
	store := p.Gateway.Store()
	server, err := store.Server("notes")
	if err != nil {
		t.Fatal(err)
	}
	tools, err := store.Approved(&server)
	if err == nil {
		err = store.Approve(&server, slices.DeleteFunc(tools, func(t catalog.Tool) bool { return t.BareName() == "number_note" }))
	}
	if err == nil {
		err = store.Sync(t.Context(), p.Box)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"notes:number_note": "it is new; see it and approve it with `cairn tools approve notes`", "notes:fold_note": "Tool Not Found", "fold_note": "Tool Not Found", "none:fold_note": "Tool Not Found",
	} {
		if _, err := p.Call(t.Context(), name, nil, 0, gateway.Peer{}); !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// TestConfirm: a destructive tool asks the user of a client that can, on standard input and
// output, and runs only after the consent.
func TestConfirm(t *testing.T) {
	p := openProxy(t)
	for answer, want := range map[string]string{"accept": "deleted x", "decline": "declined"} {
		s := startSession(t, New((&fake{}).folder(), &Options{Groups: []Group{Auto}, Toolbox: p.Box, Proxy: p}))
		initialize(s, `{"elicitation":{}}`)
		s.send(request(1, "tools/call", `{"name":"call_tool","arguments":{"tool":"delete_note","arguments":{"path":"x"}}}`))
		var asked struct {
			ID     json.RawMessage
			Method string
			Params struct{ Message string }
		}
		line := s.receive()
		if err := json.Unmarshal([]byte(line), &asked); err != nil || asked.Method != "elicitation/create" || asked.Params.Message != `Call notes:delete_note with {"path":"x"}?` {
			t.Fatalf("%s, %v, want a question", line, err)
		}
		s.send(`{"jsonrpc":"2.0","id":` + string(asked.ID) + `,"result":{"action":"` + answer + `","content":{}}}`)
		if line := s.receive(); !strings.Contains(line, want) {
			t.Errorf("%s is followed by %s, want %s", answer, line, want)
		}
		s.send(`{"jsonrpc":"2.0","id":999,"result":{}}`) // an answer to no question
		s.send(request(2, "ping", `{}`))
		if line := s.receive(); !strings.Contains(line, `"id":2`) {
			t.Errorf("after an answer to no question: %s", line)
		}
		s.close()
	}
}

// TestSecretsInArguments: what a client sends to a tool as a secret reaches the tool, and no file
// of cairn: neither the log of calls, nor examples, nor records of plans.
func TestSecretsInArguments(t *testing.T) {
	const token = "sk-abcdefghijklmnopqrstuvwx"
	p := openProxy(t)
	audit := filepath.Join(t.TempDir(), "calls.jsonl")
	p.Gateway = gateway.New(p.Gateway.Store(), gateway.Options{Audit: audit})
	t.Cleanup(p.Gateway.Close)
	recorder := Record(p.Box, nil)
	s := startSession(t, New((&fake{}).folder(), &Options{Groups: []Group{Auto}, Toolbox: p.Box, Proxy: p, Recorder: recorder}))
	initialize(s, `{}`)
	for i, c := range []string{
		`"search_tools","arguments":{"query":"publish a note"}`,
		`"call_tool","arguments":{"tool":"publish_note","arguments":{"path":"` + token + `"}}`,
		`"run_plan","arguments":{"plan":[{"tool":"publish_note","arguments":{"path":"` + token + `"}}]}`,
	} {
		s.send(request(i+1, "tools/call", `{"name":`+c+`}`))
		if line := s.receive(); strings.Contains(line, token) || i > 0 && !strings.Contains(line, "published sk-***") {
			t.Errorf("%s is answered with %s", c, line)
		}
	}
	s.close()
	recorder.Close()
	if example, err := toolbox.ExampleOp.Call(t.Context(), p.Box, "notes:publish_note", nil); err != nil || strings.Contains(string(example), token) {
		t.Errorf("example %s, %v", example, err)
	}
	for _, dir := range []string{filepath.Dir(audit), p.Records} {
		err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				text, readErr := os.ReadFile(path)
				if err = readErr; strings.Contains(string(text), token) {
					t.Errorf("%s has the secret", path)
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestLongResult: the parts of a long result are its whole text.
func TestLongResult(t *testing.T) {
	p := openProxy(t)
	called, err := p.Call(t.Context(), "read_note", json.RawMessage(`{"path":"x"}`), 500, gateway.Peer{})
	if err != nil || called.Rest == nil {
		t.Fatalf("%+v, %v, want a part", called, err)
	}
	part := func(text string) string {
		text, _, _ = strings.Cut(text, "\n[cut: ")
		return text
	}
	whole := part(called.Content[0].(*mcp.TextContent).Text)
	if n := p.Count(whole); n > 500 || n < 300 {
		t.Errorf("the first part has %d tokens, want at most 500", n)
	}
	read := p.tools()[1]
	for parts := 1; len(whole) < called.Rest.Size; parts++ {
		args, _ := json.Marshal(map[string]any{"id": called.Rest.ID, "offset": len(whole), "max_tokens": 5000})
		answer, err := read.call(t.Context(), args)
		if err != nil || parts > 20 {
			t.Fatalf("part %d: %v", parts, err)
		}
		whole += part(string(answer.(text)))
	}
	if whole != called.Text || !strings.HasSuffix(whole, "the end") {
		t.Errorf("the parts have %d bytes, the text %d", len(whole), len(called.Text))
	}
	for range 300 {
		p.keep(strings.Repeat("x", 1<<20), "")
	}
	if p.size > maxResults || p.results.Len() > 16 {
		t.Errorf("%d results of %d bytes are kept", p.results.Len(), p.size)
	}
	if one, rest := p.fit(strings.Repeat("é", 10_000), 0, 100); rest == nil || len(one)%2 != 0 {
		t.Errorf("a text without lines is cut after %d bytes", len(one))
	}
}

func TestProxyNeedsAdmin(t *testing.T) {
	call := (&Proxy{}).tools()[0]
	for scopes, ok := range map[string]bool{"": false, "write": false, "write admin": true} {
		extra := &mcp.RequestExtra{TokenInfo: &auth.TokenInfo{Scopes: strings.Fields(scopes)}}
		if f := allowed(extra, call, nil); (f == nil) != ok {
			t.Errorf("a token with the scopes %q: %v", scopes, f)
		}
	}
}

// wantLearnt checks that use taught that data flows from one tool to another.
func wantLearnt(t *testing.T, box *owner.Folder, from, to string) {
	t.Helper()
	err := new(toolbox.Graph).Read(t.Context(), box, func(g *graphrank.Graph) {
		for e := range g.Edges() {
			if e.From == from && e.To == to && e.Type == graphrank.Dependency {
				return
			}
		}
		t.Errorf("the flow of data from %s to %s was not learnt", from, to)
	})
	if err != nil {
		t.Error(err)
	}
}

// TestOtherContent: the text of an embedded resource is text with secrets masked, and content
// that is too long is named.
func TestOtherContent(t *testing.T) {
	masks, err := secret.New()
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Masks: masks}
	text, other := p.read(&mcp.CallToolResult{Content: []mcp.Content{
		&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "x://y", Text: "key sk-abcdefghijklmnopqrstuvwx"}},
		&mcp.ImageContent{MIMEType: "image/png", Data: make([]byte, maxPictures)},
		&mcp.ImageContent{MIMEType: "image/png", Data: []byte("small")},
	}})
	if len(other) != 1 || !strings.HasPrefix(text, "x://y:\nkey sk-") || strings.Contains(text, "uvwx") || !strings.Contains(text, "[left out: content of ") {
		t.Errorf("%q and %d others, want a masked text, a note and the small picture", text, len(other))
	}
}

// TestPictureOnce: structured content that repeats a picture does not repeat it in the text.
func TestPictureOnce(t *testing.T) {
	p := openProxy(t)
	data := []byte("the bytes of a picture")
	text, other := p.read(&mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.ImageContent{Data: data, MIMEType: "image/png"}},
		StructuredContent: map[string]any{"content": []any{map[string]any{"data": data, "mimeType": "image/png"}}, "width": 3},
	})
	if want := `{"content":[{"data":"…","mimeType":"image/png"}],"width":3}`; text != want || len(other) != 1 {
		t.Errorf("the text is %q with %d more, want %q with 1", text, len(other), want)
	}
}

// TestLinkedResource: a client reads a resource that a result links with the ID of the result, in
// parts, with secrets masked.
func TestLinkedResource(t *testing.T) {
	p := openProxy(t)
	called, err := p.Call(t.Context(), "link_note", json.RawMessage(`{"path":"x"}`), 0, gateway.Peer{})
	if err != nil || len(called.Content) != 2 || called.Text != "the note: note://1" {
		t.Fatalf("%+v, %v, want the link as text and as content", called, err)
	}
	var args readResultArgs
	note := called.Content[0].(*mcp.TextContent).Text
	_, note, _ = strings.Cut(note, "[read_result ")
	note, _, _ = strings.Cut(note, "…")
	if err := json.Unmarshal([]byte(note+`"note://1"}`), &args); err != nil {
		t.Fatal(note, err)
	}
	tokens := integer(1000)
	args.MaxTokens = &tokens
	answer, err := p.readResult(t.Context(), args)
	read, ok := answer.(*Called)
	if err != nil || !ok || read.Rest == nil || !strings.HasPrefix(read.Text, "note://1:\nline of") || strings.Contains(read.Text, "uvwx") {
		t.Errorf("%.200v, %v, want the beginning of the note", answer, err)
	}
	args.URI = "note://2"
	if answer, err := p.readResult(t.Context(), args); err == nil || !strings.Contains(err.Error(), "links no such resource") {
		t.Errorf("a resource that the result does not link: %+v, %v", answer, err)
	}
	args.ID = "guessed@notes"
	if answer, err := p.readResult(t.Context(), args); err == nil {
		t.Errorf("an unknown ID: %+v", answer)
	}
}
