// Package doctask reads and edits the tasks and sections of Markdown documents. The address
// of a document is its path from the root of the workspace, "/folder/name.md". Package files
// writes the files, and a Searcher ranks them.
package doctask

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/text/unicode/norm"

	"cairn/internal/store"
	"cairn/internal/task"
	"cairn/internal/task/files"
	"cairn/internal/text/fit"
	"cairn/internal/text/markdown"
	"cairn/internal/text/walk"
)

// Searcher ranks documents for a query.
type Searcher interface {
	// Documents returns the workspace paths of up to limit documents below
	// prefix ("" or "docs/"), best first.
	Documents(ctx context.Context, query, prefix string, limit int) ([]string, error)
}

// Options configures New. Nil and the zero value mean the defaults.
type Options struct {
	Depth    int              // REFERENCE_EXTRACTION_DEPTH, 1 to 5; 0 means 3, others are clamped
	Budget   fit.Budget       // of an answer if the request sets none
	Now      func() time.Time // nil means time.Now
	Searcher Searcher         // nil means that queries read every document
	Walk     *walk.Options    // the files to browse and search; nil means all documents
}

// Docs gives access to the documents of a workspace. It is safe for concurrent use.
type Docs struct {
	files    *files.Tree
	o        Options
	cache    *lru.Cache[string, *document]
	maxNodes int           // referenced documents in one answer
	timeout  time.Duration // for following references
}

// cacheSize is the number of parsed documents kept.
const cacheSize = 1000

// New returns the Docs of the documents below tree.
func New(tree *files.Tree, o *Options) *Docs {
	d := &Docs{files: tree, maxNodes: 1000, timeout: 30 * time.Second, o: *cmp.Or(o, &Options{})}
	if d.o.Walk == nil {
		d.o.Walk = &walk.Options{Extensions: markdown.Extensions()}
	}
	d.o.Depth = min(max(cmp.Or(d.o.Depth, 3), 1), 5)
	if d.o.Now == nil {
		d.o.Now = time.Now
	}
	d.cache, _ = lru.New[string, *document](cacheSize) // fails only for sizes below 1
	return d
}

// document is a parsed document. It is immutable.
type document struct {
	path  string // of the workspace
	src   []byte
	md    func() *markdown.Document // parses src once
	stamp files.Stamp
	racy  bool // the file may change again without a new time stamp
	// board returns the tasks, nil if there is no tasks section. It builds the board once.
	board func() *task.Board
}

// address returns the document's name in requests and answers.
func (d *document) address() string { return "/" + d.path }

func (d *document) hash() string { return hex.EncodeToString(d.stamp.Hash[:]) }

func newDocument(path string, src []byte, stamp files.Stamp) *document {
	d := &document{path: path, src: src, stamp: stamp, md: sync.OnceValue(func() *markdown.Document { return markdown.Parse(path, src) })}
	d.board = sync.OnceValue(d.newBoard)
	return d
}

// load is peek for a document that later requests will probably name.
func (d *Docs) load(path string) (*document, error) {
	doc, err := d.peek(path)
	if err == nil {
		d.cache.Add(path, doc)
	}
	return doc, err
}

// peek returns a document by its workspace path, from the cache if size and time of the file
// are unchanged.
func (d *Docs) peek(path string) (*document, error) {
	info, err := d.files.Stat(path)
	if err != nil {
		return nil, fileError("/"+path, err)
	}
	if doc, ok := d.cache.Get(path); ok && !doc.racy && doc.stamp.Size == info.Size() && doc.stamp.ModTime == info.ModTime().UnixNano() {
		return doc, nil
	}
	src, stamp, err := d.files.Read(path)
	if err != nil {
		return nil, fileError("/"+path, err)
	}
	doc := newDocument(path, markdown.Decoded(src), stamp)
	doc.racy = files.Racy(stamp.ModTime)
	return doc, nil
}

// open loads the document that a request names.
func (d *Docs) open(address string) (*document, error) {
	path, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	doc, err := d.load(path)
	if e, ok := err.(*task.Error); ok && e.Code == task.DocumentNotFound {
		names, _ := d.list(context.Background(), "")
		if same, ok := walk.Alike(names, path); ok {
			return d.load(same)
		}
		if near := markdown.Nearest(names, path, 1); len(near) > 0 {
			e.Data["suggestion"] = "Did you mean '/" + near[0] + "'?"
		}
	}
	return doc, err
}

