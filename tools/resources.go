package tools

import (
	"context"
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/workspace"
	"cairn/retriever"
)

// Documents are resources: cairn://PATH is a document, cairn://PATH#anchor a
// section of it. They are listed from the index, page by page, since an SDK
// server would hold one entry for each; reading goes through its template.

const (
	scheme           = "cairn://"
	documentTemplate = scheme + "{+path}{#anchor}"
	markdown         = "text/markdown"
	resourcesPage    = 100
)

// resourceURI names a document, or a section of it.
func resourceURI(path, anchor string) string {
	uri := scheme + (&url.URL{Path: path}).EscapedPath()
	if anchor != "" {
		uri += "#" + (&url.URL{Fragment: anchor}).EscapedFragment()
	}
	return uri
}

// placeOf takes a resource's name apart.
func placeOf(uri string) (path, anchor string, ok bool) {
	rest, ok := strings.CutPrefix(uri, scheme)
	path, anchor, _ = strings.Cut(rest, "#")
	path, err := url.PathUnescape(path)
	anchor, bad := url.PathUnescape(anchor)
	return path, anchor, ok && path != "" && err == nil && bad == nil
}

// addResources offers the documents.
func (s *Server) addResources(server *mcp.Server) {
	s.resourcesChanged(server)
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if list, ok := req.(*mcp.ListResourcesRequest); ok && method == "resources/list" {
				return s.listResources(ctx, list, next)
			}
			return next(ctx, method, req)
		}
	})
}

// documentsCursor marks the cursors of this list.
const documentsCursor = "after:"

// listResources lists what is registered, and behind it the documents.
func (s *Server) listResources(ctx context.Context, req *mcp.ListResourcesRequest, next mcp.MethodHandler) (mcp.Result, error) {
	after, ours := "", false
	if req.Params != nil && req.Params.Cursor != "" {
		text, err := base64.RawURLEncoding.DecodeString(req.Params.Cursor)
		if after, ours = strings.CutPrefix(string(text), documentsCursor); err != nil || !ours {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Invalid params: cursor: it is not one of this list's"}
		}
		req.Params.Cursor = ""
	}
	result, err := next(ctx, "resources/list", req)
	if err != nil {
		return nil, err
	}
	list := result.(*mcp.ListResourcesResult)
	if ours {
		list.Resources = []*mcp.Resource{}
	}
	page, err := s.engine.Documents(ctx, workspace.DocumentsRequest{After: after, Limit: resourcesPage})
	if err != nil {
		return nil, FailureOf(err).wire()
	}
	for _, d := range page.Documents {
		list.Resources = append(list.Resources, &mcp.Resource{
			URI: resourceURI(d.Path, ""), Name: d.Path, Title: d.Title, MIMEType: markdown, Size: d.Bytes,
			Annotations: &mcp.Annotations{LastModified: d.Modified.Format(time.RFC3339)},
		})
		after = d.Path
	}
	list.NextCursor = ""
	if page.More {
		list.NextCursor = base64.RawURLEncoding.EncodeToString([]byte(documentsCursor + after))
	}
	return list, nil
}

// readResource answers with the text of a document or section.
func (s *Server) readResource(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	path, anchor, ok := placeOf(req.Params.URI)
	if !ok {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	reading, err := s.engine.Read(ctx, retriever.ReadRequest{Path: path, Anchor: anchor})
	if _, missing := errors.AsType[*retriever.NotFoundError](err); missing || errors.Is(err, workspace.ErrNoIndex) {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	if err != nil {
		return nil, FailureOf(err).wire()
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, MIMEType: markdown, Text: reading.Content}}}, nil
}

// watcher is an engine that tells of changed documents; *workspace.Workspace is one.
type watcher interface {
	Watch(ctx context.Context, fn func(workspace.WatchEvent)) error
}

// follow tells clients of changes until ctx ends: that the list of resources
// has changed, and which of those they asked about.
func (s *Server) follow(ctx context.Context, server *mcp.Server) {
	w, ok := s.options.Watch.(watcher)
	if !ok {
		return
	}
	err := w.Watch(ctx, func(e workspace.WatchEvent) {
		for _, path := range e.Paths {
			_ = server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: resourceURI(path, "")})
		}
		if e.Changed+e.Removed > 0 {
			s.resourcesChanged(server)
		}
	})
	if err != nil && ctx.Err() == nil {
		s.options.Logger.Warn("changes are not told to clients", "error", err)
	}
}

// resourcesChanged tells clients that the list is another one. The SDK says so
// whenever something is added, even what is there already.
func (s *Server) resourcesChanged(server *mcp.Server) {
	server.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "document", Title: "Document or section", URITemplate: documentTemplate, MIMEType: markdown,
		Description: "A document of the workspace, or the section with that anchor.",
	}, s.readResource)
}
