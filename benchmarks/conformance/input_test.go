//lint:file-ignore SA1019 the suite asks for logging, sampling and roots, which revision 2026-07-28 deprecates

package conformance

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Results that ask for input (revision 2026-07-28): the server keeps nothing
// between two rounds. The client returns the server's state, which is signed so
// that the client cannot change it.

// form asks the user for one field.
func form(message, field, kind string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Message: message, RequestedSchema: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{%q:{"type":%q}},"required":[%q]}`, field, kind, field))}
}

func askModel(question string) *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{Messages: []*mcp.SamplingMessage{{Role: "user", Content: text("%s", question)}}, MaxTokens: 100}
}

// accepted returns the user's answer to a form, nil if there is none.
func accepted(r mcp.InputResponseMap, key string) map[string]any {
	if e, ok := r[key].(*mcp.ElicitResult); ok && e != nil && e.Action == "accept" {
		return e.Content
	}
	return nil
}

// modelSaid returns the text of the model's answer.
func modelSaid(r mcp.InputResponseMap, key string) (string, bool) {
	m, ok := r[key].(*mcp.CreateMessageWithToolsResult)
	if !ok || m == nil {
		return "", false
	}
	for _, c := range m.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			return t.Text, true
		}
	}
	return "", true
}

func roots(r mcp.InputResponseMap, key string) ([]*mcp.Root, bool) {
	l, ok := r[key].(*mcp.ListRootsResult)
	if !ok || l == nil {
		return nil, false
	}
	return l.Roots, true
}

// signer signs states and checks them.
type signer [32]byte

func newSigner() *signer {
	var s signer
	rand.Read(s[:]) // never fails
	return &s
}

func (s *signer) mark(state string) string {
	h := hmac.New(sha256.New, s[:])
	h.Write([]byte(state))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

func (s *signer) seal(state string) string { return s.mark(state) + "." + state }

// open returns the state of the previous round, "" in the first round. It refuses a
// state that this server did not sign.
func (s *signer) open(sealed string) (string, error) {
	if sealed == "" {
		return "", nil
	}
	mark, state, _ := strings.Cut(sealed, ".")
	if !hmac.Equal([]byte(mark), []byte(s.mark(state))) {
		return "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "requestState is not one this server made"}
	}
	return state, nil
}

func want(state string, requests mcp.InputRequestMap) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{InputRequests: requests, RequestState: state}, nil
}

func addInputTools(server *mcp.Server) {
	sign := newSigner()
	add := func(name string, call func(p *mcp.CallToolParamsRaw, in mcp.InputResponseMap, req *mcp.CallToolRequest) (*mcp.CallToolResult, error)) {
		server.AddTool(&mcp.Tool{Name: "test_input_required_result_" + name, Description: "asks for input", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return call(req.Params, req.Params.InputResponses, req)
			})
	}
	yourName := form("What is your name?", "name", "string")
	add("elicitation", func(_ *mcp.CallToolParamsRaw, in mcp.InputResponseMap, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if name, _ := accepted(in, "user_name")["name"].(string); name != "" {
			return answer("Hello, %s!", name)
		}
		return want("", mcp.InputRequestMap{"user_name": yourName})
	})
	add("sampling", func(_ *mcp.CallToolParamsRaw, in mcp.InputResponseMap, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if said, ok := modelSaid(in, "capital_question"); ok {
			return answer("Sampling response: %s", said)
		}
		return want("", mcp.InputRequestMap{"capital_question": askModel("What is the capital of France?")})
	})
	add("list_roots", func(_ *mcp.CallToolParamsRaw, in mcp.InputResponseMap, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if list, ok := roots(in, "client_roots"); ok {
			var uris []string
			for _, r := range list {
				uris = append(uris, r.URI)
			}
			return answer("Client exposed %d root(s): %s", len(list), strings.Join(uris, ", "))
		}
		return want("", mcp.InputRequestMap{"client_roots": &mcp.ListRootsParams{}})
	})
	confirm := func(p *mcp.CallToolParamsRaw, in mcp.InputResponseMap, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		state, err := sign.open(p.RequestState)
		if err != nil {
			return nil, err
		}
		if accepted(in, "confirm") != nil && state == "asked" {
			return answer("state-ok: requestState received and confirmation accepted")
		}
		return want(sign.seal("asked"), mcp.InputRequestMap{"confirm": form("Please confirm", "ok", "boolean")})
	}
	add("request_state", confirm)
	add("tampered_state", confirm)
	add("multiple_inputs", func(p *mcp.CallToolParamsRaw, in mcp.InputResponseMap, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if _, err := sign.open(p.RequestState); err != nil {
			return nil, err
		}
		name, _ := accepted(in, "user_name")["name"].(string)
		said, greeted := modelSaid(in, "greeting")
		list, listed := roots(in, "client_roots")
		if name != "" && greeted && listed {
			return answer("%s %s, %d root(s) visible", said, name, len(list))
		}
		return want(sign.seal("asked"), mcp.InputRequestMap{"user_name": yourName, "greeting": askModel("Generate a greeting"), "client_roots": &mcp.ListRootsParams{}})
	})
	add("multi_round", func(p *mcp.CallToolParamsRaw, in mcp.InputResponseMap, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		state, err := sign.open(p.RequestState)
		if err != nil {
			return nil, err
		}
		round, name, _ := strings.Cut(state, " ")
		switch round {
		case "":
			return want(sign.seal("1"), mcp.InputRequestMap{"step1": yourName})
		case "1":
			name, _ = accepted(in, "step1")["name"].(string)
			return want(sign.seal("2 "+name), mcp.InputRequestMap{"step2": form("What is your favorite color?", "color", "string")})
		}
		color, _ := accepted(in, "step2")["color"].(string)
		return answer("Multi-round complete: %s likes %s", name, color)
	})
	add("capabilities", func(_ *mcp.CallToolParamsRaw, in mcp.InputResponseMap, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if len(in) > 0 {
			return answer("the input has arrived")
		}
		c, ask := req.ClientCapabilities(), mcp.InputRequestMap{}
		if c != nil && c.Elicitation != nil {
			ask["user_name"] = yourName
		}
		if c != nil && c.Sampling != nil {
			ask["greeting"] = askModel("Generate a short greeting")
		}
		if c != nil && (c.RootsV2 != nil || c.Roots.ListChanged) {
			ask["client_roots"] = &mcp.ListRootsParams{}
		}
		if len(ask) == 0 {
			return answer("the client declares nothing that could be asked for")
		}
		return want("", ask)
	})
}
