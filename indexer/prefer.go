package indexer

import (
	"context"
	"maps"
	"slices"
	"sync"

	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/text/walk"
)

// preferredTerms is the most terms of a preference, since matched has a bit for each.
const preferredTerms = 32

// preference is the request of a search to index the files with certain terms first.
type preference struct {
	terms  []string
	filter store.Filter
	done   chan struct{} // closed when the files are in the keyword index
}

// preferences holds the requests that no run has fulfilled yet.
type preferences struct {
	mu       sync.Mutex
	waiting  []*preference
	wanted   map[string]bool // files of fulfilled requests, whose vectors come first
	scanning bool            // a run compares all files
	complete bool            // the keyword index contains all files of the last run
}

// Prefer waits until the keyword index contains the files that a query most likely finds,
// at the latest until it contains all files of the current or next run. It returns at once
// if the keyword index already contains all files of the last run. terms are the terms of
// the query, as in the keyword index. Prefer uses only the path and the kind of filter.
func (x *Indexer) Prefer(ctx context.Context, terms []string, filter store.Filter) error {
	all := &x.preferences
	p := all.add(terms, filter)
	if p == nil {
		return nil
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		all.mu.Lock()
		defer all.mu.Unlock()
		all.waiting = slices.DeleteFunc(all.waiting, func(w *preference) bool { return w == p })
		return ctx.Err()
	}
}

// add records a request. It returns nil if the keyword index contains all files.
func (p *preferences) add(terms []string, filter store.Filter) *preference {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.complete {
		return nil
	}
	added := &preference{terms: terms[:min(len(terms), preferredTerms)], filter: store.Filter{PathPrefix: filter.PathPrefix, Kind: filter.Kind}, done: make(chan struct{})}
	p.waiting = append(p.waiting, added)
	return added
}

// next removes and returns the oldest request, or returns nil if there is none.
func (p *preferences) next() *preference {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 {
		return nil
	}
	first := p.waiting[0]
	p.waiting = p.waiting[1:]
	return first
}

// want records files of a request.
func (p *preferences) want(groups []map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, files := range groups {
		if p.wanted == nil {
			p.wanted = map[string]bool{}
		}
		maps.Copy(p.wanted, files)
	}
}

// takeWanted returns and forgets the files of the requests.
func (p *preferences) takeWanted() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	wanted := p.wanted
	p.wanted = nil
	return wanted
}

// scan records whether a run is comparing all files.
func (p *preferences) scan(running bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.scanning = running
	if running {
		p.complete = false
	}
}

// end fulfils all requests, because no document is pending. If a run is still comparing
// files, it does nothing.
func (p *preferences) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.scanning {
		return
	}
	for _, w := range p.waiting {
		close(w.done)
	}
	p.waiting, p.complete = nil, true
}

// prefer fulfils a request. It calls index with the paths that match it best, in groups as
// from match, among the given paths and the documents pending for the keyword index.
func (x *Indexer) prefer(ctx context.Context, p *preference, paths []string, index func(chosen map[string]bool) error) error {
	err := x.stores.Docs.View(func(r *docs.Reader) error {
		pending, err := r.Pending(docs.Keyword, "", 0)
		for _, d := range pending {
			if !d.Deleted {
				paths = append(paths, d.Path)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	paths = slices.DeleteFunc(paths, func(path string) bool { return !p.filter.Match(path, store.Labels{}) })
	groups, err := x.match(ctx, p.terms, paths)
	if err != nil {
		return err
	}
	x.preferences.want(groups)
	for _, chosen := range groups {
		if err := index(chosen); err != nil {
			return err
		}
	}
	close(p.done)
	return nil
}

// prefer indexes the files that match p best.
func (s *scanner) prefer(ctx context.Context, p *preference) error {
	paths := make([]string, len(s.unread))
	for i, e := range s.unread {
		paths[i] = e.Path
	}
	return s.x.prefer(ctx, p, paths, func(chosen map[string]bool) error {
		first := s.take(func(e walk.Entry) bool { return chosen[e.Path] })
		if err := s.readFiles(ctx, first); err != nil {
			return err
		}
		if err := s.put(ctx); err != nil {
			return err
		}
		if err := s.x.keywordsOf(ctx, chosen); err != nil {
			return err
		}
		s.m.flush() // answers report the number of unread files
		return nil
	})
}
