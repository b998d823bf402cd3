package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"cairn/graphrank"
	"cairn/internal/folder/index"
	"cairn/internal/folder/scan"
	"cairn/internal/store"
	"cairn/internal/text/markdown"
	"cairn/retriever"
)

const (
	// maxLinked is the maximum number of documents of a folder whose links pages show: finding
	// them reads all files.
	maxLinked = 5000
	// maxRelated is the maximum number of documents in the lists below a document.
	maxRelated = 5
)

// links returns the documents that link to each document, by path. It reads the files once for
// each library.
func (h *Handler) links(ctx context.Context, l *library) map[string][]string {
	l.linking.Lock()
	defer l.linking.Unlock()
	if l.links != nil || len(l.Documents) > maxLinked {
		return l.links
	}
	found, err := h.site.Scan(ctx, scan.Request{Pattern: `\]\(|\]\[|\[\[|^\s*\[[^\]]+\]:`, Regexp: true, Kind: store.Docs})
	if err != nil {
		return nil // the list is an addition; the next page tries again
	}
	texts := map[string]*strings.Builder{}
	for _, line := range found.Found {
		if texts[line.Path] == nil {
			texts[line.Path] = &strings.Builder{}
		}
		fmt.Fprintf(texts[line.Path], "%s\n\n", line.Text)
	}
	l.links = map[string][]string{}
	for from, text := range texts {
		for _, t := range markdown.Targets(from, []byte(text.String())) {
			if to, _ := l.places.Find(from, t); to != "" && to != from && !slices.Contains(l.links[to], from) {
				l.links[to] = append(l.links[to], from)
			}
		}
	}
	for _, from := range l.links {
		slices.Sort(from)
	}
	return l.links
}

// related sets the documents that link to the page, and those with a similar meaning.
func (h *Handler) related(ctx context.Context, p *docPage, lib *library) {
	entry := func(path string) (index.DocumentEntry, bool) {
		i, ok := lib.find(path)
		if !ok {
			return index.DocumentEntry{}, false
		}
		return lib.Documents[i], true
	}
	for _, from := range h.links(ctx, lib)[p.Path] {
		if d, ok := entry(from); ok {
			p.LinkedFrom = append(p.LinkedFrom, d)
		}
	}
	q := retriever.Query{Text: p.Title + "\n" + p.Content[:min(len(p.Content), 600)], Mode: retriever.Semantic, Limit: 1, Paths: true, Filter: store.Filter{Kind: store.KindOf(p.Path)}}
	q.Text = strings.ToValidUTF8(q.Text, "")
	answer, err := index.SearchOp.Call(ctx, h.site.Folder, q, nil)
	if err != nil {
		return // without vectors there are no neighbours
	}
	for _, path := range answer.Paths {
		same := func(d index.DocumentEntry) bool { return d.Path == path }
		if d, ok := entry(path); ok && path != p.Path && len(p.Similar) < maxRelated && !slices.ContainsFunc(p.Similar, same) {
			p.Similar = append(p.Similar, d)
		}
	}
}

// graph draws the links between documents.
func (h *Handler) graph(w http.ResponseWriter, r *http.Request) error {
	lib, err := h.shelf.library(r.Context(), h.site.Folder)
	if err != nil {
		return err
	}
	var g graphrank.Graph
	for to, list := range h.links(r.Context(), lib) {
		for _, from := range list {
			g.Set(graphrank.Edge{From: from, To: to, Type: graphrank.Dependency, Source: graphrank.Observed, Count: 1})
		}
	}
	p := &toolsPage{Around: strings.TrimSpace(r.URL.Query().Get("around"))}
	p.CoUsage = drawCoUsage(&g, p.Around, h.site.Prefix(r)+"/graph")
	return h.show(w, r, page{Section: "graph", Title: "Graph", Data: p})
}

// ago returns how long ago a time was, in words.
func ago(t time.Time) string {
	days := int(time.Since(t).Hours() / 24)
	switch {
	case days < 1:
		return "today"
	case days == 1:
		return "yesterday"
	case days < 60:
		return fmt.Sprintf("%d days ago", days)
	case days < 700:
		return fmt.Sprintf("%d months ago", days/30)
	}
	return fmt.Sprintf("%d years ago", days/365)
}
