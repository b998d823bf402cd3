package watch

import (
	"context"
	"maps"
	"slices"
	"time"

	"cairn/internal/text/walk"
)

// poller is a source that compares each walk of the workspace with the one before.
type poller struct {
	w    *Watcher
	seen map[string]state // by path
	cost time.Duration    // of the newest walk
}

// state identifies the state of a file.
type state struct{ size, modTime, changeTime int64 }

func openPoller(ctx context.Context, w *Watcher) (*poller, error) {
	p := &poller{w: w}
	_, err := p.look(ctx)
	return p, err
}

func (p *poller) close() error { return nil }

func (p *poller) run(ctx context.Context, tell func(change)) error {
	timer := time.NewTimer(p.pause())
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		changed, err := p.look(ctx)
		if err != nil {
			return err
		}
		for _, path := range changed {
			tell(change{path: path})
		}
		timer.Reset(p.pause())
	}
}

func (p *poller) pause() time.Duration { return max(p.w.options.PollEvery, pollShare*p.cost) }

// look walks the workspace. It returns the paths that are new or have changed since the
// last walk, and the paths that the reader holds and that do not exist. A file that cannot
// be read counts as unchanged.
func (p *poller) look(ctx context.Context) (changed []string, err error) {
	held := p.held()
	begin := time.Now()
	seen := make(map[string]state, len(p.seen))
	var closed []string
	err = p.w.tree.Walk(ctx, p.w.options.Walk, func(e walk.Entry) error {
		switch {
		case e.Reason == walk.Unreadable:
			closed = append(closed, e.Path)
		case e.Reason == walk.None:
			now := state{e.Size, e.ModTime, e.ChangeTime}
			if before, ok := p.seen[e.Path]; !ok || before != now {
				changed = append(changed, e.Path)
			}
			seen[e.Path] = now
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, path := range held {
		if _, ok := seen[path]; ok {
			continue
		}
		if within(path, closed) {
			seen[path] = p.seen[path]
		} else {
			changed = append(changed, path)
		}
	}
	p.seen, p.cost = seen, time.Since(begin)
	return changed, nil
}

// held returns the files that the reader holds. They can differ from those of the last
// walk: a reader reads later, and may have found files that existed only between two walks.
func (p *poller) held() []string {
	if p.w.options.Held == nil {
		return slices.Collect(maps.Keys(p.seen))
	}
	return p.w.options.Held()
}

// within reports whether path is one of places or below one.
func within(path string, places []string) bool {
	return slices.ContainsFunc(places, func(place string) bool { return walk.Under(path, place) })
}
