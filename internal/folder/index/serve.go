package index

import (
	"context"

	"cairn/internal/base/owner"
	"cairn/internal/folder/bundle"
	"cairn/internal/folder/scan"
	"cairn/internal/store/docs"
	"cairn/retriever"
)

type none = struct{}

// The operations of the owner of an index. Each calls the method of Index of that name.
const (
	SearchOp     owner.Op[retriever.Query, *retriever.Answer, none]           = "search"
	ExplainOp    owner.Op[ExplainRequest, *retriever.Trace, none]             = "explain"
	ReadOp       owner.Op[retriever.ReadRequest, *retriever.Reading, none]    = "read"
	ReadAllOp    owner.Op[retriever.ReadRequest, *retriever.Readings, none]   = "read_all"
	ContextOp    owner.Op[bundle.Request, *bundle.Bundle, none]               = "context"
	ReferencesOp owner.Op[bundle.ReferencesRequest, *bundle.References, none] = "references"
	StatusOp     owner.Op[StatusRequest, *Status, none]                       = "status"
	SkippedOp    owner.Op[none, []SkippedFile, none]                          = "skipped"
	LinesOp      owner.Op[scan.Request, *Found, none]                         = "found"
	NotesOp      owner.Op[NotesRequest, *Notes, none]                         = "notes"
	DocumentsOp  owner.Op[DocumentsRequest, *Documents, none]                 = "documents"
	IndexOp      owner.Op[IndexRequest, *IndexReport, Progress]               = "index"
	VerifyOp     owner.Op[VerifyRequest, *Verified, none]                     = "verify"
	WatchOp      owner.Op[none, none, WatchEvent]                             = "watch"
)

// Serve registers the operations of x.
func (x *Index) Serve(s *owner.Server) {
	x.ServeReads(s)
	IndexOp.Handle(s, x.Index)
	VerifyOp.Answer(s, x.Verify)
	WatchOp.Handle(s, func(ctx context.Context, _ none, ahead func(WatchEvent)) (none, error) {
		return none{}, x.Watch(ctx, ahead)
	})
}

// ServeReads registers the operations of x that only read.
func (x *Index) ServeReads(s *owner.Server) {
	SearchOp.Answer(s, x.Search)
	ExplainOp.Answer(s, x.Explain)
	ReadOp.Answer(s, x.Read)
	ReadAllOp.Answer(s, x.ReadAll)
	ContextOp.Answer(s, x.Context)
	ReferencesOp.Answer(s, x.References)
	StatusOp.Answer(s, x.Status)
	SkippedOp.Answer(s, func(ctx context.Context, _ none) ([]SkippedFile, error) { return x.Skipped(ctx) })
	DocumentsOp.Answer(s, x.Documents)
	NotesOp.Answer(s, x.Notes)
	LinesOp.Answer(s, x.Lines)
}

// ErrorKinds lists the errors of the operations that clients receive with their type.
var ErrorKinds = owner.Kinds{
	"rebuild":       owner.KindOf[*RebuildError](),
	"pattern":       owner.KindOf[*scan.PatternError](),
	"invalid":       owner.KindOf[*retriever.InvalidError](),
	"index_changed": owner.KindOf[*retriever.IndexChangedError](),
	"not_found":     owner.KindOf[*retriever.NotFoundError](),
	"token_limit":   owner.KindOf[*retriever.TokenLimitError](),
	"stale":         owner.KindOf[*retriever.StaleError](),
	"model":         owner.KindOf[*docs.ModelError](),
	"no_index":      owner.Sentinel(ErrNoIndex),
}
