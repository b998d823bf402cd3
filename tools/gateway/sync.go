package gateway

import (
	"context"
	"errors"
	"strings"

	"cairn/internal/base/owner"
	"cairn/internal/toolbox"
)

// Sync makes the catalogue of a folder contain the approved tools of the servers, and none of
// servers that have been removed. It starts no server.
func (s *Store) Sync(ctx context.Context, box *owner.Folder) error {
	all, err := s.All()
	if err != nil {
		return err
	}
	known, err := toolbox.StatsOp.Call(ctx, box, struct{}{}, nil)
	if err != nil {
		return err
	}
	var errs []error
	for _, source := range known.Sources {
		name, ours := strings.CutPrefix(source, sourcePrefix)
		if _, ok := all[name]; ours && !ok {
			_, err := toolbox.RemoveOp.Call(ctx, box, source, nil)
			errs = append(errs, err)
		}
	}
	for _, server := range all {
		tools, err := s.Approved(&server)
		if err == nil && len(tools) > 0 {
			_, err = toolbox.ImportOp.Call(ctx, box, toolbox.ImportRequest{Source: server.Source(), Tools: tools}, nil)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
