//lint:file-ignore SA1019 the suite asks for logging, sampling and roots, which revision 2026-07-28 deprecates

package conformance

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The names and answers of the fixtures are the suite's
// (@modelcontextprotocol/conformance, 0.2.0-alpha.12).

// watched is the resource that the server reports as changed every period.
const (
	watched = "test://watched-resource"
	period  = 3 * time.Second
)

// register adds the fixtures. stop ends the notifications of changes.
func register(server *mcp.Server) (stop func()) {
	for _, t := range fixtureTools(server) {
		schema := t.schema
		if schema == "" {
			schema = `{"type":"object"}`
		}
		server.AddTool(&mcp.Tool{Name: t.name, Description: t.does, InputSchema: json.RawMessage(schema)}, t.call)
	}
	addInputTools(server)
	addResources(server)
	addPrompts(server)
	addTasks(server)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		ticker := time.NewTicker(period)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				// An error means that there is no client.
				_ = server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: watched})
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// An image of one red pixel, and an empty sound.
var (
	pixel = decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==")
	sound = decode("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=")
)

func decode(s string) []byte {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		panic(err) // unreachable: the constants are above
	}
	return b
}

func text(format string, args ...any) *mcp.TextContent {
	return &mcp.TextContent{Text: fmt.Sprintf(format, args...)}
}

func embedded(uri, s string) *mcp.EmbeddedResource {
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: "text/plain", Text: s}}
}

func addResources(server *mcp.Server) {
	add := func(uri, mime string, r mcp.ResourceContents) {
		r.URI, r.MIMEType = uri, mime
		server.AddResource(&mcp.Resource{Name: strings.TrimPrefix(uri, "test://"), URI: uri, MIMEType: mime},
			func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{&r}}, nil
			})
	}
	add("test://static-text", "text/plain", mcp.ResourceContents{Text: "This is the content of the static text resource."})
	add("test://static-binary", "image/png", mcp.ResourceContents{Blob: pixel})
	add(watched, "text/plain", mcp.ResourceContents{Text: "Watched resource content"})
	server.AddResourceTemplate(&mcp.ResourceTemplate{Name: "template", URITemplate: "test://template/{id}/data", MIMEType: "application/json"},
		func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(req.Params.URI, "test://template/"), "/data")
			body, err := json.Marshal(map[string]any{"id": id, "templateTest": true, "data": "Data for ID: " + id})
			if err != nil {
				return nil, err
			}
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, MIMEType: "application/json", Text: string(body)}}}, nil
		})
}

func addPrompts(server *mcp.Server) {
	add := func(name string, args []string, messages func(map[string]string) []mcp.Content) {
		p := &mcp.Prompt{Name: name, Description: "for the conformance suite"}
		for _, a := range args {
			p.Arguments = append(p.Arguments, &mcp.PromptArgument{Name: a, Description: a, Required: true})
		}
		server.AddPrompt(p, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			r := &mcp.GetPromptResult{Description: p.Description}
			for _, c := range messages(req.Params.Arguments) {
				r.Messages = append(r.Messages, &mcp.PromptMessage{Role: "user", Content: c})
			}
			return r, nil
		})
	}
	add("test_simple_prompt", nil, func(map[string]string) []mcp.Content {
		return []mcp.Content{text("This is a simple prompt for testing.")}
	})
	add("test_prompt_with_arguments", []string{"arg1", "arg2"}, func(a map[string]string) []mcp.Content {
		return []mcp.Content{text("Prompt with arguments: arg1='%s', arg2='%s'", a["arg1"], a["arg2"])}
	})
	add("test_prompt_with_embedded_resource", []string{"resourceUri"}, func(a map[string]string) []mcp.Content {
		return []mcp.Content{embedded(a["resourceUri"], "Embedded resource content for testing."), text("Please process the embedded resource above.")}
	})
	add("test_prompt_with_image", nil, func(map[string]string) []mcp.Content {
		return []mcp.Content{&mcp.ImageContent{Data: pixel, MIMEType: "image/png"}, text("Please analyze the image above.")}
	})
	server.AddPrompt(&mcp.Prompt{Name: "test_input_required_result_prompt", Description: "asks for context first"},
		func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			if answer := accepted(req.Params.InputResponses, "user_context"); answer != nil {
				return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: text("Context: %v", answer["context"])}}}, nil
			}
			return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{"user_context": form("Please provide context for the prompt", "context", "string")}}, nil
		})
}
