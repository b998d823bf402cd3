package retriever

import "fmt"

// InvalidError reports an invalid argument of a request. The request had no effect.
type InvalidError struct {
	Field  string // the argument's name in JSON
	Reason string
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Reason }

func invalid(field, format string, args ...any) error {
	return &InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// IndexChangedError reports a cursor from an earlier generation of the index. Its
// next page could repeat or skip results, so the caller must search again without the
// cursor. Have and Want are generations.
type IndexChangedError struct{ Have, Want uint64 }

func (e *IndexChangedError) Error() string {
	return fmt.Sprintf("the index has changed since this cursor was issued (generation %d, now %d): search again without it", e.Have, e.Want)
}

// NotFoundError reports a document, or a section of one, that does not exist.
type NotFoundError struct {
	Path string
	// Anchor is the missing section; empty if the document is missing.
	Anchor string
	// Anchors lists the anchors of the document in order; nil if the document is missing.
	Anchors []string
	// Nearest lists similar paths or anchors, nearest first.
	Nearest []string
	// same is the only document that Path can mean (see walk.Alike), or "".
	same string
}

func (e *NotFoundError) Error() string {
	what, where := "document", fmt.Sprintf("%q", e.Path)
	if e.Anchor != "" {
		what, where = "section", fmt.Sprintf("%q of %q", e.Anchor, e.Path)
	}
	if len(e.Nearest) > 0 {
		return fmt.Sprintf("no %s %s, did you mean %q?", what, where, e.Nearest[0])
	}
	return fmt.Sprintf("no %s %s", what, where)
}

// TokenLimitError reports a document that is too large to return without a budget.
// Tokens and Limit are estimates (bytes/4).
type TokenLimitError struct {
	Path          string
	Tokens, Limit int
}

func (e *TokenLimitError) Error() string {
	return fmt.Sprintf("%q has about %d tokens, more than %d: ask for a section or set max_tokens", e.Path, e.Tokens, e.Limit)
}

// StaleError reports a file whose hash differs from the one the caller expects.
type StaleError struct {
	Path             string
	Expected, Actual string // SHA-256, hex
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("%q has changed: expected hash %s, it is %s", e.Path, e.Expected, e.Actual)
}