// Limits of addresses.
const (
	maxAddress = 1000 // characters
	maxParts   = 20   // of a hierarchical slug
	maxPart    = 200  // characters of a part
)

// ourFolders are the hidden folders that may contain documents.
var ourFolders = []string{".cairn/cards", ".cairn/docs", ".cairn/workflows", ".cuedeck/cards", ".cuedeck/docs", ".cuedeck/workflows"}

// parseAddress converts an address such as "/project/setup.md" into a workspace path. The
// leading slash is optional.
func parseAddress(address string) (string, error) {
	ctx := evidence{"document": clip(address)}
	if strings.TrimSpace(address) == "" {
		return "", refuse(task.MissingParameter, evidence{"parameter": "document"}, "Parameter document is required")
	}
	bad := func(why string) (string, error) {
		return "", refuse(task.InvalidAddress, ctx, "Invalid document address: %s %s", clip(address), why)
	}
	address = norm.NFC.String(address)
	path := strings.TrimPrefix(address, "/")
	switch {
	case len(address) > maxAddress:
		return bad("is longer than 1000 characters")
	case strings.ContainsAny(address, `\%#`) || strings.IndexFunc(address, unicode.IsControl) >= 0:
		return bad(`holds one of \ % # or a control character`)
	case !strings.HasSuffix(path, ".md"):
		return bad("must end with .md")
	}
	for part := range strings.SplitSeq(path, "/") {
		switch part {
		case "", ".", "..":
			return bad("has an empty part, . or ..")
		}
	}
	clean, err := walk.Clean(path)
	if err != nil || clean != path {
		return bad("is not a path of the workspace")
	}
	if walk.IsHidden(clean, ourFolders) {
		return bad("is hidden")
	}
	return clean, nil
}

func clip(s string) string { return fit.Cut(s, 100) }

// parseSlug parses "slug", "#slug", "/doc.md()#slug" or "parent/slug" for a section of d.
// empty is the error code for an empty slug.
func (d *document) parseSlug(text, empty string) (string, error) {
	slug := norm.NFC.String(strings.TrimSpace(text))
	if before, after, ok := strings.Cut(slug, "#"); ok {
		if before != "" {
			path, err := parseAddress(before)
			if err != nil {
				return "", err
			}
			if !strings.EqualFold(path, d.path) {
				return "", refuse(task.InvalidAddress, evidence{"address": clip(text), "document": d.address()}, "%s is in another document than %s", clip(text), d.address())
			}
		}
		slug = after
	}
	if slug == "" {
		return "", refuse(empty, evidence{"document": d.address()}, "A slug is empty")
	}
	bad := func(why string) (string, error) {
		return "", refuse(task.InvalidSlug, evidence{"slug": clip(text), "document": d.address()}, "Invalid slug %q: %s", clip(text), why)
	}
	if strings.ContainsAny(slug, `\%#`) || strings.IndexFunc(slug, unicode.IsControl) >= 0 {
		return bad(`holds one of \ % # or a control character`)
	}
	parts := strings.Split(slug, "/")
	if len(parts) > maxParts {
		return bad("more than 20 parts")
	}
	for _, p := range parts {
		if p == "" || p == ".." || len(p) > maxPart {
			return bad("a part is empty, .. or longer than 200 characters")
		}
	}
	return slug, nil
}

// find returns the index of the section with a slug.
func (d *document) find(slug string) (int, bool) {
	if !strings.Contains(slug, "/") {
		return markdown.Resolve(d.md(), slug)
	}
	parts := strings.Split(slug, "/")
	for i, s := range d.md().Sections {
		at, k := i, len(parts)-1
		for ; k >= 0 && at >= 0 && s.Level > 0; k-- {
			if !isVariant(d.md().Sections[at].Anchor, parts[k]) {
				break
			}
			at = d.md().Sections[at].Parent
		}
		if k < 0 {
			return i, true
		}
	}
	return 0, false
}

// isVariant reports whether anchor is the anchor of a part of a slug, or that of a repeated
// heading, such as "setup-1" for "setup".
func isVariant(anchor, part string) bool {
	if anchor == part || anchor == markdown.Slug(part) {
		return true
	}
	rest, ok := strings.CutPrefix(anchor, markdown.Slug(part)+"-")
	return ok && rest != "" && strings.Trim(rest, "0123456789") == ""
}

