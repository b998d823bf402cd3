//lint:file-ignore SA1019 revision 2026-07-28 deprecates logging, which earlier servers use

package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/base/home"
	"cairn/internal/text/fit"
	"cairn/internal/toolbox/catalog"
)

// Peer is the client for which a call is made. Nil functions mean that it cannot do it.
type Peer struct {
	// Name identifies the client in the log of calls.
	Name string
	// Again means that the client repeats a call with the answer to a question.
	Again    bool
	Progress func(mcp.ProgressNotificationParams) // without a token
	Log      func(*mcp.LoggingMessageParams)
	// Elicit asks the user a question of a server during a call. Confirm asks whether a call
	// may begin.
	Elicit  func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error)
	Confirm func(ctx context.Context, question string) (bool, error)
}

// handlers returns the handlers of messages that a server sends.
func (l *live) handlers() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		ElicitationHandler:          l.elicit,
		ProgressNotificationHandler: l.progress,
		LoggingMessageHandler:       l.log,
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.listed = time.Time{}
		},
	}
}

// only returns the call in progress if there is exactly one, else nil: messages of earlier
// revisions do not name the call that they belong to.
func (l *live) only() *running {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		if len(l.calls) == 1 {
			return c
		}
	}
	return nil
}

// count counts a message of a call, and reports whether it is one of the first.
func (c *running) count(n *int, limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	*n++
	return *n <= limit
}

// progress forwards progress to the client of its call.
func (l *live) progress(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
	token, _ := req.Params.ProgressToken.(string)
	l.mu.Lock()
	c := l.calls[token]
	l.mu.Unlock()
	if c == nil || c.peer.Progress == nil || !c.count(&c.notices, maxNotices) {
		return
	}
	c.peer.Progress(mcp.ProgressNotificationParams{Message: fit.Cut(req.Params.Message, maxQuestion), Progress: req.Params.Progress, Total: req.Params.Total})
}

// log forwards a log message to the client of the only call.
func (l *live) log(_ context.Context, req *mcp.LoggingMessageRequest) {
	if c := l.only(); c != nil && c.peer.Log != nil && c.count(&c.notices, maxNotices) {
		c.peer.Log(req.Params)
	}
}

// elicit forwards a question to the user of its call, and declines it if the call is unknown
// or the client cannot ask.
func (l *live) elicit(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	c, _ := ctx.Value(runningKey{}).(*running)
	if c == nil {
		c = l.only()
	}
	declined := &mcp.ElicitResult{Action: "decline"}
	if c == nil || c.peer.Elicit == nil || req.Params.Mode == "url" || !c.count(&c.questions, maxQuestions) {
		return declined, nil
	}
	l.mu.Lock()
	name := l.server.Name
	l.mu.Unlock()
	p := *req.Params
	p.Meta = nil
	p.Message = fmt.Sprintf("The server %s asks: %s", name, fit.Cut(p.Message, maxQuestion))
	r, err := c.peer.Elicit(ctx, &p)
	if err != nil {
		return declined, nil
	}
	return r, nil
}

// maxLog bounds the log of a server in bytes. The file before it is kept.
const maxLog = 256 << 10

// serverLog appends the standard error of a server to a file.
type serverLog struct {
	path string
	mu   sync.Mutex
}

func (l *serverLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	appendBounded(l.path, p, maxLog) // a server must not stop because of its log
	return len(p), nil
}

// appendBounded appends to a private file. Beyond limit bytes it first renames the file to
// NAME.1, so that both together stay below twice the limit.
func appendBounded(path string, p []byte, limit int64) {
	if home.Private(filepath.Dir(path)) != nil {
		return
	}
	if info, err := os.Lstat(path); err == nil && info.Size() > limit {
		_ = os.Rename(path, path+".1")
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_, _ = f.Write(p[max(0, len(p)-int(limit)):])
	f.Close()
}

// maxAudit bounds the log of calls in bytes; the file before it is kept.
const maxAudit = 4 << 20

// AuditFile returns the path of the log of calls of a folder.
func AuditFile(place home.Place) string { return filepath.Join(place.Records, "calls.jsonl") }

// Entry is a line of the log of calls.
type Entry struct {
	Time      time.Time `json:"time"`
	Caller    string    `json:"caller,omitempty"`
	Tool      string    `json:"tool"`
	Arguments string    `json:"arguments"` // the SHA-256 of the JSON
	Outcome   string    `json:"outcome"`
	MS        int64     `json:"ms"`
}

// audit logs a call. A log that cannot be written does not prevent calls.
func (g *Gateway) audit(began time.Time, c Call, r *mcp.CallToolResult, err error) {
	if g.o.Audit == "" {
		return
	}
	line, _ := json.Marshal(Entry{ // never fails: it has only texts and numbers
		Time: began.UTC(), Caller: c.Peer.Name, Tool: c.Server + ":" + c.Tool,
		Arguments: fmt.Sprintf("%x", sha256.Sum256(c.Arguments)), Outcome: outcome(r, err), MS: g.o.Now().Sub(began).Milliseconds(),
	})
	appendBounded(g.o.Audit, append(line, '\n'), maxAudit)
}

// outcome returns the word for what came of a call.
func outcome(r *mcp.CallToolResult, err error) string {
	refused, ok := errors.AsType[*Error](err)
	_, invalid := errors.AsType[*catalog.ArgumentError](err)
	switch {
	case err == nil && r.IsError:
		return "error"
	case err == nil:
		return "ok"
	case ok:
		return refused.Outcome
	case invalid:
		return "invalid"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	}
	return "asked" // the client repeats the call with the answer
}
