package doctask

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"cairn/internal/task"
	"cairn/internal/text/fit"
	"cairn/internal/text/markdown"
	"cairn/internal/text/walk"
)

// BrowseRequest holds the arguments of browse_documents.
type BrowseRequest struct {
	Path           string `json:"path,omitempty" schema:"default=/"` // folder or document; default "/"
	Query          string `json:"query,omitempty"`
	IncludeRelated bool   `json:"include_related,omitempty" schema:"default=false" jsonschema:"Add documents that the results link to"`
	LinkDepth      *int   `json:"link_depth,omitempty" schema:"default=2,min=1,max=6"` // 1 to 6, default 2
	Count          *int   `json:"limit,omitempty" schema:"default=10,min=1,max=50"`    // 1 to 50, default 10
	Limit
}

// BrowseAnswer is the answer of browse_documents.
type BrowseAnswer struct {
	Path      string         `json:"path"`
	Folders   []FolderLine   `json:"folders"`
	Documents []DocumentLine `json:"documents"`
	Total     int            `json:"total"` // documents, including those not shown
	Truncated bool           `json:"truncated"`
	Related   []RelatedLine  `json:"related,omitempty"`
	Failed    []Failed       `json:"failed,omitempty"` // documents that cannot be read
}

// load loads a document, and lists it in Failed after an error. It returns nil then, and for
// a document that was deleted meanwhile.
func (a *BrowseAnswer) load(d *Docs, path string) *document {
	doc, err := d.load(path)
	if missing, ok := errors.AsType[*task.Error](err); err != nil && !(ok && missing.Code == task.DocumentNotFound) {
		a.Failed = append(a.Failed, Failed{"/" + path, err.Error()})
	}
	return doc
}

// FolderLine is a folder with the number of documents in it and its subfolders.
type FolderLine struct {
	Path      string `json:"path"`
	Documents int    `json:"documents"`
}

// outline names a section of a document.
type outline struct {
	Slug  string `json:"slug"`
	Title string `json:"title"`
	Depth int    `json:"depth"`
}

// DocumentLine is one document. A query sets Section and Snippet; a path to a
// document sets Sections.
type DocumentLine struct {
	Path      string         `json:"path"`
	Title     string         `json:"title"`
	Slug      string         `json:"slug"`
	Namespace string         `json:"namespace"`
	Tasks     map[string]int `json:"tasks,omitempty"` // by status, if it has a tasks section
	Section   string         `json:"section,omitempty"`
	Snippet   string         `json:"snippet,omitempty"`
	Sections  []outline      `json:"sections,omitempty"`
}

// RelatedLine is a document that a document of the answer links to, directly or indirectly.
type RelatedLine struct {
	Path  string `json:"path"`
	Title string `json:"title"`
	From  string `json:"from"`
	Depth int    `json:"depth"` // number of links to follow from the answer, from 1
}

// between sets to to an optional number unless it is absent. A number out of range is an
// error.
func between(name string, v *int, low, high int, to *int) error {
	if v == nil {
		return nil
	}
	if *to = *v; *v < low || *v > high {
		return refuse(task.InvalidParameter, evidence{"parameter": name, "value": *v, "min": low, "max": high}, "Parameter %s is %d, want %d to %d", name, *v, low, high)
	}
	return nil
}

// list returns the documents in a folder and its subfolders, by path. prefix ends with a
// slash or is empty.
func (d *Docs) list(ctx context.Context, prefix string) ([]string, error) {
	var paths []string
	err := d.files.Walk(ctx, d.o.Walk, func(e walk.Entry) error {
		if (e.Reason == walk.None || e.Reason == walk.TooLarge) && !e.Dir && strings.HasSuffix(e.Path, ".md") && strings.HasPrefix(e.Path, prefix) {
			paths = append(paths, e.Path)
		}
		return nil
	})
	if err != nil {
		return nil, fileError("/"+strings.TrimSuffix(prefix, "/"), err)
	}
	return paths, nil
}

