package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"cairn/internal/face/view"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
	"cairn/internal/text/markdown"
	"cairn/retriever"
)

// maxLine is the largest number of a line in the name of a place.
const maxLine = 999_999_999

type docPage struct {
	*retriever.Reading
	document                // without HTML for a document that is not Markdown
	File             string // the last part of Path
	Folders          []chip // that contain the document, the outermost first
	Back             template.URL
	BackQuery        string
	Lines            []codeLine // of a document that is not Markdown
	Body, Was        string     // the text of a card and its bodyHash if it may be edited
	Modified         time.Time
	LinkedFrom       []index.DocumentEntry
	Similar          []index.DocumentEntry // by meaning
	Card             *cardView             // nil for other documents
	Tree             []branch
	Previous, Follow *index.DocumentEntry // in the folder, by path
	Later            bool                 // the page begins after the first part of the document
}

// branch is one line of the tree of files.
type branch struct {
	Name, Link string
	Level      int
	Folder     bool
	Documents  int // in a folder
	Current    bool
}

// preview answers the script of the search page with a section of a document.
func (h *Handler) preview(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	place := q.Get("path")
	if part := q.Get("part"); part != "" {
		place += "#" + part
	}
	reading, err := index.ReadOp.Call(r.Context(), h.site.Folder, retriever.ReadRequest{Path: place, MaxTokens: maxExcerpt}, nil)
	if err != nil {
		return err
	}
	p := &docPage{Reading: reading}
	if lib, err := h.shelf.library(r.Context(), h.site.Folder); err == nil {
		p.fill(h.site.Prefix(r), lib)
	}
	return h.show(w, r, page{Section: "doc", fragment: "preview", Title: reading.Title, Data: p})
}

// fill sets the text of the page.
func (p *docPage) fill(prefix string, lib *library) {
	if f := markdown.FormatOf(p.Path); f != markdown.Markdown && !f.Converted() {
		first := 1
		if p.LineRange != nil {
			first = p.LineRange.Start
		}
		p.Lines = linesOf(p.Path, p.Content, first, view.Marker{})
		return
	}
	o := reader{prefix: prefix, name: p.Path, lib: lib, title: p.Title}
	p.document = o.render([]byte(p.Content))
}

// doc shows a document.
func (h *Handler) doc(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	if q.Has("part") && r.Header.Get(fragmentHeader) != "" {
		return h.preview(w, r)
	}
	reading, later, err := h.part(r.Context(), q)
	name := q.Get("path")
	if err == nil {
		name = reading.Path
	}
	card, cardErr := h.cardAt(r, name)
	if _, missing := errors.AsType[*retriever.NotFoundError](err); missing && card != nil {
		reading, err = &retriever.Reading{Path: card.Path, Title: card.Title}, nil // not indexed yet
	}
	if err = cmp.Or(err, cardErr); err != nil {
		return err
	}
	lib, err := h.shelf.library(r.Context(), h.site.Folder)
	if err != nil {
		return err
	}
	prefix := h.site.Prefix(r)
	p := &docPage{Reading: reading, File: path.Base(reading.Path), Card: card, Later: later}
	p.fill(prefix, lib)
	if len(p.Lines) > 0 {
		line, _ := strconv.Atoi(q.Get("line")) // 0 marks none
		if err := h.number(r, p, line); err != nil {
			return err
		}
	}
	if body := reading.Content[markdown.ReadFrontMatter([]byte(reading.Content)).End:]; card != nil && h.site.MayWrite(r) && reading.Masked == 0 && reading.Hash != "" && reading.Next == "" && !later {
		p.Body, p.Was = strings.TrimSpace(body), bodyHash(body)
		n := -1
		p.HTML = template.HTML(shownStep.ReplaceAllStringFunc(string(p.HTML), func(string) string { // its steps can be changed
			n++
			return fmt.Sprintf(`data-step="%d" type="checkbox"`, n)
		}))
	}
	if i, ok := lib.find(p.Path); ok {
		p.Modified = lib.Documents[i].Modified
	}
	h.related(r.Context(), p, lib)
	p.Tree = lib.grow(nil, prefix, "", reading.Path)
	p.Previous, p.Follow = lib.neighbours(reading.Path)
	for i, c := range reading.Path {
		if c == '/' {
			link := url.Values{"in": {reading.Path[:i+1]}}
			p.Folders = append(p.Folders, chip{Label: path.Base(reading.Path[:i]), Link: template.URL(prefix + "/?" + link.Encode())})
		}
	}
	if from, err := url.ParseQuery(q.Get("from")); err == nil && len(from) > 0 {
		p.Back, p.BackQuery = template.URL(prefix+"/?"+from.Encode()), from.Get("q")
	}
	return h.show(w, r, page{Section: "doc", Title: reading.Title, Query: p.BackQuery, Data: p})
}

