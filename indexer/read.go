package indexer

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"time"

	"cairn/internal/markdown"
	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/walk"
)

// outcomeKind says what became of a file.
type outcomeKind int

const (
	touched    outcomeKind = iota // other size or time, same bytes
	changed                       // new, or other bytes: put holds it
	skipped                       // not to be indexed, for a reason
	absent                        // gone since the walk saw it
	unreadable                    // err says why
)

// outcome is what looking at one file came to.
type outcome struct {
	kind          outcomeKind
	path          string
	size, modTime int64             // modTime is 0 when it is not to be trusted
	hash          [sha256.Size]byte // of touched and changed
	put           *docs.Put
	reason        walk.Reason
	err           error
}

// racyTime is how young a file may be when it is read so that its time is
// still trusted: file systems stamp with a clock of some milliseconds, so a
// second change of the same size could leave the same time. Such a file is
// looked at once more at the end of the scan, and recorded without a time if it
// still changes.
const racyTime = 50 * time.Millisecond

// readAttempts bounds how often a file that changes under the reader is read
// again. What is indexed after that is one of its states, without a time.
const readAttempts = 3

// read looks at one file that the walk found new or changed.
func (s *scanner) read(e walk.Entry) outcome {
	o := outcome{path: e.Path}
	data, info, err := s.readSettled(e.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		o.kind = absent
	case errors.Is(err, walk.ErrSymlink):
		o.kind, o.reason = skipped, walk.Symlink
	case errors.Is(err, walk.ErrSpecial):
		o.kind, o.reason = skipped, walk.Special
	case errors.Is(err, walk.ErrSize):
		o.kind, o.reason = skipped, walk.TooLarge
	case err != nil:
		o.kind, o.err = unreadable, err
	default:
		if o.reason = walk.Check(data); o.reason != walk.None {
			o.kind = skipped
			if info.modTime != 0 {
				o.size, o.modTime = info.size, info.modTime
			}
			return o
		}
		o.size, o.modTime = info.size, info.modTime
		s.compare(&o, data)
	}
	return o
}

// fileInfo is what a later walk compares a file with.
type fileInfo struct{ size, modTime int64 }

// readSettled reads a file that does not change meanwhile, or, failing that,
// one state of it with a time that no walk will find.
func (s *scanner) readSettled(path string) (data []byte, info fileInfo, err error) {
	for range readAttempts {
		var before, after fs.FileInfo
		data, before, err = s.x.stores.Files.ReadFile(path, s.x.options.Walk.MaxSize)
		if errors.Is(err, walk.ErrChanged) {
			continue
		}
		if err != nil {
			return nil, fileInfo{}, err
		}
		info = fileInfo{size: int64(len(data))}
		after, err = s.x.stores.Files.Stat(path)
		if err != nil {
			return nil, fileInfo{}, err
		}
		if after.Size() != info.size || before.Size() != info.size || !after.ModTime().Equal(before.ModTime()) {
			continue
		}
		if age := s.x.now().Sub(after.ModTime()); age > racyTime || age < -racyTime {
			info.modTime = after.ModTime().UnixNano()
		}
		return data, info, nil
	}
	return data, info, err
}

// compare decides whether the bytes are new, and parses them if they are.
func (s *scanner) compare(o *outcome, data []byte) {
	sum := sha256.Sum256(data)
	o.hash = sum
	if f, ok := s.known[o.path]; ok && f.Hash == sum {
		o.kind = touched
		return
	}
	d := markdown.Parse(o.path, data, s.x.options.Markdown)
	doc := store.Document{
		Path: o.path, Title: d.Title, Hash: hex.EncodeToString(sum[:]),
		Size: o.size, ModTime: o.modTime, Labels: d.Labels, Sections: d.Sections,
	}
	s.x.chunker.Chunk(&doc, string(data))
	o.kind, o.put = changed, &docs.Put{Document: doc, Text: data}
}
