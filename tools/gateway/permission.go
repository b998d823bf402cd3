package gateway

import (
	"fmt"
	"slices"
	"strings"

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

// ParsePermission returns the permission of a word.
func ParsePermission(word string) (Permission, error) {
	all := []string{string(Allow), string(Ask), string(Deny)}
	if !slices.Contains(all, word) {
		return "", fmt.Errorf("unknown permission %q, want {%s}", word, strings.Join(all, ","))
	}
	return Permission(word), nil
}

// PermissionError reports a call that the user has not permitted. It did not run.
type PermissionError struct {
	Tool     string // its ID
	Denied   bool   // by the user's setting
	Declined bool   // by the answer to the question
}

func (e *PermissionError) Error() string {
	switch {
	case e.Denied:
		return fmt.Sprintf("the user denies calls of %s; `cairn tools permit %[1]s allow` permits them", e.Tool)
	case e.Declined:
		return fmt.Sprintf("the user declined this call of %s", e.Tool)
	}
	return fmt.Sprintf("%s may destroy something, and this client cannot ask the user: ask them to run `cairn tools permit %[1]s allow`", e.Tool)
}
