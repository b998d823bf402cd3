package tools

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// playing replaces what differs from run to run in a transcript of calls.
type playing struct {
	args     func(string) string              // arguments as they are sent
	text     func(string) string              // an answer as it is written
	answered func(name string, answer []byte) // hears of each that is no failure; may be nil
}

// playCalls plays a transcript of calls: "> TOOL ARGUMENTS" goes through
// tools/call, "~ TOOL ARGUMENTS" is the bare method; "< " is the answer and "! " a
// failure; other lines are prose. Each answer of tools/call has to fit the tool's schema.
func playCalls(t *testing.T, script string, o *Options, p playing) string {
	t.Helper()
	schemas := map[string]*jsonschema.Resolved{}
	for _, tool := range New((&fake{}).folder(), o).tools {
		schemas[tool.name] = outputSchema(t, tool)
	}
	s := newSession(t, (&fake{}).folder(), o)
	s.send(request(0, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`))
	s.receive()
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	var out strings.Builder
	sent := 0
	for line := range strings.Lines(script) {
		if strings.HasPrefix(line, "< ") || strings.HasPrefix(line, "! ") {
			continue
		}
		out.WriteString(line)
		if !strings.HasPrefix(line, "> ") && !strings.HasPrefix(line, "~ ") {
			continue
		}
		name, args, _ := strings.Cut(strings.TrimSpace(line[2:]), " ")
		args = cmp.Or(p.args(args), "{}")
		sent++
		var answer []byte
		var failed bool
		if line[0] == '>' {
			s.send(request(sent, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, args)))
		} else {
			s.send(request(sent, name, args))
		}
		var reply struct{ Result, Error json.RawMessage }
		if text := s.receive(); json.Unmarshal([]byte(text), &reply) != nil {
			t.Fatalf("%s: %.300s", line, text)
		}
		switch {
		case reply.Error != nil:
			answer, failed = reply.Error, true
		case line[0] == '~':
			answer = reply.Result
		default:
			var r struct {
				IsError           bool            `json:"isError"`
				StructuredContent json.RawMessage `json:"structuredContent"`
			}
			if err := json.Unmarshal(reply.Result, &r); err != nil {
				t.Fatal(err)
			}
			answer, failed = r.StructuredContent, r.IsError
			var v any
			if err := json.Unmarshal(answer, &v); err != nil {
				t.Fatal(err)
			}
			if err := schemas[name].Validate(v); err != nil {
				t.Errorf("%s%s answers %s, which its schema refuses: %v", line, args, answer, err)
			}
		}
		mark := "< "
		if failed {
			mark = "! "
		} else if p.answered != nil {
			p.answered(name, answer)
		}
		out.WriteString(mark + p.text(string(answer)) + "\n")
	}
	if rest := s.close(); rest != "" {
		t.Errorf("the server sent more than the answers:\n%s", rest)
	}
	return out.String()
}

func outputSchema(t *testing.T, tool tool) *jsonschema.Resolved {
	t.Helper()
	resolved, err := answerSchema(tool.answers).Resolve(nil)
	if err != nil {
		t.Fatalf("%s: %v", tool.name, err)
	}
	return resolved
}
