//lint:file-ignore SA1019 the suite asks for logging, sampling and roots, which revision 2026-07-28 deprecates

package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tool is one tool of the suite.
type tool struct {
	name, does, schema string
	call               mcp.ToolHandler
}

// pause is the time between two steps of a tool.
const pause = 50 * time.Millisecond

// wait waits for pause or for the end of the call.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// says returns a handler with a constant answer.
func says(content ...mcp.Content) mcp.ToolHandler {
	return func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: content}, nil
	}
}

func answer(format string, args ...any) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{text(format, args...)}}, nil
}

// refused returns a failure of the tool, which is a result and not an error.
func refused(format string, args ...any) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{text(format, args...)}, IsError: true}, nil
}

// fixtureTools lists the tools that need only the request.
func fixtureTools(server *mcp.Server) []tool {
	image := &mcp.ImageContent{Data: pixel, MIMEType: "image/png"}
	return []tool{
		{name: "test_simple_text", does: "answers text", call: says(text("This is a simple text response for testing."))},
		{name: "test_image_content", does: "answers an image", call: says(image)},
		{name: "test_audio_content", does: "answers a sound", call: says(&mcp.AudioContent{Data: sound, MIMEType: "audio/wav"})},
		{name: "test_embedded_resource", does: "answers a resource", call: says(embedded("test://embedded-resource", "This is an embedded resource"))},
		{name: "test_multiple_content_types", does: "answers text, an image and a resource",
			call: says(text("This is text content"), image, embedded("test://embedded-in-multiple", "This is an embedded resource"))},
		{name: "test_error_handling", does: "fails", call: func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return refused("this tool intentionally returns an error for testing")
		}},
		{name: "test_tool_with_logging", does: "logs three messages", call: func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for _, line := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
				log(ctx, req, line)
				wait(ctx, pause)
			}
			return answer("Tool with logging executed successfully")
		}},
		{name: "test_logging_tool", does: "logs where the client asked for it", call: func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			log(ctx, req, "test_logging_tool executed")
			return answer("logged")
		}},
		{name: "test_tool_with_progress", does: "reports progress", call: func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			token := req.Params.GetProgressToken()
			for _, done := range []float64{0, 50, 100} {
				_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: 100, Message: fmt.Sprintf("Completed step %.0f of 100", done)})
				wait(ctx, pause)
			}
			return answer("%v", token)
		}},
		{name: "test_streaming_elicitation", does: "answers with nothing but its result", call: says(text("only a result"))},
		{name: "test_reconnection", does: "closes its stream and answers on the next", call: func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if req.Extra != nil && req.Extra.CloseSSEStream != nil {
				req.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 10 * time.Millisecond})
			}
			wait(ctx, 2*pause)
			return answer("Reconnection test completed successfully. If you received this, the client properly reconnected after stream closure.")
		}},
		{name: "test_sampling", does: "asks the client's model", schema: `{"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"]}`, call: sample},
		{name: "test_elicitation", does: "asks the user", schema: `{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}`,
			call: func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				var a struct{ Message string }
				if err := json.Unmarshal(req.Params.Arguments, &a); err != nil {
					return nil, err
				}
				return elicit(ctx, req, a.Message, `{"username":{"type":"string","description":"Your preferred username"}}`, `["username"]`)
			}},
		{name: "test_elicitation_sep1034_defaults", does: "asks with defaults", call: func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return elicit(ctx, req, "Defaults of primitive types", `{
				"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},
				"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}`, `[]`)
		}},
		{name: "test_elicitation_sep1330_enums", does: "asks with enumerations", call: func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return elicit(ctx, req, "Enumerations", `{
				"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
				"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},
				"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
				"untitledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string","enum":["option1","option2","option3"]}},
				"titledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}}`, `[]`)
		}},
		{name: "json_schema_2020_12_tool", does: "has a schema with most of what JSON Schema 2020-12 knows", schema: `{
			"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
			"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
			"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},
			"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
			"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},
			"additionalProperties":false}`,
			call: func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return answer("called with %s", req.Params.Arguments)
			}},
		{name: "test_x_mcp_header", does: "has an argument that is mirrored into a header", schema: `{"type":"object","properties":{
			"region":{"type":"string","description":"mirrored into Mcp-Param-Region","x-mcp-header":"Region"},"level":{"type":"integer"}}}`,
			call: func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return answer("called with %s", req.Params.Arguments)
			}},
		{name: "test_missing_capability", does: "needs a client that samples", call: needsSampling},
		{name: "test_trigger_tool_change", does: "changes the list of tools", call: func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			server.AddTool(&mcp.Tool{Name: "test_transient", Description: "added to change the list", InputSchema: json.RawMessage(`{"type":"object"}`)}, says())
			return answer("the list of tools has changed")
		}},
		{name: "test_trigger_prompt_change", does: "changes the list of prompts", call: func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			server.AddPrompt(&mcp.Prompt{Name: "test_transient", Description: "added to change the list"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				return &mcp.GetPromptResult{}, nil
			})
			return answer("the list of prompts has changed")
		}},
	}
}

func log(ctx context.Context, req *mcp.CallToolRequest, line string) {
	_ = req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: line})
}

func sample(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var a struct{ Prompt string }
	if err := json.Unmarshal(req.Params.Arguments, &a); err != nil {
		return nil, err
	}
	r, err := req.Session.CreateMessage(ctx, &mcp.CreateMessageParams{Messages: []*mcp.SamplingMessage{{Role: "user", Content: text("%s", a.Prompt)}}, MaxTokens: 100})
	if err != nil {
		return refused("sampling: %v", err)
	}
	said, _ := r.Content.(*mcp.TextContent)
	if said == nil {
		return refused("the model did not answer with text")
	}
	return answer("LLM response: %s", said.Text)
}

// elicit asks the user with a form and answers with the outcome.
func elicit(ctx context.Context, req *mcp.CallToolRequest, message, properties, required string) (*mcp.CallToolResult, error) {
	r, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: message, RequestedSchema: json.RawMessage(`{"type":"object","properties":` + properties + `,"required":` + required + `}`)})
	if err != nil {
		return refused("elicitation: %v", err)
	}
	return answer("Elicitation result: action=%s, content=%v", r.Action, r.Content)
}

func needsSampling(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if c := req.ClientCapabilities(); c != nil && c.Sampling != nil {
		return answer("the client samples")
	}
	data, err := json.Marshal(mcp.MissingRequiredClientCapabilityData{RequiredCapabilities: &mcp.ClientCapabilities{Sampling: &mcp.SamplingCapabilities{}}})
	if err != nil {
		return nil, err
	}
	return nil, &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: "this tool needs a client that declares sampling", Data: data}
}
