package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"cairn/retriever"
)

// A client gets back exactly the id it sent, whether the SDK, a direct call or the
// connection answers.
func TestIDsAreReturnedAsWritten(t *testing.T) {
	for _, id := range []string{
		"0", "-1", "7", `"a"`, `""`, `"7"`, "9007199254740993", "1700000000000000001", "18446744073709551615",
		"1.5", "1e3", "-0", `"\u0000x"`, `"\u00001"`,
	} {
		for _, call := range []string{
			`"method":"ping"`, `"method":"read_context","params":{"query":"a"}`, `"method":"read_context","params":{"query":""}`,
			`"method":"tools/call","params":{"name":"none"}`, `"method":"none"`,
		} {
			s := newSession(t, (&fake{}).folder(), nil)
			s.send(`{"jsonrpc":"2.0","id":` + id + `,` + call + `}`)
			var m struct {
				ID json.RawMessage `json:"id"`
			}
			line := s.receive()
			if err := json.Unmarshal([]byte(line), &m); err != nil || string(m.ID) != id {
				t.Errorf("%s with id %s is answered by %s", call, id, line)
			}
			s.close()
		}
	}
}

func TestCancellationByAnExactID(t *testing.T) {
	for _, call := range []string{`"method":"read_context","params":{"query":"a"}`, `"method":"tools/call","params":{"name":"read_context","arguments":{"query":"a"}}`} {
		started := make(chan bool, 1)
		s := newSession(t, (&fake{search: func(ctx context.Context, _ retriever.Query) (*retriever.Answer, error) {
			started <- true
			<-ctx.Done()
			return nil, ctx.Err()
		}}).folder(), nil)
		s.send(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
		s.receive()
		s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":1700000000000000001,`+call+`}`)
		<-started
		s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1700000000000000001}}`)
		if line := s.receive(); !strings.Contains(line, "cancel") || !strings.Contains(line, "1700000000000000001") {
			t.Errorf("%s, cancelled, is answered by %s", call, line)
		}
		s.close()
	}
}

// The answer to a message that is too long has the id of the message.
func TestTooLongMessageKeepsItsID(t *testing.T) {
	s := newSession(t, (&fake{}).folder(), nil)
	for _, size := range []int{maxLine, maxLine + 65536, 2*maxLine + 77} {
		long := strings.Repeat("x", size)
		for _, c := range []struct{ message, id string }{
			{`{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":"` + long + `"}}`, "7"},
			{`{"method":"ping","params":{"x":"` + long + `"},"jsonrpc":"2.0","id":"q-8"}`, `"q-8"`},
			{`{"method":"ping","params":{"x":"` + long + `","id":9}}`, "null"},
			{`{"params":{"id":9,"x":"` + long + `"}}`, "null"},
			{long, "null"},
		} {
			go s.sendAll(c.message)
			if got, want := s.receive(), fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":%q}}`, c.id, errLineTooLong); got != want {
				t.Errorf("%.60s... of %d bytes is answered by %s, want %s", c.message, len(c.message), got, want)
			}
		}
	}
	s.close()
}

// An id is free again as soon as its answer is written.
func TestIDsAreUsedAgain(t *testing.T) {
	for _, call := range []string{`"method":"read_context","params":{"query":"a"}`, `"method":"ping"`} {
		s := newSession(t, (&fake{}).folder(), nil)
		for n := range 2000 {
			s.send(`{"jsonrpc":"2.0","id":"same",` + call + `}`)
			if line := s.receive(); !strings.Contains(line, `"id":"same"`) {
				t.Fatalf("answer %d to %s: %s", n, call, line)
			}
		}
		s.close()
	}
}
