package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"cairn/internal/base/atomicfile"
	"cairn/internal/base/home"
	"cairn/internal/base/owner"
	"cairn/internal/folder/config"
	"cairn/internal/store/kv"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/records"
)

// RestoreOptions configures Restore.
type RestoreOptions struct {
	// SkipDamaged skips damaged lines. Otherwise a damaged line is an error, and Restore
	// changes nothing.
	SkipDamaged bool
	// Overwrite replaces files of the folder that differ from the backup.
	Overwrite bool

	step func(string) error // tests let the write that it names fail; nil otherwise
}

// writing is called before the write of a file or of a part of the records.
func (o *RestoreOptions) writing(name string) error {
	if o.step == nil {
		return nil
	}
	return o.step(name)
}

// previousBackup returns the path of a new file in dir for the backup of the replaced
// records: before-restore.cairn, or before-restore-2.cairn after an earlier restore.
func previousBackup(dir string) string {
	path := filepath.Join(dir, "before-restore.cairn")
	for n := 2; ; n++ {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return path
		}
		path = filepath.Join(dir, fmt.Sprintf("before-restore-%d.cairn", n))
	}
}

// Restore replaces the records of the folder with those of a backup, and writes the
// missing files. It checks the whole backup first, and keeps the replaced records in a
// backup. After an error everything is as before; if the process is killed, the next one
// completes the restore, see finishRestore. Restore does not touch the index, which is
// derived from the documents.
func (w *Workspace) Restore(ctx context.Context, from io.Reader, o RestoreOptions) (*BackupReport, error) {
	r, err := w.checkBackup(from, o)
	if err != nil {
		return nil, err
	}
	defer r.root.Close()
	if !slices.ContainsFunc(r.list, func(r backupRecord) bool { return r.Part != "" || r.File != "" }) {
		return nil, errors.New("the backup contains no records and no files")
	}
	place, err := home.Of(w.selection.Root)
	if err == nil {
		err = place.Make()
	}
	if err != nil {
		return nil, err
	}
	release, err := owner.Lock(ctx, place.Records, w.options.Command)
	if err != nil {
		return nil, err
	}
	defer release()
	report := r.report
	report.Records, report.Files = len(r.next.tools)+len(r.next.questions), len(r.files)
	report.Previous = previousBackup(place.Records)
	var before recordSet
	err = atomicfile.WriteBy(report.Previous, 0o600, func(to *os.File) error {
		_, err := w.backup(ctx, to, before.add)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("keeping the present records: %w", err)
	}
	pending := filepath.Join(place.Records, pendingRestore)
	if err := atomicfile.WriteBy(pending, 0o600, func(to *os.File) error { return r.write(to) }); err != nil {
		return nil, err
	}
	return &report, errors.Join(w.replace(ctx, r, before, &o), os.Remove(pending))
}

// restore is a backup that can replace the records and files of a folder.
type restore struct {
	list   []backupRecord
	files  []restoredFile // to write
	next   recordSet
	report BackupReport
	root   *os.Root // of the folder; the caller closes it
}

// checkBackup reads and checks a backup.
func (w *Workspace) checkBackup(from io.Reader, o RestoreOptions) (r *restore, err error) {
	r = &restore{}
	r.report.Damaged, err = kv.ReadLines(from, func(line backupRecord) error {
		switch {
		case line.Format > backupFormat:
			return fmt.Errorf("the backup has format %d and this cairn reads format %d", line.Format, backupFormat)
		case line.Part == "":
		case line.Part != questionsPart && !slices.Contains(toolbox.Parts(), line.Part):
			return fmt.Errorf("the backup has an unknown part %.40q", line.Part)
		default:
			r.next.add(line.Line)
		}
		r.list = append(r.list, line)
		return nil
	})
	switch {
	case err != nil:
	case len(r.list) == 0:
		err = errors.New("the file is not a backup of cairn")
	case r.report.Damaged > 0 && !o.SkipDamaged:
		err = fmt.Errorf("%d lines of the backup are damaged or missing; nothing is restored without --skip-damaged", r.report.Damaged)
	default:
		r.root, err = os.OpenRoot(w.selection.Root)
	}
	if err != nil {
		return nil, err
	}
	if r.files, err = filesOf(r.root, r.list, o.Overwrite, &r.report); err != nil {
		return nil, errors.Join(err, r.root.Close())
	}
	return r, nil
}

// write writes what r restores as a backup.
func (r *restore) write(to io.Writer) error {
	b := kv.NewLineWriter(to)
	for _, line := range r.list {
		if line.File == "" {
			b.Write(line)
		}
	}
	for _, f := range r.files {
		b.Write(backupRecord{File: f.File, Content: f.Content, Before: f.before})
	}
	return b.Close()
}

// replace writes the files of r, and replaces the records before by those of r. After an
// error it restores both.
func (w *Workspace) replace(ctx context.Context, r *restore, before recordSet, o *RestoreOptions) (err error) {
	var undo []func() error
	defer func() {
		if err != nil {
			for _, f := range slices.Backward(undo) {
				err = errors.Join(err, f())
			}
		}
	}()
	for _, f := range r.files {
		undo = append(undo, f.undo(r.root))
		if err := o.writing(f.File); err != nil {
			return err
		}
		if err := atomicfile.WriteIn(r.root, f.File, f.Content, 0o644); err != nil {
			return err
		}
	}
	undo = append(undo, func() error {
		return w.replaceRecords(context.WithoutCancel(ctx), before, &RestoreOptions{})
	})
	return w.replaceRecords(ctx, r.next, o)
}

// recordSet holds all records of a folder.
type recordSet struct {
	tools     []toolbox.Line
	questions []records.Record
}

func (s *recordSet) add(l toolbox.Line) {
	if l.Part == questionsPart {
		s.questions = append(s.questions, l.Record())
	} else {
		s.tools = append(s.tools, l)
	}
}

// replaceRecords replaces the records of the folder.
func (w *Workspace) replaceRecords(ctx context.Context, s recordSet, o *RestoreOptions) error {
	tools, err := w.Tools(ctx)
	if err != nil {
		return err
	}
	if err := o.writing("tools"); err != nil {
		return err
	}
	if _, err := toolbox.RestoreOp.Call(ctx, tools, s.tools, nil); err != nil {
		return err
	}
	store, closeQuestions, err := w.questions()
	if err != nil {
		return err
	}
	if err = o.writing(questionsPart); err == nil {
		err = records.Replace(ctx, store, s.questions)
	}
	return errors.Join(err, closeQuestions())
}

// restoredFile is a file to write.
type restoredFile struct {
	backupRecord
	before  []byte   // the content, if it exists
	exists  bool     // before Restore
	missing []string // the folders to create, outermost first
}

// filesOf checks the files of a backup and the places below writtenFolders where they go. It
// returns those to write, and lists those to keep in report.
func filesOf(root *os.Root, list []backupRecord, overwrite bool, report *BackupReport) (files []restoredFile, err error) {
	for _, r := range list {
		if r.File == "" {
			continue
		}
		top, below, _ := strings.Cut(r.File, "/")
		if below == "" || !filepath.IsLocal(r.File) || path.Clean(r.File) != r.File || !slices.Contains(writtenFolders, top) {
			return nil, fmt.Errorf("the backup has a file %.200q outside of %s", r.File, strings.Join(writtenFolders, " and "))
		}
		f := restoredFile{backupRecord: r}
		if err := f.look(root); err != nil {
			return nil, err
		}
		switch {
		case f.exists && bytes.Equal(f.before, r.Content):
		case f.exists && !overwrite:
			report.Kept = append(report.Kept, r.File)
		default:
			files = append(files, f)
		}
	}
	return files, nil
}

// look reads what is at the place of f. It fails if that is neither a regular file nor
// missing, or if a folder above it is a link or a file.
func (f *restoredFile) look(root *os.Root) error {
	for i, c := range f.File {
		if c != '/' {
			continue
		}
		folder := f.File[:i]
		info, err := root.Lstat(folder)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			f.missing = append(f.missing, folder)
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("cannot restore %.200q: %s is not a directory", f.File, folder)
		}
	}
	info, err := root.Lstat(f.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("cannot restore %.200q: it exists and is not a regular file", f.File)
	}
	f.exists = true
	f.before, err = root.ReadFile(f.File)
	return err
}

// undo returns a function that restores the place of f.
func (f *restoredFile) undo(root *os.Root) func() error {
	return func() error {
		if f.exists {
			return atomicfile.WriteIn(root, f.File, f.before, 0o644)
		}
		err := root.Remove(f.File)
		for _, folder := range slices.Backward(f.missing) {
			_ = root.Remove(folder) // fails if another program has written into it
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
}

// pendingRestore is the name of the file, next to the records, in which Restore keeps what it
// writes until it has ended. It is a backup.
const pendingRestore = "restore.cairn"

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
	r, err := w.checkBackup(in, RestoreOptions{Overwrite: true})
	if err != nil {
		return err
	}
	defer r.root.Close()
	r.files = slices.DeleteFunc(r.files, func(f restoredFile) bool { return f.exists && !bytes.Equal(f.before, f.Before) })
	var before recordSet
	if _, err = w.backup(ctx, io.Discard, before.add); err == nil {
		err = w.replace(ctx, r, before, &RestoreOptions{})
	}
	if err != nil {
		return err
	}
	return os.Remove(name)
}
