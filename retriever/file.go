package retriever

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strings"
	"time"
	"unicode/utf8"

	"cairn/internal/markdown"
	"cairn/internal/store/docs"
)

const (
	// maxFile is the largest file that is read, in bytes: what the indexer takes.
	maxFile = 10 << 20
	// maxCached is the largest file that is kept parsed, in bytes.
	maxCached = 1 << 20
	// fresh is how long after a file's last change its time and size are not
	// proof enough that it is the same: some file systems count seconds.
	fresh = 2 * time.Second
)

// parsedFile is one file as it was at one moment. It is not changed.
type parsedFile struct {
	path    string
	size    int64
	modTime time.Time
	young   bool   // was changed less than fresh before it was read
	hash    string // SHA-256, hex
	text    []byte
	body    int   // length of the byte order mark
	lines   []int // offset of every line
	doc     *markdown.Document
}

// open reads and parses a file of the workspace, or takes it from the cache
// when its size and time are unchanged. It opens what the index holds and what
// has an indexed extension.
func (r *Retriever) open(name string) (f *parsedFile, cached bool, err error) {
	if r.sources.Root == nil {
		return nil, false, fmt.Errorf("reading %q: there is no workspace folder", name)
	}
	name, err = clean(name)
	if err != nil {
		return nil, false, err
	}
	if !slices.Contains(r.options.Extensions, strings.ToLower(path.Ext(name))) {
		indexed := false
		err := r.sources.Documents.View(func(reader *docs.Reader) (err error) {
			_, indexed, err = reader.File(name)
			return err
		})
		if err != nil {
			return nil, false, fmt.Errorf("looking up %q: %w", name, err)
		}
		if !indexed {
			return nil, false, invalid("path", "%.200q is not indexed: want a file that is, such as %s", name, strings.Join(r.options.Extensions, ", "))
		}
	}
	file, err := r.sources.Root.Open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, r.missingFile(name)
	case err != nil && strings.Contains(err.Error(), "escapes"):
		return nil, false, invalid("path", "%.200q leads out of the workspace", name)
	case err != nil:
		return nil, false, fmt.Errorf("reading %q: %w", name, err)
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("reading %q: %w", name, err)
	case !info.Mode().IsRegular():
		return nil, false, invalid("path", "%.200q is not a file", name)
	case info.Size() > maxFile:
		return nil, false, invalid("path", "%.200q has %d bytes, more than the %d that are read", name, info.Size(), maxFile)
	}
	old, ok := r.parsed.Get(name)
	same := ok && old.size == info.Size() && old.modTime.Equal(info.ModTime())
	if same && !old.young {
		return old, true, nil
	}
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, false, fmt.Errorf("reading %q: %w", name, err)
	}
	if !utf8.Valid(text) {
		return nil, false, invalid("path", "%.200q is not UTF-8 text", name)
	}
	sum := sha256.Sum256(text)
	hash := hex.EncodeToString(sum[:])
	if same && old.hash == hash {
		return old, true, nil
	}
	f = &parsedFile{
		path: name, size: info.Size(), modTime: info.ModTime(), young: time.Since(info.ModTime()) < fresh,
		hash: hash, text: text, lines: lineStarts(text), doc: markdown.Parse(name, text, nil),
	}
	if strings.HasPrefix(string(text[:min(3, len(text))]), "\ufeff") {
		f.body = 3
	}
	if len(text) <= maxCached {
		r.parsed.Add(name, f)
	}
	return f, false, nil
}

// lineStarts returns the offset of every line; text that ends with a line break
// has no empty line after it. An empty text has none.
func lineStarts(text []byte) []int {
	var starts []int
	next := 0
	for i, c := range text {
		if i == next {
			starts = append(starts, i)
		}
		if c == '\n' || c == '\r' && (i+1 == len(text) || text[i+1] != '\n') {
			next = i + 1
		}
	}
	return starts
}

// line returns the number, from 1, of the line that holds the byte at offset.
func (f *parsedFile) line(offset int) int { return max(1, sort.SearchInts(f.lines, offset+1)) }

// linesOf returns the lines of [start, end).
func (f *parsedFile) linesOf(start, end int) Lines {
	return Lines{f.line(start), f.line(max(start, end-1))}
}
