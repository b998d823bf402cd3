package workspace

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cairn/internal/base/health"
	"cairn/internal/base/home"
	"cairn/internal/folder/index"
	"cairn/internal/store/kv"
	"cairn/internal/toolbox"
)

// Verify reads all files of the index, the tools and the question tasks, and compares
// their checksums. With repair, it rebuilds damaged derived files and recovers damaged
// records.
func (w *Workspace) Verify(ctx context.Context, repair bool) (*index.Verified, error) {
	found, err := index.VerifyOp.Call(ctx, w.Folder, index.VerifyRequest{Repair: repair}, nil)
	if err != nil {
		return nil, err
	}
	place, err := home.Of(w.selection.Root)
	if err != nil {
		return nil, err
	}
	found.Files = append(found.Files, recoveredFiles(place)...)
	var tools *health.Report
	box, err := w.Tools(ctx)
	if err == nil {
		tools, err = toolbox.VerifyOp.Call(ctx, box, repair, nil)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil { // the files cannot be opened
		tools = &health.Report{Files: []health.File{{Name: "tools", Problems: []string{err.Error()}}}}
	}
	stages := stagesOf(place, nil)
	defer stages.Close()
	questions, err := health.Check(ctx, []health.Part{stages.Part()}, repair)
	if err != nil {
		return nil, err
	}
	found.Files = slices.Concat(found.Files, tools.Files, questions.Files)
	return found, nil
}

// recoveredFiles returns the damaged files that remain after the recovery of their
// records. The zero Place has none.
func recoveredFiles(place home.Place) (files []health.File) {
	if place.Records == "" {
		return nil
	}
	names, _ := filepath.Glob(filepath.Join(place.Records, "*.db"+kv.DamagedSuffix)) // the pattern is valid
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			continue
		}
		kept := filepath.Base(name)
		files = append(files, health.File{
			Name: kept, Bytes: info.Size(),
			Problems: []string{strings.TrimSuffix(kept, kv.DamagedSuffix) + " was damaged, and its records were recovered"},
			Repaired: "remove " + name + " if nothing is missed",
		})
	}
	return files
}
