package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"cairn/internal/base/home"
	"cairn/internal/base/owner"
	"cairn/internal/folder/config"
	"cairn/internal/store/kv"
)

// pendingRestore is the name of the file, next to the records, in which Restore keeps what it
// writes until it has ended. It is a backup.
const pendingRestore = "restore.cairn"

// writePending writes the records in list, and files.
func writePending(to io.Writer, list []backupRecord, files []restoredFile) error {
	b := kv.NewLineWriter(to)
	for _, r := range list {
		if r.File == "" {
			b.Write(r)
		}
	}
	for _, f := range files {
		b.Write(backupRecord{File: f.File, Content: f.Content, Before: f.before})
	}
	return b.Close()
}

// finishRestoreOf is finishRestore for a process that opens only the tasks of a folder.
func finishRestoreOf(sel config.Selection, cfg config.Config) {
	place, err := home.Of(sel.Root)
	if err != nil {
		return
	}
	if _, err := os.Lstat(filepath.Join(place.Records, pendingRestore)); err != nil {
		return
	}
	if w, err := Open(context.Background(), sel, cfg, Reading, Options{}); err == nil {
		w.Close()
	}
}

// finishRestore completes a restore whose process was killed. It keeps a file that was
// changed since then. After an error it warns, and the next process tries again.
func (w *Workspace) finishRestore(ctx context.Context) {
	name := filepath.Join(w.place.Records, pendingRestore)
	if _, err := os.Lstat(name); err != nil {
		return
	}
	release, err := owner.Lock(ctx, w.place.Records, w.options.Command)
	if err == nil {
		err = errors.Join(w.replay(ctx, name), release())
	}
	if err == nil {
		return
	}
	if w.options.Logger.Warn("an interrupted restore is not complete", "error", err); w.options.Notice != nil {
		w.options.Notice(fmt.Sprintf("an interrupted restore is not complete: %v; run cairn restore again", err))
	}
}

// replay completes the restore in the file name, unless another process has done so.
func (w *Workspace) replay(ctx context.Context, name string) error {
	in, err := os.Open(name)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}
	defer in.Close()
	list, damaged, err := readBackup(in)
	if err == nil && damaged > 0 {
		err = fmt.Errorf("%d lines of %s are damaged", damaged, name)
	}
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(w.selection.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	files, err := filesOf(root, list, true, &BackupReport{})
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(f restoredFile) bool { return f.exists && !bytes.Equal(f.before, f.Before) })
	next, err := recordsOf(list)
	if err != nil {
		return err
	}
	var before recordSet
	if _, err = w.backup(ctx, io.Discard, before.add); err == nil {
		err = w.replace(ctx, root, files, before, next, &RestoreOptions{})
	}
	if err != nil {
		return err
	}
	return os.Remove(name)
}
