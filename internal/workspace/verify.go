package workspace

import (
	"context"

	"cairn/internal/home"
	"cairn/internal/index"
	"cairn/internal/kv"
)

// Verify reads all files of the folder and compares their checksums: those of the index,
// of the tools and of the question tasks. With repair, what is derived is built again and
// records are recovered.
func (w *Workspace) Verify(ctx context.Context, repair bool) (*index.Verified, error) {
	found := &index.Verified{}
	if w.remote == nil {
		var err error
		if found, err = index.VerifyOp.Call(ctx, w.folder, index.VerifyRequest{Repair: repair}, nil); err != nil {
			return nil, err
		}
	}
	box, err := w.toolbox()
	if err != nil {
		return nil, err
	}
	tools, err := box.Verify(ctx, repair)
	if err != nil {
		return nil, err
	}
	found.Files = append(found.Files, tools...)
	place, err := home.Of(w.selection.Root)
	if err != nil {
		return nil, err
	}
	return found, verifyStages(place, found, repair)
}

// verifyStages adds the file of the question tasks, if there is one.
func verifyStages(place home.Place, found *index.Verified, repair bool) error {
	var recovery *kv.Recovery
	file := stagesOf(place, func(r *kv.Recovery) { recovery = r })
	defer file.Close()
	checked, err := file.Verify()
	if err == nil && repair && len(checked.Problems) > 0 {
		checked.Repaired = "its damaged snapshots are removed"
		err = file.Repair()
	}
	if recovery != nil { // of a file that could not even be opened, without being asked for
		checked.Problems, checked.Repaired = recovery.Problems, recovery.String()
	}
	if checked.Name != "" {
		found.Files = append(found.Files, checked)
	}
	return err
}
