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
	"time"

	"cairn/internal/base/home"
	"cairn/internal/stage/embedded"
	"cairn/internal/store/kv"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/records"
)

// A backup holds what cannot be derived: the tool catalogue, the usage, the question
// tasks, and the files below .cairn and .cuedeck. The first record holds the format.
type backupRecord struct {
	Format    int       `json:"cairn_backup,omitempty"`
	Made      time.Time `json:"made,omitzero"`
	Workspace string    `json:"workspace,omitempty"`

	toolbox.Line // of a part

	File    string `json:"file,omitempty"` // path in the folder
	Content []byte `json:"content,omitempty"`
}

const (
	backupFormat  = 1
	questionsPart = "questions"
	// maxBackupFile bounds a backed-up file in bytes.
	maxBackupFile = 16 << 20
)

// writtenFolders hold files that people wrote, such as cards and configuration.
var writtenFolders = []string{".cairn", ".cuedeck"}

// BackupReport counts the content of a backup.
type BackupReport struct {
	Records int `json:"records"`
	Files   int `json:"files"`
	// Kept lists files of the folder that differ from the backup and were not replaced.
	Kept []string `json:"kept,omitempty"`
	// Damaged counts the damaged lines that Restore skipped.
	Damaged int `json:"damaged,omitempty"`
}

// Backup writes a backup of the folder. Each part is a consistent snapshot.
func (w *Workspace) Backup(ctx context.Context, to io.Writer) (*BackupReport, error) {
	b := kv.NewLineWriter(to)
	report := &BackupReport{}
	b.Write(backupRecord{Format: backupFormat, Made: w.options.Now().UTC(), Workspace: w.selection.Root})
	record := func(l toolbox.Line) {
		report.Records++
		b.Write(backupRecord{Line: l})
	}
	tools, err := w.Tools(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := toolbox.BackupOp.Call(ctx, tools, struct{}{}, record); err != nil {
		return nil, err
	}
	questions, closeQuestions, err := w.questions()
	if err != nil {
		return nil, err
	}
	defer closeQuestions()
	all, err := questions.Since(ctx, 0)
	if err != nil {
		return nil, err
	}
	for _, r := range all.Records {
		record(toolbox.Line{Part: questionsPart, Bucket: r.Bucket, Key: []byte(r.Key), Value: r.Value})
	}
	if err := w.eachWritten(func(name string, content []byte) {
		report.Files++
		b.Write(backupRecord{File: name, Content: content})
	}); err != nil {
		return nil, err
	}
	return report, b.Close()
}

// questions opens the records of the question tasks in the folder's own file.
func (w *Workspace) questions() (store records.Store, closeFile func() error, err error) {
	place, err := home.Of(w.selection.Root)
	if err != nil {
		return nil, nil, err
	}
	file := stagesOf(place, nil)
	return records.NewFile(file, embedded.Buckets()...), file.Close, nil
}

// eachWritten calls fn with the files of writtenFolders in the order of their paths. It
// does not follow symbolic links.
func (w *Workspace) eachWritten(fn func(name string, content []byte)) error {
	root, err := os.OpenRoot(w.selection.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, folder := range writtenFolders {
		err := fs.WalkDir(root.FS(), folder, func(name string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist) && name == folder:
				return fs.SkipDir
			case err != nil:
				return err
			case !d.Type().IsRegular() || strings.HasSuffix(name, ".lock"):
				return nil
			}
			info, err := d.Info()
			if err != nil || info.Size() > maxBackupFile {
				return err
			}
			content, err := root.ReadFile(name)
			if err == nil {
				fn(name, content)
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.SkipDir) {
			return err
		}
	}
	return nil
}

// RestoreOptions configures Restore.
type RestoreOptions struct {
	// SkipDamaged skips damaged lines. Otherwise a damaged line is an error, and Restore
	// changes nothing.
	SkipDamaged bool
	// Overwrite replaces files of the folder that differ from the backup.
	Overwrite bool
}

// Restore replaces the records of the folder with those of a backup, and writes the
// missing files. It does not touch the index, which is derived from the documents.
func (w *Workspace) Restore(ctx context.Context, from io.Reader, o RestoreOptions) (*BackupReport, error) {
	list, damaged, err := readBackup(from)
	if err != nil {
		return nil, err
	}
	if damaged > 0 && !o.SkipDamaged {
		return nil, fmt.Errorf("%d lines of the backup are damaged or missing; nothing is restored without --skip-damaged", damaged)
	}
	report := &BackupReport{Damaged: damaged}
	var lines []toolbox.Line
	var questions []records.Record
	for _, r := range list {
		switch {
		case r.Part == questionsPart:
			questions = append(questions, r.Record())
		case r.Part != "":
			lines = append(lines, r.Line)
		}
	}
	report.Records = len(lines) + len(questions)
	tools, err := w.Tools(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := toolbox.RestoreOp.Call(ctx, tools, lines, nil); err != nil {
		return nil, err
	}
	store, closeQuestions, err := w.questions()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(records.Replace(ctx, store, questions), closeQuestions()); err != nil {
		return nil, err
	}
	return report, w.restoreFiles(list, o.Overwrite, report)
}

// readBackup returns the undamaged records, and the number of lines that are damaged or
// missing.
func readBackup(from io.Reader) (list []backupRecord, damaged int, err error) {
	damaged, err = kv.ReadLines(from, func(r backupRecord) error {
		if r.Format > backupFormat {
			return fmt.Errorf("the backup has format %d and this cairn reads format %d", r.Format, backupFormat)
		}
		list = append(list, r)
		return nil
	})
	if err == nil && len(list) == 0 {
		err = errors.New("the file is not a backup of cairn")
	}
	return list, damaged, err
}

// restoreFiles writes the files of a backup below the folders of writtenFolders.
func (w *Workspace) restoreFiles(list []backupRecord, overwrite bool, report *BackupReport) error {
	root, err := os.OpenRoot(w.selection.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, r := range list {
		if r.File == "" {
			continue
		}
		top, below, _ := strings.Cut(r.File, "/")
		if below == "" || !filepath.IsLocal(r.File) || path.Clean(r.File) != r.File || !slices.Contains(writtenFolders, top) {
			return fmt.Errorf("the backup has a file %.200q outside of %s", r.File, strings.Join(writtenFolders, " and "))
		}
		have, err := root.ReadFile(r.File)
		switch {
		case err == nil && bytes.Equal(have, r.Content):
			continue
		case err == nil && !overwrite:
			report.Kept = append(report.Kept, r.File)
			continue
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		}
		if err := root.MkdirAll(path.Dir(r.File), 0o755); err != nil {
			return err
		}
		if err := root.WriteFile(r.File, r.Content, 0o644); err != nil {
			return err
		}
		report.Files++
	}
	return nil
}
