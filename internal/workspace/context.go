package workspace

import (
	"errors"
	"sync"

	"cairn/internal/owner"
	"cairn/internal/toolbox"
	"cairn/internal/usage"
)

// sharedUsage is the graph of a workspace, opened when it is first needed.
type sharedUsage struct {
	mu     sync.Mutex
	store  *usage.Store
	under  func() error // closes what the graph is kept in
	closed bool
}

// usageGraph returns what is used together in the folder.
func (w *Workspace) usageGraph() (*usage.Store, error) {
	if w.options.Usage != nil {
		return w.options.Usage, nil
	}
	u := &w.usage
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return nil, owner.ErrEnded
	}
	if u.store != nil {
		return u.store, nil
	}
	// The graph is the folder's own, also where a store holds the index: w.dir is
	// then another folder.
	store, file, err := toolbox.OpenUsage(owner.IndexDir(w.selection.Root), func() error { return owner.MakeIndexDir(w.selection.Root) }, w.config.Usage)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	u.store, u.under = store, file.Close
	return store, nil
}

func (u *sharedUsage) close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	if u.store == nil {
		return nil
	}
	err := u.under()
	u.store = nil
	return err
}
