package workspace

import (
	"context"
	"sync"

	"cairn/graphrank"
	"cairn/internal/base/owner"
	"cairn/internal/toolbox"
)

// ownToolbox is the toolbox that a workspace opens for its first query with a context,
// unless Options.Toolbox is set.
type ownToolbox struct {
	mu     sync.Mutex
	box    *toolbox.Toolbox
	closed bool
}

// readUsage calls fn with the folder's co-usage graph.
func (w *Workspace) readUsage(fn func(*graphrank.Graph) error) error {
	box, err := w.toolbox()
	if err != nil {
		return err
	}
	return box.Read(context.Background(), fn)
}

func (w *Workspace) toolbox() (*toolbox.Toolbox, error) {
	if w.options.Toolbox != nil {
		return w.options.Toolbox, nil
	}
	own := &w.ownTools
	own.mu.Lock()
	defer own.mu.Unlock()
	if own.closed {
		return nil, owner.ErrEnded
	}
	if own.box != nil {
		return own.box, nil
	}
	o := w.options
	box, err := toolbox.Open(context.Background(), toolbox.Options{
		Root: w.selection.Root, HalfLife: w.config.Usage.HalfLife(), Description: o.Description, Model: o.Model, AnyModel: true, Command: o.Command, Logger: o.Logger,
	})
	own.box = box
	return box, err
}

func (own *ownToolbox) close() error {
	own.mu.Lock()
	defer own.mu.Unlock()
	own.closed = true
	if own.box == nil {
		return nil
	}
	return own.box.Close()
}
