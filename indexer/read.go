package indexer

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"strings"
	"time"
	"unicode/utf8"

	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/store/ngram"
	"cairn/internal/text/convert"
	"cairn/internal/text/markdown"
	"cairn/internal/text/sandbox"
	"cairn/internal/text/walk"
)

// outcomeKind classifies a file that was read.
type outcomeKind int

const (
	touched outcomeKind = iota // the size or time changed, the bytes did not
	changed                    // a new file or new bytes, in put
	skipped                    // not indexed, with a reason
	absent                     // removed after the walk
	unreadable
)

// outcome is the result of reading one file.
type outcome struct {
	kind outcomeKind
	path string
	fileInfo
	hash   [sha256.Size]byte // of touched and changed
	grams  ngram.Filter      // of a file that was read and not of touched
	put    *docs.Put
	reason string // of skipped, and of unreadable if it is not "unreadable"
	retry  int64  // of skipped: the Retry of docs.Skipped
	cut    string // why only a part of a changed file is indexed; "" if all of it is
}

// cutPrefix is the prefix of the reason for indexing only a part of a file.
const cutPrefix = "indexed in part: "

// cutOf returns why only a part of a parsed file is indexed, or "" if all of it is. whole
// reports that its chunks cover the text.
func cutOf(d *markdown.Document, text string, whole bool) string {
	var why []string
	if d.Cut {
		why = append(why, "too many headings")
	}
	if !whole || wordsEnd(text) < len(text) {
		why = append(why, "too many words")
	}
	if why == nil {
		return ""
	}
	return cutPrefix + strings.Join(why, ", ")
}

// racyTime is the age above which the time of a file's last change is reliable. File
// systems use a clock with a resolution of some milliseconds, so two changes in quick
// succession may have the same time. The scan reads a younger file again at its end, and
// records it without a time if it is still changing.
const racyTime = 50 * time.Millisecond

// readAttempts is how many times to read a file that changes during the read. After the
// last attempt, the file is indexed as read, without a time.
const readAttempts = 3

// read reads a file that is new or changed.
func (s *scanner) read(e walk.Entry) outcome {
	o := outcome{path: e.Path}
	data, info, err := s.readSettled(e.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		o.kind = absent
	case errors.Is(err, walk.ErrSymlink):
		o.kind, o.reason = skipped, string(walk.Symlink)
	case errors.Is(err, walk.ErrSpecial):
		o.kind, o.reason = skipped, string(walk.Special)
	case errors.Is(err, walk.ErrSize):
		o.kind, o.reason = skipped, string(walk.TooLarge)
	case err != nil:
		o.kind = unreadable
	default:
		s.compare(&o, data, info)
	}
	return o
}

// fileInfo is the record with which a later walk compares a file. modTime is 0 if it is
// not reliable, changeTime if it is unknown.
type fileInfo struct{ size, modTime, changeTime int64 }

// infoOf returns the record of a skipped file.
func infoOf(f docs.Skipped) fileInfo { return fileInfo{f.Size, f.ModTime, f.ChangeTime} }

// matches reports whether a file that the walk found is unchanged according to the
// record. changeTime, which programs cannot set, reveals an edit that keeps the size and
// restores the time. Not all systems have it.
func (i fileInfo) matches(e walk.Entry) bool {
	return i.size == e.Size && i.modTime == e.ModTime && (i.changeTime == 0 || e.ChangeTime == 0 || i.changeTime == e.ChangeTime)
}

// readSettled reads a file, again if the file changed during the read. After
// readAttempts it returns the bytes without a time.
func (s *scanner) readSettled(path string) (data []byte, info fileInfo, err error) {
	for range readAttempts {
		var before, after fs.FileInfo
		data, before, err = s.x.stores.Files.ReadFile(path, s.x.options.Walk.SizeOf(path))
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

// settled reports whether a file's time is old enough to be reliable.
func (s *scanner) settled(at time.Time) bool {
	age := s.x.now().Sub(at)
	return age > racyTime || age < -racyTime
}

// gramsOf returns the filter of a file, which is decoded and whose secrets are masked as in a
// scan of its lines.
func (x *Indexer) gramsOf(data []byte) ngram.Filter {
	text := markdown.Decoded(data)
	if walk.Check(text) != walk.None {
		return ngram.NotText
	}
	maker := x.makers.Get().(*ngram.Maker)
	defer x.makers.Put(maker)
	text, secrets := x.options.Masks.Mask(text)
	return maker.Filter(text, secrets > 0 || !utf8.Valid(data))
}

// retryTime is when a file whose conversion exceeded a limit is read again: once, since the
// machine may have been short of memory.
const retryTime = 24 * time.Hour

// compare sets the outcome of a file that was read, and parses the text if it changed.
func (s *scanner) compare(o *outcome, data []byte, info fileInfo) {
	sum := sha256.Sum256(data)
	o.fileInfo, o.hash = info, sum
	if f, ok := s.known[o.path]; ok && f.Hash == sum {
		o.kind = touched
		return
	}
	o.grams = s.x.gramsOf(data)
	text, _, err := s.x.textOf(o.path, data, s.x.options.Masks)
	switch reason := walk.Check(text); {
	case err != nil:
		s.refuse(o, err)
	case reason != walk.None:
		o.kind, o.reason = skipped, string(reason)
	default:
		s.parse(o, text)
	}
	if o.kind == skipped && info.modTime == 0 {
		o.fileInfo = fileInfo{}
	}
}

// refuse sets the outcome of a file without a text.
func (s *scanner) refuse(o *outcome, err error) {
	o.kind, o.reason = skipped, err.Error()
	if _, ok := errors.AsType[*convert.Error](err); ok {
		return
	}
	if _, ok := errors.AsType[*sandbox.Error](err); !ok { // the system refuses processes
		o.kind = unreadable
		return
	}
	if before := s.verdicts[o.path]; before.Retry == 0 || before.Reason != o.reason || infoOf(before) != o.fileInfo {
		o.retry = s.x.now().Add(retryTime).UnixNano()
	}
}

// parse parses the text of a changed file. It records the attempt if the text is large;
// the record remains if parsing ends the process.
func (s *scanner) parse(o *outcome, text []byte) {
	if len(text) >= minAttempted {
		if err := s.x.attempts.begin(o.path); err != nil {
			o.kind, o.reason = unreadable, err.Error()
			return
		}
		defer func() {
			if err := s.x.attempts.end(true, o.path); err != nil {
				o.kind, o.reason = unreadable, err.Error()
			}
		}()
	}
	d := markdown.Parse(o.path, text)
	doc := store.Document{
		Path: o.path, Title: d.Title, Hash: hex.EncodeToString(o.hash[:]),
		Size: o.size, ModTime: o.modTime, Labels: d.Labels, Sections: d.Sections,
	}
	source := string(text)
	whole := s.chunker.Chunk(&doc, source)
	o.cut = cutOf(d, source, whole)
	o.kind, o.put = changed, &docs.Put{Document: doc, Text: text, ChangeTime: o.changeTime, Grams: o.grams}
}
