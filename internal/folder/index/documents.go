package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"cairn/internal/folder/scan"
	"cairn/internal/store/docs"
	"cairn/internal/text/query"
	"cairn/internal/text/walk"
	"cairn/internal/text/watch"
	"cairn/retriever"
)

// DocumentsRequest selects documents of the index.
type DocumentsRequest struct {
	// Prefix selects the paths that begin with it.
	Prefix string `json:"prefix,omitempty"`
	// After selects the paths that sort after it.
	After string `json:"after,omitempty"`
	// Limit is the largest number of documents to return, 1 to MaxDocuments; 0 means 100.
	Limit int `json:"limit,omitempty"`
	// Outline adds the headings of each document.
	Outline bool `json:"outline,omitempty"`
	// Tags adds the tags of each document.
	Tags bool `json:"tags,omitempty"`
}

// MaxDocuments bounds the number of documents in one answer.
const MaxDocuments = 1000

// DocumentEntry is a document in a list.
type DocumentEntry struct {
	Path     string         `json:"path"`
	Title    string         `json:"title"`
	Bytes    int64          `json:"bytes"`
	Modified time.Time      `json:"modified"`
	Tags     []string       `json:"tags,omitempty"`
	Outline  []HeadingEntry `json:"outline,omitempty"`
}

// HeadingEntry is a heading of a document. "path#anchor" is the place of its section.
type HeadingEntry struct {
	Level   int    `json:"level"` // 1 to 6
	Heading string `json:"heading"`
	Anchor  string `json:"anchor"`
	Line    int    `json:"line"`
}

// Documents is a list of documents in the order of their paths.
type Documents struct {
	Documents []DocumentEntry `json:"documents"`
	// More reports that there are further documents: list them with After set to the
	// last path here.
	More bool `json:"more,omitempty"`
	// Degraded contains OwnerLacking if the owner does not answer.
	Degraded []string `json:"degraded,omitempty"`
}

// Documents lists the indexed documents in the order of their paths. A folder without an
// index has none.
func (x *Index) Documents(_ context.Context, q DocumentsRequest) (*Documents, error) {
	q.Limit = cmp.Or(q.Limit, 100)
	if q.Limit < 1 || q.Limit > MaxDocuments {
		return nil, fmt.Errorf("limit: %d, want 1 to %d", q.Limit, MaxDocuments)
	}
	s, err := x.use()
	if err != nil {
		return nil, err
	}
	defer x.mu.RUnlock()
	out := &Documents{Documents: []DocumentEntry{}, Degraded: x.lacks()}
	if s == nil {
		return out, nil
	}
	return out, s.Docs.View(func(r *docs.Reader) error {
		var paths []string
		if err := r.Files(q.Prefix, func(f docs.File) bool {
			if f.Path <= q.After {
				return true
			}
			if len(paths) == q.Limit {
				out.More = true
				return false
			}
			paths = append(paths, f.Path)
			return true
		}); err != nil {
			return err
		}
		if err := r.Prefetch(paths); err != nil {
			return err
		}
		for _, path := range paths {
			d, err := r.Document(path)
			if err != nil {
				return err
			}
			if d == nil {
				continue
			}
			e := DocumentEntry{Path: d.Path, Title: d.Title, Bytes: d.Size, Modified: time.Unix(0, d.ModTime).UTC()}
			if q.Tags {
				e.Tags = d.Labels.Tags
			}
			if q.Outline {
				for _, s := range d.Sections {
					if s.Level > 0 {
						e.Outline = append(e.Outline, HeadingEntry{Level: s.Level, Heading: s.Heading, Anchor: s.Anchor, Line: s.StartLine})
					}
				}
			}
			out.Documents = append(out.Documents, e)
		}
		return nil
	})
}

// changed restricts q to the files that were changed as its text requires
// (query.CutChanged), by the history of the folder or else by the time of the file.
func (x *Index) changed(s *Stores, q *retriever.Query) error {
	text, after, before := query.CutChanged(q.Text, time.Now())
	if after.IsZero() && before.IsZero() {
		return nil
	}
	if text == "" {
		return &retriever.InvalidError{Field: "query", Reason: "changed: needs words to search for"}
	}
	q.Text, q.Filter.Paths = text, []string{}
	var commits map[string]time.Time
	if x.options.History != nil {
		commits = x.options.History.Times()
	}
	return s.Docs.View(func(r *docs.Reader) error {
		return r.Files("", func(f docs.File) bool {
			at, ok := commits[f.Path]
			if !ok {
				at = time.Unix(0, f.ModTime)
			}
			if !at.Before(after) && (before.IsZero() || at.Before(before)) {
				q.Filter.Paths = append(q.Filter.Paths, f.Path)
			}
			return true
		})
	})
}

// Found is an answer with its lines.
type Found struct {
	*scan.Answer
	Found []scan.Line `json:"found"`
}

// Lines finds every matching line. If the owner watches the folder, the documents and the
// unhandled changes suffice; otherwise Lines walks the folder.
func (x *Index) Lines(ctx context.Context, r scan.Request) (_ *Found, err error) {
	o, masks := x.options.Config.Walk(), x.options.Config.Masks()
	if r.Rules != masks.Rules() {
		return nil, errors.New("the owner of the index masks other secrets")
	}
	tree, err := walk.Open(x.options.Selection.Roots()...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	changes, watched := x.unhandled() // before the documents, which then have all others
	watched = watched && x.complete.Load() && !changes.All
	var a *scan.Answer
	err = x.withFiles(func(known *scan.Known, d *docs.Store) (err error) {
		var c *scan.Candidates
		if known != nil && watched {
			c, err = scan.SelectWatched(ctx, tree, o, known, changes.Paths, r)
		} else {
			c, err = scan.Select(ctx, tree, o, known, r)
		}
		if err == nil {
			a, err = scan.Find(ctx, tree, o, masks, d, c, r)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &Found{a, a.Found}, nil
}

// withFiles calls fn with the documents and the states of the files in them, nil without an
// index. It opens only the documents if the process has not opened the index, because a command
// scans once.
func (x *Index) withFiles(fn func(*scan.Known, *docs.Store) error) (err error) {
	o := x.options
	x.mu.RLock()
	alone := !x.opened && !o.Write && o.Remote == nil
	x.mu.RUnlock()
	s := &Stores{own: true}
	if alone {
		defer func() { err = errors.Join(err, s.Close()) }()
		err = s.openDocuments(o.Dir, o.Config.Masks(), o.Description)
	} else if s, err = x.use(); err == nil {
		defer x.mu.RUnlock()
	}
	if err != nil {
		return err
	}
	if s == nil || !s.own {
		return fn(nil, nil)
	}
	known, err := x.known.get(s.Docs, func(r *docs.Reader) (*scan.Known, error) { return scan.Record(r, x.known.last, !alone) })
	if err != nil {
		return err
	}
	return fn(known, s.Docs)
}

// unhandled returns the changes that no completed call of watcher.take has processed. ok is
// false if they are not known, or the folder is not watched.
func (x *Index) unhandled() (b watch.Batch, ok bool) {
	x.runs.Lock()
	w := x.watcher
	x.runs.Unlock()
	if w != nil {
		if events := w.events.Load(); events != nil {
			return events.Unhandled()
		}
	}
	return b, false
}
