package web

import (
	"cmp"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"cairn/internal/face/view"
	"cairn/internal/folder/index"
	"cairn/internal/store"
	"cairn/retriever"
	"cairn/tools"
)

// results is the number of results per page.
const results = 10

// Bounds of the lists of the search page.
const (
	maxChips  = 8   // folders, and tags, above the results
	maxRecent = 12  // documents on the first page
	maxInList = 200 // folders, and documents of one folder
)

type searchPage struct {
	Query, Mode, Prefix, Tag string
	Kind                     store.Kind
	Chips                    []chip
	Answer                   *retriever.Answer
	Scores                   [][]scorePart // of each result
	From                     template.URL  // the query of the address, for links back to it
	Further                  template.URL  // the query of the address of the next results
	Took                     string
	Problem                  string
	Words                    view.Marker // of the query
	Home                     *homePage   // without a query
}

// homePage is the content of the search page without a query.
type homePage struct {
	Total         int
	Cut           bool // some documents are not listed
	Folders, Tags []chip
	Title         string // of Documents
	Documents     []index.DocumentEntry
	Omitted       int // documents
}

// choices are the values of mode and kind other than the defaults, which are hybrid search
// and all files.
var choices = []struct{ key, value, name string }{
	{"mode", string(retriever.Keyword), "by words"}, {"mode", string(retriever.Semantic), "by meaning"},
	{"kind", string(store.Docs), "documents"}, {"kind", string(store.Code), "source code"}, {"kind", string(store.Cards), "cards"},
}

// chip is a link that sets a filter, or removes the one that is set.
type chip struct {
	Label     string
	Link      template.URL
	Documents int // 0 if they are not counted
	Set       bool
}

// scorePart is a part of a score, drawn as a bar of width 0 to 100.
type scorePart struct {
	Name, Value string
	Width       float64
}

// search shows the search form and the results. It is the first page.
func (h *Handler) search(w http.ResponseWriter, r *http.Request) {
	form := r.URL.Query()
	p := &searchPage{
		Query: strings.TrimSpace(form.Get("q")), Mode: form.Get("mode"), Prefix: strings.TrimSpace(form.Get("in")), Tag: strings.TrimSpace(form.Get("tag")),
	}
	if p.Mode != string(retriever.Keyword) && p.Mode != string(retriever.Semantic) {
		p.Mode = ""
	}
	p.Kind, _ = store.ParseKind(form.Get("kind"))
	p.From = p.address("", "")
	lib, err := h.shelf.library(r.Context(), h.site.Folder)
	if err != nil {
		p.Problem = err.Error()
		lib = &library{}
	}
	p.Chips = p.set()
	chosen := lib.of(p.Kind)
	if p.Query == "" {
		p.Home = p.home(chosen)
	} else {
		p.Chips = append(p.Chips, p.chips(chosen, lib.kinds())...)
		h.find(r, p)
	}
	title := "Search"
	if p.Query != "" {
		title = p.Query
	}
	h.show(w, r, screen{section: "search", title: title, fragment: "results", data: p})
}

// find runs the search of the page.
func (h *Handler) find(r *http.Request, p *searchPage) {
	q := retriever.Query{Text: p.Query, Mode: retriever.Mode(p.Mode), Limit: results, Explain: true, Cursor: r.URL.Query().Get("cursor"), Filter: store.Filter{PathPrefix: p.Prefix, Kind: p.Kind}}
	if p.Tag != "" {
		q.Filter.Tags = []string{p.Tag}
	}
	start := time.Now()
	answer, err := index.SearchOp.Call(r.Context(), h.site.Folder, q, nil)
	if err != nil {
		p.Problem = err.Error()
		return
	}
	took := time.Since(start)
	tools.ReportLacks(h.site.Lacked, q, answer)
	h.took.add(took)
	p.Took = took.Round(100 * time.Microsecond).String()
	p.Answer, p.Words = answer, view.NewMarker(p.Query)
	for i := range answer.Results {
		p.Scores = append(p.Scores, scoreParts(answer.Results[i].Explain))
	}
	if answer.NextCursor != nil {
		p.Further = p.address("cursor", *answer.NextCursor)
	}
}

// address returns the query of the page's address with one value changed, or unchanged if
// key is "".
func (p *searchPage) address(key, value string) template.URL {
	v := url.Values{}
	for k, text := range map[string]string{"q": p.Query, "in": p.Prefix, "tag": p.Tag, "mode": p.Mode, "kind": string(p.Kind)} {
		if k == key {
			text = value
		}
		if text != "" {
			v.Set(k, text)
		}
	}
	if key == "cursor" {
		v.Set(key, value)
	}
	return template.URL(v.Encode())
}

