package indexer

import (
	"context"
	"slices"
	"sync"

	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/walk"
)

// preferredTerms bounds the terms of a request: matched has a bit for each.
const preferredTerms = 32

// preference is a request to index the files with the terms of a query before others.
type preference struct {
	terms  []string
	filter store.Filter
	done   chan struct{} // closed when keyword search sees those files, or all
}

// preferences are the requests that a run has not met yet.
type preferences struct {
	mu       sync.Mutex
	waiting  []*preference
	scanning bool // a run compares all files
	complete bool // keyword search sees all files that the last run found
}

// Prefer waits until keyword search sees the files that a query most likely finds, at
// the latest until it sees all files of the next run, or of that in progress. terms are
// those of the query, as the keyword index has them; of filter only the path and the kind
// count. It returns at once after a run that got that far.
func (x *Indexer) Prefer(ctx context.Context, terms []string, filter store.Filter) error {
	p := x.preferences.add(terms, filter)
	if p == nil {
		return nil
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		x.preferences.remove(p)
		return ctx.Err()
	}
}

// add records a request, unless keyword search sees all files: then it returns nil.
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

// remove removes a request that its caller no longer waits for.
func (p *preferences) remove(removed *preference) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = slices.DeleteFunc(p.waiting, func(w *preference) bool { return w == removed })
}

// next returns the request that came first, nil for none.
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

// scan records that a run compares all files, or no longer does.
func (p *preferences) scan(running bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.scanning = running
	if running {
		p.complete = false
	}
}

// end meets all requests, since no document is pending, unless a run compares all files.
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

// prefer returns those of paths, and of the documents that the keyword index lacks, that
// match a request best, in groups as match does.
func (x *Indexer) prefer(ctx context.Context, p *preference, paths []string) ([]map[string]bool, error) {
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
		return nil, err
	}
	paths = slices.DeleteFunc(paths, func(path string) bool { return !p.filter.Match(path, store.Labels{}) })
	return x.match(ctx, p.terms, paths)
}

// prefer indexes the files that p asks for.
func (s *scanner) prefer(ctx context.Context, p *preference) error {
	paths := make([]string, len(s.look))
	for i, e := range s.look {
		paths[i] = e.Path
	}
	groups, err := s.x.prefer(ctx, p, paths)
	if err != nil {
		return err
	}
	for _, chosen := range groups {
		var first, rest []walk.Entry
		for _, e := range s.look {
			if chosen[e.Path] {
				first = append(first, e)
			} else {
				rest = append(rest, e)
			}
		}
		s.look = rest
		if err := s.readFiles(ctx, first); err != nil {
			return err
		}
		if err := s.put(ctx); err != nil {
			return err
		}
		if err := s.x.keywordsOf(ctx, chosen); err != nil {
			return err
		}
		s.m.flush() // an answer says how many files are left
	}
	close(p.done)
	return nil
}
