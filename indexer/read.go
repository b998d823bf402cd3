package indexer

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"strings"
	"time"

	"cairn/internal/markdown"
	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/walk"
)

// outcomeKind classifies a file that was read.
type outcomeKind int

const (
	touched outcomeKind = iota // other size or time, same bytes
	changed                    // new, or other bytes: put holds it
	skipped                    // not indexed, for a reason
	absent                     // removed since the walk
	unreadable
)

// outcome is the result of reading one file.
type outcome struct {
	kind outcomeKind
	path string
	fileInfo
	hash   [sha256.Size]byte // of touched and changed
	put    *docs.Put
	reason string // of skipped
	cut    string // why only a part of a changed file is indexed; "" when all is
}

// cutPrefix begins the reason of a file of which only a part is indexed.
const cutPrefix = "indexed in part: "

// cutOf returns why only a part of a parsed file is indexed.
func cutOf(d *markdown.Document, text string) string {
	var why []string
	if d.Cut {
		why = append(why, "too many headings")
	}
	if wordsEnd(text) < len(text) {
		why = append(why, "too many different words")
	}
	if why == nil {
		return ""
	}
	return cutPrefix + strings.Join(why, ", ")
}

// racyTime is how old a file's last change must be for its time to be trusted:
// file systems stamp with a clock of some milliseconds, so a second change of the
// same size could leave the same time. The scan reads a younger file once more at
// its end, and records it without a time if it still changes.
const racyTime = 50 * time.Millisecond

// readAttempts bounds how often a file that changes during the read is read. After
// that the index holds one of its states, without a time.
const readAttempts = 3

// read reads one file that the walk found new or changed, and records that as an
// attempt. A panic leaves the record.
func (s *scanner) read(e walk.Entry) outcome {
	if e.Size < minAttempted {
		return s.readFile(e)
	}
	if err := s.x.attempts.begin(e.Path); err != nil {
		return outcome{kind: unreadable, path: e.Path}
	}
	o := s.readFile(e)
	if err := s.x.attempts.end(true, e.Path); err != nil {
		return outcome{kind: unreadable, path: e.Path}
	}
	return o
}

func (s *scanner) readFile(e walk.Entry) outcome {
	o := outcome{path: e.Path}
	data, info, err := s.readSettled(e.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		o.kind = absent
	case errors.Is(err, walk.ErrSymlink):
		o.kind, o.reason = skipped, walk.Symlink.String()
	case errors.Is(err, walk.ErrSpecial):
		o.kind, o.reason = skipped, walk.Special.String()
	case errors.Is(err, walk.ErrSize):
		o.kind, o.reason = skipped, walk.TooLarge.String()
	case err != nil:
		o.kind = unreadable
	default:
		s.compare(&o, data, info)
	}
	return o
}

// fileInfo is what a later walk compares a file with. modTime is 0 when it cannot
// be trusted, changeTime when it is not known.
type fileInfo struct{ size, modTime, changeTime int64 }

// isAs reports whether a file that the walk found equals the record. changeTime,
// which programs cannot set, reveals an edit that keeps the size and restores the
// time. Without it, as on systems that have none, the others decide.
func (i fileInfo) isAs(e walk.Entry) bool {
	return i.size == e.Size && i.modTime == e.ModTime && (i.changeTime == 0 || e.ChangeTime == 0 || i.changeTime == e.ChangeTime)
}

// readSettled reads a file until it does not change during the read, or, after
// readAttempts, returns one state of it without a time.
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
		if after.Size() != info.size || before.Size() != info.size || !after.ModTime().Equal(before.ModTime()) || walk.ChangeTime(after) != walk.ChangeTime(before) {
			continue
		}
		if changed := walk.ChangeTime(after); s.settled(after.ModTime()) && (changed == 0 || s.settled(time.Unix(0, changed))) {
			info.modTime, info.changeTime = after.ModTime().UnixNano(), changed
		}
		return data, info, nil
	}
	return data, info, err
}

// settled reports whether a time of a file is long enough ago to be trusted.
func (s *scanner) settled(at time.Time) bool {
	age := s.x.now().Sub(at)
	return age > racyTime || age < -racyTime
}

// compare decides whether the bytes are new, and parses their text if they are.
func (s *scanner) compare(o *outcome, data []byte, info fileInfo) {
	sum := sha256.Sum256(data)
	o.fileInfo, o.hash = info, sum
	if f, ok := s.known[o.path]; ok && f.Hash == sum {
		o.kind = touched
		return
	}
	text, _, err := markdown.TextOf(o.path, data, s.x.options.Masks)
	switch reason := walk.Check(text); {
	case err != nil:
		o.kind, o.reason = skipped, err.Error()
	case reason != walk.None:
		o.kind, o.reason = skipped, reason.String()
	}
	if o.kind == skipped {
		if info.modTime == 0 {
			o.fileInfo = fileInfo{}
		}
		return
	}
	d := markdown.Parse(o.path, text)
	doc := store.Document{
		Path: o.path, Title: d.Title, Hash: hex.EncodeToString(sum[:]),
		Size: o.size, ModTime: o.modTime, Labels: d.Labels, Sections: d.Sections,
	}
	source := string(text)
	s.x.chunker.Chunk(&doc, source)
	o.cut = cutOf(d, source)
	o.kind, o.put = changed, &docs.Put{Document: doc, Text: text, ChangeTime: o.changeTime}
}