// chips returns the filters that can be set: by folder, by tag, and the choices. kinds
// are those of the files in the folder.
func (p *searchPage) chips(lib *library, kinds map[store.Kind]bool) []chip {
	folder := p.Prefix[:strings.LastIndex(p.Prefix, "/")+1]
	folders, _ := lib.children(folder)
	chips := slices.Concat(p.folders(largest(folders, maxChips)), p.tags(largest(lib.tags(p.Prefix), maxChips)))
	for _, c := range choices {
		if !p.has(c.key, c.value) && (c.key != "kind" || kinds[store.Kind(c.value)]) {
			chips = append(chips, chip{Label: c.name, Link: "?" + p.address(c.key, c.value)})
		}
	}
	return chips
}

// has reports whether a choice is set.
func (p *searchPage) has(key, value string) bool {
	return key == "mode" && value == p.Mode || key == "kind" && value == string(p.Kind)
}

// set returns the chips of the filters that are set.
func (p *searchPage) set() (chips []chip) {
	if p.Prefix != "" {
		chips = append(chips, chip{Label: p.Prefix, Link: "?" + p.address("in", ""), Set: true})
	}
	if p.Tag != "" {
		chips = append(chips, chip{Label: "#" + p.Tag, Link: "?" + p.address("tag", ""), Set: true})
	}
	for _, c := range choices {
		if p.has(c.key, c.value) {
			chips = append(chips, chip{Label: c.name, Link: "?" + p.address(c.key, ""), Set: true})
		}
	}
	return chips
}

func (p *searchPage) folders(counts []count) (chips []chip) {
	for _, c := range counts {
		chips = append(chips, chip{Label: strings.TrimPrefix(c.Name, p.Prefix), Link: "?" + p.address("in", c.Name), Documents: c.Documents})
	}
	return chips
}

func (p *searchPage) tags(counts []count) (chips []chip) {
	for _, c := range counts {
		if c.Name != p.Tag {
			chips = append(chips, chip{Label: "#" + c.Name, Link: "?" + p.address("tag", c.Name), Documents: c.Documents})
		}
	}
	return chips
}

// home returns the content of the page without a query: folders, tags, and the documents of
// the chosen folder or tag, or else those that changed last.
func (p *searchPage) home(lib *library) *homePage {
	folders, documents := lib.children(p.Prefix)
	home := &homePage{Total: len(lib.Documents), Cut: lib.Cut, Title: "Documents"}
	home.Folders = p.folders(folders[:min(len(folders), maxInList)])
	tags := lib.tags(p.Prefix)
	home.Tags = p.tags(tags[:min(len(tags), maxInList)])
	switch {
	case p.Tag != "":
		home.Documents = slices.DeleteFunc(slices.Clone(lib.below(p.Prefix)), func(d index.DocumentEntry) bool { return !slices.Contains(d.Tags, p.Tag) })
		home.Folders = nil
	case p.Prefix != "":
		home.Documents = documents
	default:
		home.Title, home.Documents = "Changed last", lib.recent(maxRecent)
	}
	if n := len(home.Documents) - maxInList; n > 0 {
		home.Documents, home.Omitted = home.Documents[:maxInList], n
	}
	return home
}

// scoreParts returns the parts that add up to a score, and the score.
func scoreParts(e *retriever.Explanation) []scorePart {
	if e == nil {
		return nil
	}
	part := func(name string, v float64) scorePart {
		return scorePart{name, percent(v), 100 * min(max(v, 0), 1)}
	}
	names := map[string]string{"vector": "meaning", "keyword": "words", "graph": "use"}
	var parts []scorePart
	for _, p := range e.Parts() {
		parts = append(parts, part(cmp.Or(names[p.Name], p.Name), p.Weight*p.Value))
	}
	return append(parts, part("score", e.Score))
}

// marked escapes a snippet and marks the words of the query.
func marked(snippet string, words view.Marker) template.HTML {
	return template.HTML(words.Mark(snippet, func(part string, found bool) string { // escapes every part
		part = template.HTMLEscapeString(part)
		if found {
			part = "<mark>" + part + "</mark>"
		}
		return part
	}))
}

// latencies are the durations of the last searches.
type latencies struct {
	mu   sync.Mutex
	last []time.Duration // oldest first
}

// maxLatencies bounds the latencies that the index page shows.
const maxLatencies = 120

func (l *latencies) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.last) == maxLatencies {
		l.last = l.last[1:]
	}
	l.last = append(l.last, d)
}

func (l *latencies) list() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.last)
}
