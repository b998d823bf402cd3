package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"cairn/internal/text/fit"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/toolsearch"
)

// Permission says whether clients may call a tool.
type Permission string

// The permissions.
const (
	Allow Permission = "allow"
	Ask   Permission = "ask" // the user confirms each call
	Deny  Permission = "deny"
)

// destroying lists verbs of names besides those of toolsearch.Removing.
var destroying = []string{"destroy", "overwrite", "truncate", "reset"}

// Permission returns the permission of a tool: that of the user or, without one, Ask for a
// tool that destroys something by its annotations or its name, else Allow.
func (s *Server) Permission(t *catalog.Tool) Permission {
	if p, ok := s.Permissions[t.BareName()]; ok {
		return p
	}
	destroys := func(word string) bool {
		return toolsearch.ActionsOf(word)&toolsearch.Removing != 0 || slices.Contains(destroying, word)
	}
	if t.Destructive() || slices.ContainsFunc(toolsearch.Words(t.BareName()), destroys) {
		return Ask
	}
	return Allow
}

// Permission returns the permission of a tool of one of the servers.
func (g *Gateway) Permission(t *catalog.Tool) (Permission, error) {
	s, err := g.store.Server(t.Server)
	return s.Permission(t), err
}

// ParsePermission returns the permission of a word.
func ParsePermission(word string) (Permission, error) {
	all := []string{string(Allow), string(Ask), string(Deny)}
	if !slices.Contains(all, word) {
		return "", fmt.Errorf("unknown permission %q, want {%s}", word, strings.Join(all, ","))
	}
	return Permission(word), nil
}

// permit returns an error unless the call is permitted. asked reports that the user was asked.
func permit(ctx context.Context, server *Server, tool *catalog.Tool, c Call) (asked bool, err error) {
	p := server.Permission(tool)
	switch {
	case p == Deny:
		return false, refuse("denied", "the user denies calls of %s; `cairn tools permit %[1]s allow` permits them", tool.ID)
	case p == Allow:
		return false, nil
	case c.Peer.Confirm == nil:
		return false, refuse("refused", "%s may destroy something, and this client cannot ask the user: ask them to run `cairn tools permit %[1]s allow`", tool.ID)
	}
	yes, err := c.Peer.Confirm(ctx, "Call "+tool.ID+" with "+fit.Cut(string(c.Arguments), maxQuestion)+"?")
	if err == nil && !yes {
		err = refuse("declined", "the user declined this call of %s", tool.ID)
	}
	return true, err
}
