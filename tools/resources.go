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

	"cairn/internal/folder/index"
	"cairn/retriever"
)

// Documents are resources: cairn://PATH is a document, and cairn://PATH#anchor is a section
// of it. They are not registered with the SDK's server, which would keep an entry for each.
// listResources lists them in pages, and clients read them through a template.

const (
	scheme           = "cairn://"
	documentTemplate = scheme + "{+path}{#anchor}"
	markdownType     = "text/markdown"
	resourcesPage    = 100
)

// resourceURI returns the URI of a document, or of a section of it.
func resourceURI(path, anchor string) string {
	uri := scheme + (&url.URL{Path: path}).EscapedPath()
	if anchor != "" {
		uri += "#" + (&url.URL{Fragment: anchor}).EscapedFragment()
	}
	return uri
}

// parseURI returns the document and the section that a resource's URI names.
func parseURI(uri string) (path, anchor string, ok bool) {
	rest, ok := strings.CutPrefix(uri, scheme)
	path, anchor, _ = strings.Cut(rest, "#")
	path, err := url.PathUnescape(path)
	anchor, bad := url.PathUnescape(anchor)
	return path, anchor, ok && path != "" && err == nil && bad == nil
}

// documentsCursor is the prefix of the cursors in the list of documents.
const documentsCursor = "after:"

// listResources lists the registered resources, then the documents.
func (s *Server) listResources(ctx context.Context, req *mcp.ListResourcesRequest, next mcp.MethodHandler) (mcp.Result, error) {
	after, ours := "", false
	if req.Params != nil && req.Params.Cursor != "" {
		text, err := base64.RawURLEncoding.DecodeString(req.Params.Cursor)
		if after, ours = strings.CutPrefix(string(text), documentsCursor); err != nil || !ours {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Invalid params: cursor: it is not a cursor of this list"}
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
	page, err := index.DocumentsOp.Call(ctx, s.folder, index.DocumentsRequest{After: after, Limit: resourcesPage}, nil)
	if err != nil {
		return nil, FailureOf(err).wire()
	}
	for _, d := range page.Documents {
		list.Resources = append(list.Resources, &mcp.Resource{
			URI: resourceURI(d.Path, ""), Name: d.Path, Title: d.Title, MIMEType: markdownType, Size: d.Bytes,
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
	path, anchor, ok := parseURI(req.Params.URI)
	if !ok {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	reading, err := read(ctx, s.folder, retriever.ReadRequest{Path: path, Anchor: anchor})
	if _, missing := errors.AsType[*retriever.NotFoundError](err); missing || errors.Is(err, index.ErrNoIndex) {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	if err != nil {
		return nil, FailureOf(err).wire()
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, MIMEType: markdownType, Text: reading.Content}}}, nil
}

// follow notifies clients until ctx ends: of changes of the lists of resources and tools,
// and of changes of the documents to which they subscribed.
func (s *Server) follow(ctx context.Context, server *mcp.Server, list *listing, notify func()) {
	if s.options.Watch == nil {
		return
	}
	err := s.options.Watch(ctx, func(e index.WatchEvent) {
		for _, path := range e.Paths {
			_ = server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: resourceURI(path, "")})
		}
		if e.Changed+e.Removed > 0 {
			s.addResources(server)
			if s.auto() && list.changed(ctx) {
				notify()
			}
		}
	})
	if err != nil && ctx.Err() == nil {
		s.options.Logger.Warn("clients are not notified of changes", "error", err)
	}
}

// addResources registers the template of the documents. The SDK then notifies clients that
// the list of resources has changed, even if the template was registered before.
func (s *Server) addResources(server *mcp.Server) {
	server.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "document", Title: "Document or section", URITemplate: documentTemplate, MIMEType: markdownType,
		Description: "A document of the workspace, or the section with the anchor.",
	}, s.readResource)
}
