package watch

import (
	"context"
	"slices"
	"time"

	"cairn/internal/walk"
)

// poller compares one walk with the next.
type poller struct {
	w       *Watcher
	seen    map[string]state // by path
	removed []string         // that the newest walk was the first to miss
	cost    time.Duration    // of the newest walk
}

// state is by what a file is known to be the same.
type state struct{ size, modTime, changeTime int64 }

func openPoller(ctx context.Context, w *Watcher) (*poller, error) {
	p := &poller{w: w}
	_, err := p.look(ctx)
	return p, err
}

func (p *poller) close() error { return nil }

func (p *poller) run(ctx context.Context, tell chan<- change) error {
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
			select {
			case tell <- change{path: path}:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		timer.Reset(p.pause())
	}
}

func (p *poller) pause() time.Duration { return max(p.w.options.PollEvery, pollShare*p.cost) }

// look walks the workspace and returns the paths that differ from the walk
// before. A file that cannot be looked at is as it was. A path that is missing is
// returned twice, by two walks: a reader, which looks later than the walk, may have
// found it made again, and before the next walk it may have been removed again.
func (p *poller) look(ctx context.Context) (changed []string, err error) {
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
	for _, path := range p.removed {
		if _, ok := seen[path]; !ok {
			changed = append(changed, path)
		}
	}
	p.removed = nil
	for path, before := range p.seen {
		if _, ok := seen[path]; ok {
			continue
		}
		if within(path, closed) {
			seen[path] = before
			continue
		}
		changed = append(changed, path)
		p.removed = append(p.removed, path)
	}
	p.seen, p.cost = seen, time.Since(begin)
	return changed, nil
}

// within reports whether path is one of places or below it.
func within(path string, places []string) bool {
	return slices.ContainsFunc(places, func(place string) bool { return walk.Under(path, place) })
}
