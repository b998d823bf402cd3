package workspace

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"cairn/internal/base/checksum"
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
	box, err := w.Tools(ctx)
	if err == nil {
		var tools []checksum.File
		tools, err = toolbox.VerifyOp.Call(ctx, box, repair, nil)
		found.Files = append(found.Files, tools...)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil { // the files cannot be opened
		found.Files = append(found.Files, checksum.File{Name: "tools", Problems: []string{err.Error()}})
	}
	return found, verifyStages(place, found, repair)
}

// recoveredFiles returns the damaged files that remain after the recovery of their
// records. The zero Place has none.
func recoveredFiles(place home.Place) (files []checksum.File) {
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
		files = append(files, checksum.File{
			Name: kept, Bytes: info.Size(),
			Problems: []string{strings.TrimSuffix(kept, kv.DamagedSuffix) + " was damaged, and its records were recovered"},
			Repaired: "remove " + name + " if nothing is missed",
		})
	}
	return files
}

// verifyStages adds the file of the question tasks to found, if there is one.
func verifyStages(place home.Place, found *index.Verified, repair bool) error {
	file := stagesOf(place, nil)
	defer file.Close()
	checked, err := file.Verify()
	if err == nil && repair && len(checked.Problems) > 0 && checked.Repaired == "" {
		checked.Repaired, err = file.Repair()
	}
	if checked.Name != "" {
		found.Files = append(found.Files, checked)
	}
	return err
}