// folder converts "/docs" into "docs/", and "/" into "". If there is no such folder, it
// returns the only folder whose name differs just in case, or an error with the code and the
// argument that names the missing folder.
func (d *Docs) folder(ctx context.Context, folder, argument, code string) (string, error) {
	trimmed := strings.Trim(folder, "/")
	if trimmed == "" {
		return "", nil
	}
	clean, err := walk.Clean(trimmed)
	if err != nil || clean != trimmed || strings.ContainsAny(folder, `\%`) || walk.IsHidden(clean+"/x", ourFolders) {
		return "", refuse(code, evidence{"path": clip(folder)}, "Not a folder of the workspace: %s", clip(folder))
	}
	prefix := clean + "/"
	if _, err := d.files.Stat(clean); err == nil {
		return prefix, nil
	}
	all, err := d.list(ctx, "")
	if err != nil {
		return "", err
	}
	var folders []string
	for _, p := range all {
		if len(p) > len(prefix) && strings.EqualFold(p[:len(prefix)], prefix) {
			folders = append(folders, p[:len(prefix)])
		}
	}
	if same, ok := walk.Alike(folders, prefix); ok {
		return same, nil
	}
	return "", refuse(code, evidence{argument: clip(folder)}, "No documents below %s", clip(folder))
}

