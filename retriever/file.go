package retriever

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
	"unicode/utf8"

	"cairn/internal/store/docs"
	"cairn/internal/text/markdown"
	"cairn/internal/text/outline"
	"cairn/internal/text/walk"
)

const (
	// maxCached is the size of the largest file in the cache of parsed files, in bytes.
	maxCached = 1 << 20
	// fresh is the age below which an unchanged time and size do not prove that a file
	// is unchanged: some file systems store times in seconds.
	fresh = 2 * time.Second
)

// parsedFile is one version of a file. It is immutable.
type parsedFile struct {
	path    string
	size    int64
	modTime time.Time
	young   bool   // changed less than fresh before it was read
	hash    string // SHA-256 of the file, hex
	masked  int    // number of secrets masked in text
	text    []byte
	body    int // offset of the text after the byte order mark
	lines   markdown.Lines
	doc     *markdown.Document
}

// open reads and parses a file of the workspace, or returns it from the cache if its
// size and time are unchanged. It opens files that are indexed and files that the
// next indexing run could add.
func (r *Retriever) open(name string) (f *parsedFile, cached bool, err error) {
	name, err = walk.Clean(name)
	if err != nil {
		return nil, false, &InvalidError{Field: "path", Reason: err.Error()}
	}
	if r.sources.Documents.IsRemote() {
		return r.openStored(name)
	}
	if r.sources.Files == nil {
		return nil, false, fmt.Errorf("reading %q: there is no workspace folder", name)
	}
	info, err := r.sources.Files.Stat(name)
	if err != nil {
		return nil, false, r.unreadable(name, err)
	}
	if err := r.permitted(name); err != nil {
		return nil, false, err
	}
	old, ok := r.parsed.Get(name)
	if ok && !old.young && old.size == info.Size() && old.modTime.Equal(info.ModTime()) {
		return old, true, nil
	}
	data, info, err := r.sources.Files.ReadFile(name, markdown.MaxSize(name))
	if err != nil {
		return nil, false, r.unreadable(name, err)
	}
	sum := sha256.Sum256(data)
	hash := hex.EncodeToString(sum[:])
	if ok && old.hash == hash && old.size == info.Size() && old.modTime.Equal(info.ModTime()) {
		return old, true, nil
	}
	text, masked, err := markdown.TextOf(name, data, r.options.Masks)
	if err != nil {
		return nil, false, invalid("path", "%q cannot be converted to Markdown: %v", name, err)
	}
	if !utf8.Valid(text) {
		return nil, false, invalid("path", "%q is not UTF-8 text: convert it to UTF-8", name)
	}
	return r.keepParsed(&parsedFile{path: name, masked: masked, size: info.Size(), modTime: info.ModTime(), hash: hash, text: text}), false, nil
}

// openStored is open for documents on a server.
func (r *Retriever) openStored(name string) (f *parsedFile, cached bool, err error) {
	err = r.sources.Documents.View(func(reader *docs.Reader) error {
		doc, err := reader.Document(name)
		if err != nil || doc == nil {
			return err
		}
		modTime := time.Unix(0, doc.ModTime)
		if f, cached = r.parsed.Get(name); !cached || f.hash != doc.Hash || !f.modTime.Equal(modTime) {
			cached = false
			f = r.keepParsed(&parsedFile{path: name, size: doc.Size, modTime: modTime, hash: doc.Hash, text: reader.Text(name)})
		}
		return nil
	})
	if err == nil && f == nil {
		err = r.missingFile(name)
	}
	return f, cached, err
}

// keepParsed parses f and adds it to the cache.
func (r *Retriever) keepParsed(f *parsedFile) *parsedFile {
	if f.parse(); len(f.text) <= maxCached {
		r.parsed.Add(f.path, f)
	}
	return f
}

// parse completes f.
func (f *parsedFile) parse() {
	f.young, f.lines, f.doc = time.Since(f.modTime) < fresh, markdown.NewLines(f.text), markdown.Parse(f.path, f.text)
	if bytes.HasPrefix(f.text, []byte("\ufeff")) {
		f.body = 3
	}
}

// unreadable converts an error of the file system to one for the caller.
func (r *Retriever) unreadable(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r.missingFile(name)
	case errors.Is(err, walk.ErrPath), errors.Is(err, walk.ErrSymlink), errors.Is(err, walk.ErrSpecial), errors.Is(err, walk.ErrSize):
		return &InvalidError{Field: "path", Reason: err.Error()}
	}
	return fmt.Errorf("reading %q: %w", name, err)
}

// permitted returns an *InvalidError for a file that is not indexed and will not be: one
// that the last run skipped, one with another extension, or a hidden one.
func (r *Retriever) permitted(name string) error {
	return r.sources.Documents.View(func(reader *docs.Reader) error {
		if _, indexed, err := reader.File(name); err != nil || indexed {
			return err
		}
		hidden := walk.IsHidden(name, walk.OurFolders)
		if hidden || name[0] != '.' {
			for _, s := range reader.Skipped() {
				if walk.Under(name, s.Path) {
					return invalid("path", "%q is not indexed: %s", name, walk.WithAdvice(s.Reason))
				}
			}
		}
		switch {
		case (&walk.Options{Extensions: r.options.Extensions}).Wants()(name):
		case outline.IsSource(name):
			return invalid("path", "%q is source code and not in the index: the setting parser.code selects the folders whose code is indexed", name)
		default:
			example := "" // the first indexed file below a folder
			err := reader.Files(name+"/", func(f docs.File) bool { example = f.Path; return false })
			if err != nil || example != "" {
				return cmp.Or(err, invalid("path", "%q is a folder; name a document in it, such as %q", name, example))
			}
			return invalid("path", "%q is not indexed: only %s files are", name, strings.Join(r.options.Extensions, ", "))
		}
		if hidden {
			return invalid("path", "%q is hidden and not indexed", name)
		}
		return nil
	})
}
