//lint:file-ignore SA1019 revision 2026-07-28 deprecates logging, which earlier clients use

package tools

import (
	"context"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/tools/gateway"
	"cairn/tools/mcptask"
)

// offerLogging declares that cairn forwards the log messages of servers.
func (s *Server) offerLogging(c *mcp.ServerCapabilities) {
	if p := s.options.Proxy; p != nil && p.Gateway.Configured() {
		c.Logging = &mcp.LoggingCapabilities{}
	}
}

// peerOf returns the client of req, for which calls of other servers are made.
func peerOf(ctx context.Context, client string, req *mcp.CallToolRequest) gateway.Peer {
	p := gateway.Peer{Name: client, Again: len(req.Params.InputResponses) > 0}
	p.Log = func(m *mcp.LoggingMessageParams) { _ = req.Session.Log(ctx, m) } // an error means that the client has left
	if token := req.Params.GetProgressToken(); token != nil {
		p.Progress = func(n mcp.ProgressNotificationParams) {
			n.ProgressToken = token
			_ = req.Session.NotifyProgress(ctx, &n)
		}
	}
	if mcptask.Capabilities(req).Elicitation != nil {
		p.Confirm = func(_ context.Context, question string) (bool, error) { return confirmed(req, question) }
		if i := req.Session.InitializeParams(); i != nil && i.ProtocolVersion < firstStateless {
			p.Elicit = req.Session.Elicit
			p.Confirm = func(ctx context.Context, question string) (bool, error) {
				r, err := req.Session.Elicit(ctx, elicitation(question))
				return err == nil && r.Action == "accept", err
			}
		}
	}
	return p
}

const confirmKey = "confirm"

// confirmed returns the user's answer to a question. Without one it returns the request for
// it as an error: the client then makes the call again, with the answer.
func confirmed(req *mcp.CallToolRequest, question string) (bool, error) {
	var asked []string // by this call so far; the client has agreed to all but the last
	if r, ok := req.Params.InputResponses[confirmKey].(*mcp.ElicitResult); ok {
		asked = strings.Split(req.Params.RequestState, "\x00")
		last, now := len(asked)-1, slices.Index(asked, question)
		if r.Action != "accept" || now >= 0 {
			return now >= 0 && now < last || r.Action == "accept", nil
		}
	}
	return false, &Failure{Message: question, input: mcp.InputRequestMap{confirmKey: elicitation(question)}, asked: strings.Join(append(asked, question), "\x00")}
}

// elicitation returns the request for the user's answer to a question.
func elicitation(question string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Mode: "form", Message: question, RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}}
}