// Browse implements browse_documents. It returns the content of a folder, the outline of a
// document or, for a query, the documents of a folder that match best.
func (d *Docs) Browse(ctx context.Context, r BrowseRequest) (*BrowseAnswer, error) {
	limit, depth := 10, 2
	if err := cmp.Or(between("limit", r.Count, 1, 50, &limit), between("link_depth", r.LinkDepth, 1, 6, &depth)); err != nil {
		return nil, err
	}
	budget, err := d.budget(r.Limit)
	if err != nil {
		return nil, err
	}
	a := &BrowseAnswer{Path: "/", Folders: []FolderLine{}, Documents: []DocumentLine{}}
	if strings.HasSuffix(r.Path, ".md") {
		err = d.browseDocument(a, r.Path)
	} else if prefix, bad := d.folder(ctx, r.Path, "path", task.InvalidAddress); bad != nil {
		err = bad
	} else {
		a.Path = "/" + strings.TrimSuffix(prefix, "/")
		if query := strings.TrimSpace(r.Query); query != "" {
			err = d.browseQuery(ctx, a, prefix, query, limit)
		} else {
			err = d.browseFolder(ctx, a, prefix, limit)
		}
	}
	if err != nil {
		return nil, err
	}
	if r.IncludeRelated {
		a.Related = d.related(a.Documents, depth)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return a, shorten(budget, a, a.parts())
}

// parts returns the lists of the answer. Cutting one of them sets Truncated.
func (a *BrowseAnswer) parts() []fit.Part {
	truncated, cut := a.Truncated, [5]int{}
	parts := []fit.Part{shortened(&a.Folders, &cut[0]), shortened(&a.Documents, &cut[1]), shortened(&a.Related, &cut[2]), shortened(&a.Failed, &cut[4])}
	if len(a.Documents) == 1 { // an outline
		parts[1] = shortened(&a.Documents[0].Sections, &cut[3])
	}
	for i := range parts {
		keep := parts[i].Keep
		parts[i].Keep = func(n int) {
			keep(n)
			a.Truncated = truncated || cut != [5]int{}
		}
	}
	return parts
}

func (d *Docs) browseDocument(a *BrowseAnswer, address string) error {
	doc, err := d.open(address)
	if err != nil {
		return err
	}
	line := lineOf(doc)
	line.Sections = []outline{}
	for _, s := range doc.md().Sections {
		if s.Level > 0 {
			line.Sections = append(line.Sections, outline{s.Anchor, s.Heading, s.Level})
		}
	}
	a.Path, a.Total, a.Documents = doc.address(), 1, append(a.Documents, line)
	return nil
}

func (d *Docs) browseFolder(ctx context.Context, a *BrowseAnswer, prefix string, limit int) error {
	all, err := d.list(ctx, prefix)
	for _, p := range all {
		if name, _, below := strings.Cut(p[len(prefix):], "/"); below {
			folder := "/" + prefix + name
			if n := len(a.Folders); n == 0 || a.Folders[n-1].Path != folder {
				a.Folders = append(a.Folders, FolderLine{Path: folder})
			}
			a.Folders[len(a.Folders)-1].Documents++
			continue
		}
		a.Total++
		if len(a.Documents) == limit {
			a.Truncated = true
			continue
		}
		if doc := a.load(d, p); doc != nil {
			a.Documents = append(a.Documents, lineOf(doc))
		}
	}
	return err
}

func (d *Docs) browseQuery(ctx context.Context, a *BrowseAnswer, prefix, query string, limit int) error {
	type hit struct {
		line  DocumentLine
		score float64
	}
	var hits []hit
	err := d.search(ctx, query, prefix, limit, func(p string, ranked bool) bool {
		doc := a.load(d, p)
		if doc == nil {
			return false
		}
		line := lineOf(doc)
		score, section, snippet := matchDocument(doc, query)
		if ranked {
			score = 1 // keeps the order of the Searcher
		} else if score == 0 {
			return false
		}
		line.Section, line.Snippet = section, snippet
		hits = append(hits, hit{line, score})
		return true
	})
	slices.SortStableFunc(hits, func(x, y hit) int { return cmp.Compare(y.score, x.score) })
	a.Total, a.Truncated = len(hits), len(hits) > limit
	for _, h := range hits[:min(len(hits), limit)] {
		a.Documents = append(a.Documents, h.line)
	}
	return err
}

// maxSnippet is the maximum length of a snippet in bytes.
const maxSnippet = 200

// matchDocument scores a document by the best place that contains the query, ignoring case:
// 20 for the title, 1.5·(7−level) for a heading, 1.2 for text down to level 3, else 1.
func matchDocument(doc *document, query string) (score float64, section, snippet string) {
	query = strings.ToLower(query)
	if strings.Contains(strings.ToLower(doc.md().Title), query) {
		score = 20
	}
	for _, s := range doc.md().Sections {
		if v := 1.5 * float64(7-s.Level); s.Level > 0 && v > score && strings.Contains(strings.ToLower(s.Heading), query) {
			score, section = v, s.Anchor
		}
	}
	for _, s := range doc.md().Sections {
		text := string(doc.src[s.Start:s.OwnEnd])
		at := strings.Index(strings.ToLower(text), query)
		if at < 0 {
			continue
		}
		v := 1.0
		if s.Level <= 3 {
			v = 1.2
		}
		if score < v {
			score, section = v, s.Anchor
		}
		from := min(max(0, at-maxSnippet/4), len(text))
		to := min(len(text), from+maxSnippet)
		snippet = strings.Join(strings.Fields(strings.ToValidUTF8(text[from:to], "")), " ")
		break
	}
	return score, section, snippet
}

func lineOf(doc *document) DocumentLine {
	i := info(doc)
	line := DocumentLine{Path: doc.address(), Title: doc.md().Title, Slug: i.Slug, Namespace: i.Namespace}
	if all, _, ok := doc.tasks(); ok {
		line.Tasks = map[string]int{}
		for _, t := range listed(all) {
			line.Tasks[t.status]++
		}
	}
	return line
}

// maxRelated is the maximum number of related documents in an answer.
const maxRelated = 100

// related follows links and references from documents in a breadth-first search.
func (d *Docs) related(from []DocumentLine, depth int) []RelatedLine {
	type step struct {
		path  string
		depth int
	}
	var queue []step
	seen := map[string]bool{}
	for _, l := range from {
		p := strings.TrimPrefix(l.Path, "/")
		seen[p] = true
		queue = append(queue, step{p, 0})
	}
	out := []RelatedLine{}
	for k := 0; k < len(queue) && len(out) < maxRelated; k++ {
		s := queue[k]
		doc, err := d.load(s.path)
		if err != nil || s.depth == depth {
			continue
		}
		for _, t := range markdown.Targets(doc.path, doc.src) {
			p, err := parseAddress(t.Path)
			if err != nil || seen[p] || len(out) == maxRelated {
				continue
			}
			seen[p] = true
			target, err := d.load(p)
			if err != nil {
				continue
			}
			out = append(out, RelatedLine{"/" + p, target.md().Title, doc.address(), s.depth + 1})
			queue = append(queue, step{p, s.depth + 1})
		}
	}
	return out
}