// part reads a document, or the part of a long one that a query names: with a token (next), a line,
// or the anchor of a place (at). later reports that other parts precede it.
func (h *Handler) part(ctx context.Context, q url.Values) (reading *retriever.Reading, later bool, err error) {
	read := func(place, next string) (*retriever.Reading, error) {
		return index.ReadOp.Call(ctx, h.site.Folder, retriever.ReadRequest{Path: place, MaxTokens: retriever.MaxBudget, Next: next}, nil)
	}
	reading, err = read(q.Get("path"), q.Get("next"))
	at := "#" + cmp.Or(q.Get("at"), "line:"+q.Get("line"))
	if line, ok := strings.CutPrefix(at, "#line:"); ok {
		at = ":" + line
	}
	if err != nil || reading.Next == "" || at == ":" {
		return reading, q.Get("next") != "", err
	}
	to, missing := read(reading.Path+at, "")
	if missing != nil || to.LineRange.Start <= reading.LineRange.End {
		return reading, false, nil
	}
	reading, err = read(fmt.Sprintf("%s:%d-%d", reading.Path, to.LineRange.Start, maxLine), "")
	return reading, true, err
}

// number links the lines of the page, marks one, and adds the outline of the symbols.
func (h *Handler) number(r *http.Request, p *docPage, marked int) error {
	list, err := index.DocumentsOp.Call(r.Context(), h.site.Folder, index.DocumentsRequest{Prefix: p.Path, Limit: 1, Outline: true}, nil)
	if err != nil {
		return err
	}
	first := p.Lines[0].N
	for i := range p.Lines {
		l := &p.Lines[i]
		l.Link, l.ID, l.Marked = template.URL(fmt.Sprintf("#line:%d", l.N)), true, l.N == marked
	}
	for _, d := range list.Documents {
		for _, s := range d.Outline {
			if at := s.Line - first; d.Path == p.Path && at >= 0 && at < len(p.Lines) && p.Lines[at].Anchor == "" {
				p.Lines[at].Anchor = s.Anchor
				p.Outline = append(p.Outline, heading{s.Level + 1, cmp.Or(s.Anchor, s.Heading), s.Anchor})
			}
		}
	}
	return nil
}

// maxBranches is the maximum number of documents, and of folders, that a tree shows of each
// folder.
const maxBranches = 200

// grow adds the contents of each folder that contains a document, from folder on.
func (l *library) grow(tree []branch, prefix, folder, file string) []branch {
	level := strings.Count(folder, "/")
	folders, documents := l.children(folder)
	for i, f := range folders {
		open := strings.HasPrefix(file, f.Name)
		if !open && i >= maxBranches {
			continue
		}
		link := url.Values{"in": {f.Name}}
		tree = append(tree, branch{Name: path.Base(f.Name) + "/", Link: prefix + "/?" + link.Encode(), Level: level, Folder: true, Documents: f.Documents})
		if open && level < maxLevel {
			tree = l.grow(tree, prefix, f.Name, file)
		}
	}
	for i, d := range documents {
		if i < maxBranches || d.Path == file {
			tree = append(tree, branch{Name: d.Title, Link: place(prefix, d.Path, ""), Level: level, Current: d.Path == file})
		}
	}
	return tree
}

// maxLevel is the maximum indentation in a tree.
const maxLevel = 8

// neighbours returns the documents before and after one in its folder.
func (l *library) neighbours(file string) (previous, next *index.DocumentEntry) {
	_, documents := l.children(file[:strings.LastIndex(file, "/")+1])
	at := slices.IndexFunc(documents, func(d index.DocumentEntry) bool { return d.Path == file })
	if at > 0 {
		previous = &documents[at-1]
	}
	if at >= 0 && at+1 < len(documents) {
		next = &documents[at+1]
	}
	return previous, next
}

// pictureType returns the media type of a picture by its extension, or "" for other files.
func pictureType(name string) string { return workspace.Pictures[strings.ToLower(path.Ext(name))] }

// picturePolicy keeps an SVG picture that is opened by itself from running scripts and
// loading files.
const picturePolicy = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

// picture sends a picture of the folder, unless it is hidden or ignored.
func (h *Handler) picture(w http.ResponseWriter, r *http.Request) error {
	name := r.URL.Query().Get("path")
	kind := pictureType(name)
	if kind == "" {
		return errNoPage
	}
	content, err := h.site.Tasks.Picture(r.Context(), name)
	if err != nil || kind != "image/svg+xml" && http.DetectContentType(content) != kind {
		return errNoPage
	}
	header := w.Header()
	header.Set("Content-Security-Policy", picturePolicy)
	header.Set("Content-Type", kind)
	header.Set("Cache-Control", "private, max-age=60")
	_, _ = w.Write(content) // the client may have left
	return nil
}
