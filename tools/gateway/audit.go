package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/base/home"
	"cairn/internal/toolbox/catalog"
)

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
