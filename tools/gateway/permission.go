package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"cairn/internal/text/fit"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/toolsearch"
	"cairn/tools/client"
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

// Change is a definition that differs from the approved one. Old or New is nil.
type Change struct {
	Name     string
	Old, New *catalog.Tool
}

// Compare returns the differences of definitions from approved ones, in the order of now,
// then those that the server has removed.
func Compare(approved, now []catalog.Tool) (changes []Change) {
	before := map[string]*catalog.Tool{}
	for i := range approved {
		before[approved[i].BareName()] = &approved[i]
	}
	for i := range now {
		t := &now[i]
		old := before[t.BareName()]
		delete(before, t.BareName())
		if old == nil || Text(old) != Text(t) {
			changes = append(changes, Change{t.BareName(), old, t})
		}
	}
	for i := range approved {
		if old := before[approved[i].BareName()]; old != nil {
			changes = append(changes, Change{old.BareName(), old, nil})
		}
	}
	return changes
}

// Apply returns approved definitions with changes.
func Apply(approved []catalog.Tool, changes []Change) []catalog.Tool {
	for _, c := range changes {
		approved = slices.DeleteFunc(slices.Clone(approved), func(t catalog.Tool) bool { return t.BareName() == c.Name })
		if c.New != nil {
			approved = append(approved, *c.New)
		}
	}
	return approved
}

// approved returns a tool whose present definition is the approved one, and the session of
// its server.
func (l *live) approved(ctx context.Context, name string) (tool, *client.Session, error) {
	session, err := l.connect(ctx)
	if err != nil || name == ReadResource {
		return tool{check: func([]byte) error { return nil }}, session, err
	}
	l.mu.Lock()
	server := l.server
	fresh := l.session == session && l.gateway.o.Now().Sub(l.listed) < relist && l.stamp == l.gateway.store.stampOf(&server)
	l.mu.Unlock()
	if !fresh {
		if err := l.list(ctx, session, server); err != nil {
			return tool{}, nil, err
		}
	}
	l.mu.Lock()
	t, ok := l.tools[name]
	l.mu.Unlock()
	if !ok {
		return t, nil, refuse(Unknown, "the server %s has no tool %q", server.Name, name)
	}
	if t.why != "" {
		return t, nil, refuse("not approved", "%s:%s is not called, because %s; see it and approve it with `cairn tools approve %[1]s`", server.Name, name, t.why)
	}
	return t, session, nil
}

// list reads the definitions of the server and compares them with the approved ones.
func (l *live) list(ctx context.Context, session *client.Session, server Server) error {
	if err := l.gate.Acquire(ctx, 1); err != nil {
		return err
	}
	defer l.gate.Release(1)
	// A change that the server announces meanwhile resets listed again.
	l.mu.Lock()
	l.listed, l.stamp = l.gateway.o.Now(), l.gateway.store.stampOf(&server)
	l.mu.Unlock()
	tools, err := l.compare(ctx, session, server)
	if err != nil && ctx.Err() == nil { // such as a stopped server
		l.lost(session, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.listed = time.Time{}
		return down(server.Name, err)
	}
	l.tools = tools
	return nil
}

func (l *live) compare(ctx context.Context, session *client.Session, server Server) (map[string]tool, error) {
	now, err := l.definitions(ctx, session, server.Name)
	if err != nil {
		return nil, err
	}
	approved, err := l.gateway.store.Approved(&server)
	if err != nil {
		return nil, err
	}
	tools := map[string]tool{}
	for i := range approved {
		tools[approved[i].BareName()] = tool{Tool: approved[i], check: approved[i].Checker()}
	}
	for _, c := range Compare(approved, now.Tools) {
		t := tools[c.Name]
		switch {
		case approved == nil:
			t.why = "its server has not been approved"
		case c.New == nil:
			t.why = "the server no longer has it"
		case c.Old == nil:
			t.why = "it is new"
		default:
			t.why = "its definition has changed since it was approved"
		}
		tools[c.Name] = t
	}
	return tools, nil
}
