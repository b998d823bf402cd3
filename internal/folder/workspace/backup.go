package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cairn/internal/base/atomicfile"
	"cairn/internal/base/health"
	"cairn/internal/base/home"
	"cairn/internal/folder/index"
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
	// Before is the replaced content of the file, in a pending restore.
	Before []byte `json:"before,omitempty"`
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
	// LeftOut lists files that Backup did not write, with the reason.
	LeftOut []string `json:"left_out,omitempty"`
	// Kept lists files of the folder that differ from the backup and were not replaced.
	Kept []string `json:"kept,omitempty"`
	// Damaged counts the damaged lines that Restore skipped.
	Damaged int `json:"damaged,omitempty"`
	// Previous is the backup of the records that Restore has replaced.
	Previous string `json:"previous,omitempty"`
}

// Backup writes a backup of the folder. Each part is a consistent snapshot.
func (w *Workspace) Backup(ctx context.Context, to io.Writer) (*BackupReport, error) {
	return w.backup(ctx, to, func(toolbox.Line) {})
}

// backup is Backup, and calls fn with each record that it writes.
func (w *Workspace) backup(ctx context.Context, to io.Writer, fn func(toolbox.Line)) (*BackupReport, error) {
	b := kv.NewLineWriter(to)
	report := &BackupReport{}
	b.Write(backupRecord{Format: backupFormat, Made: w.options.Now().UTC(), Workspace: w.selection.Root})
	record := func(l toolbox.Line) {
		report.Records++
		b.Write(backupRecord{Line: l})
		fn(l)
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
	if report.LeftOut, err = w.eachWritten(func(name string, content []byte) {
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

// eachWritten calls fn with the files of writtenFolders in the order of their paths, and
// returns those that it leaves out, with the reason. It does not follow symbolic links.
func (w *Workspace) eachWritten(fn func(name string, content []byte)) (leftOut []string, err error) {
	root, err := os.OpenRoot(w.selection.Root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for _, folder := range writtenFolders {
		err := fs.WalkDir(root.FS(), folder, func(name string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist) && name == folder:
				return fs.SkipDir
			case err != nil:
				return err
			case d.IsDir() || strings.HasSuffix(name, ".lock") || atomicfile.Temporary(d.Name()):
				return nil
			case !d.Type().IsRegular():
				leftOut = append(leftOut, name+" is not a regular file")
				return nil
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			if info.Size() > maxBackupFile {
				leftOut = append(leftOut, fmt.Sprintf("%s is larger than %d MiB", name, maxBackupFile>>20))
				return nil
			}
			content, err := root.ReadFile(name)
			if err == nil {
				fn(name, content)
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.SkipDir) {
			return nil, err
		}
	}
	return leftOut, nil
}

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
	var tools *health.Report
	box, err := w.Tools(ctx)
	if err == nil {
		tools, err = toolbox.VerifyOp.Call(ctx, box, repair, nil)
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
	found.Files = slices.Concat(found.Files, recoveredFiles(place), tools.Files, questions.Files)
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