// text returns the source of a section with its subsections, without trailing blank lines.
func (d *document) text(s store.Section) string {
	return string(bytes.TrimRight(d.src[s.Start:s.End], " \t\r\n"))
}

// anchors returns the anchors of the first n sections.
func (d *document) anchors(n int) []string {
	out := []string{}
	for _, s := range d.md().Sections {
		if s.Level > 0 && len(out) < n {
			out = append(out, s.Anchor)
		}
	}
	return out
}

// maxNamed is the maximum number of names listed in an error.
const maxNamed = 100

func (d *document) sectionNotFound(slug string) error {
	names := d.anchors(1 << 20)
	ctx := evidence{"section": slug, "document": d.address(), "available_sections": names[:min(len(names), maxNamed)]}
	if near := markdown.Nearest(names, slug, 1); len(near) > 0 {
		ctx["suggestion"] = "Did you mean '#" + near[0] + "'?"
	}
	return refuse(task.SectionNotFound, ctx, "Section not found: %s in %s", slug, d.address())
}

// edit changes a document under the lock. change receives the document on disk and returns
// its new source.
func (d *Docs) edit(ctx context.Context, address string, pre Precondition, change func(*document) ([]byte, error)) (*document, error) {
	named, err := d.open(address)
	if err != nil {
		return nil, err
	}
	path := named.path
	var after *document
	_, err = d.files.Edit(ctx, path, func(src []byte, was files.Stamp) ([]byte, error) {
		doc := newDocument(path, src, was)
		if err := pre.check(doc); err != nil {
			return nil, err
		}
		out, err := change(doc)
		if err != nil {
			return nil, err
		}
		after = newDocument(path, out, files.Stamp{})
		return out, nil
	})
	if err != nil {
		return nil, fileError("/"+path, err)
	}
	d.cache.Remove(path)
	now, err := d.load(path)
	if err != nil || !slices.Equal(now.src, after.src) {
		return after, nil // another program changed the file; the answer describes this edit
	}
	return now, nil
}

// Precondition makes a write fail if the document changed since the client read it. Empty
// fields match any document.
type Precondition struct {
	IfHash  string `json:"if_hash,omitempty" jsonschema:"Refuse unless the file has this SHA-256"`            // SHA-256 in hex
	IfMtime string `json:"if_mtime,omitempty" jsonschema:"Refuse unless the file has this modification time"` // RFC 3339 with nanoseconds
}

func (p Precondition) check(doc *document) error {
	mtime := doc.mtime()
	if p.IfHash != "" && !strings.EqualFold(p.IfHash, doc.hash()) || p.IfMtime != "" && p.IfMtime != mtime {
		return refuse(task.PreconditionFailed, evidence{"document": doc.address(), "hash": doc.hash(), "mtime": mtime},
			"Document changed since it was read: %s", doc.address())
	}
	return nil
}

func (d *document) mtime() string {
	return time.Unix(0, d.stamp.ModTime).UTC().Format(time.RFC3339Nano)
}

// evidence is the Data of an Error.
type evidence = map[string]any

func refuse(code string, ctx evidence, format string, args ...any) error {
	return &task.Error{Code: code, Message: fmt.Sprintf(format, args...), Data: ctx}
}

// fileError adds a code to an error of reading or writing a document.
func fileError(doc string, err error) error {
	if _, ok := errors.AsType[*task.Error](err); ok {
		return err
	}
	e := &task.Error{Code: task.OperationFailed, Message: err.Error(), Err: err, Data: evidence{"document": doc}}
	lock, locked := errors.AsType[*files.LockError](err)
	switch {
	case locked:
		e.Code, e.Message = task.ResourceExhausted, lock.Error()
		e.Data["holder_pid"] = lock.PID
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, walk.ErrSpecial), errors.Is(err, walk.ErrSymlink), errors.Is(err, walk.ErrPath):
		e.Code, e.Message, e.Data = task.DocumentNotFound, "Document not found: "+doc, evidence{"path": doc}
	case errors.Is(err, files.ErrChanged), errors.Is(err, walk.ErrChanged):
		e.Code, e.Message = task.PreconditionFailed, "Document changed since it was read: "+doc
	case errors.Is(err, walk.ErrSize):
		e.Code, e.Message = task.FileTooLarge, fmt.Sprintf("Document is larger than %d bytes: %s", walk.DefaultMaxSize, doc)
		e.Data["max_size"] = walk.DefaultMaxSize
	}
	return e
}
