package web

import (
	"cmp"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
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
	maxChips  = 5   // folders, and tags, above the results
	maxRecent = 12  // documents on the first page
	maxInList = 200 // folders, and documents of one folder
)

type searchPage struct {
	Query, Mode, Prefix, Tag string
	Kind                     store.Kind
	All                      string // "yes" searches all folders
	Chips                    []chip
	Count                    string // the number of documents found, in words
	Notes                    []string
	Hits                     []hit
	From                     string       // the query of the address, for links back to it
	Further                  template.URL // the query of the address of the next results
	Problem                  string
	Words                    view.Marker // of the query
	Home                     *homePage   // without a query
}

// hit is a result with what its page shows of it.
type hit struct {
	*retriever.Result
	Folder, Prefix string // of its workspace; Folder is "" if only one was searched
	From           string
	Scores         []scorePart
	Lines          []codeLine // of source code, around the line that matched
}

// Link returns the address of a section of the document in the reader, which marks the line
// that matched.
func (h *hit) Link(anchor string) string {
	line := ""
	for _, l := range h.Lines {
		if l.Marked && anchor == h.Anchor {
			line = strconv.Itoa(l.N)
		}
	}
	return place(h.Prefix, h.Path, anchor, "line", line, "from", h.From)
}

// Part returns the address of the preview.
func (h *hit) Part() string {
	return h.Prefix + "/doc?path=" + url.QueryEscape(h.Path) + "&part=" + url.QueryEscape(h.Anchor)
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

// choice is the value of a filter with its name.
type choice struct{ key, value, name string }

// choices are the values of mode and kind other than the defaults, which are hybrid search
// and all files.
var choices = []choice{
	{"mode", string(retriever.Keyword), "words only"}, {"mode", string(retriever.Semantic), "meaning only"},
	{"kind", string(store.Docs), "documents"}, {"kind", string(store.Code), "source code"}, {"kind", string(store.Cards), "cards"}, {"kind", string(store.Notes), "notes"},
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

// search shows the results of a query, or else the folders and documents. It is the first page.
func (h *Handler) search(w http.ResponseWriter, r *http.Request) error {
	form := r.URL.Query()
	p := &searchPage{
		Query: strings.TrimSpace(form.Get("q")), Mode: form.Get("mode"), Prefix: strings.TrimSpace(form.Get("in")), Tag: strings.TrimSpace(form.Get("tag")),
	}
	if p.Mode != string(retriever.Keyword) && p.Mode != string(retriever.Semantic) {
		p.Mode = ""
	}
	p.Kind, _ = store.ParseKind(form.Get("kind"))
	if folders := h.site.Folders(r); len(folders) > 1 && form.Get("all") != "" {
		p.All, p.Prefix, p.Tag = "yes", "", ""
	}
	p.From = string(p.address("", ""))
	lib, err := h.shelf.library(r.Context(), h.site.Folder)
	if err != nil {
		p.Problem = err.Error()
		lib = &library{}
	}
	p.Chips = p.set()
	if p.Query == "" {
		p.Home = p.home(lib.of(p.Kind))
	} else {
		p.Chips = append(p.Chips, p.chips(lib.only(h.find(r, p)))...)
		if len(h.site.Folders(r)) > 1 && p.All == "" {
			p.Chips = append(p.Chips, chip{Label: "in all folders", Link: "?" + p.address("all", "yes")})
		}
	}
	return h.show(w, r, page{Section: "search", Title: cmp.Or(p.Query, "Search"), Query: p.Query, fragment: "results", Data: p})
}

// found is the answer of one folder.
type found struct {
	Served
	prefix string
	answer *retriever.Answer
	err    error
}

// find runs the search of the page in its folder, or in all, and returns the paths of all
// documents found in its folder.
func (h *Handler) find(r *http.Request, p *searchPage) []string {
	q := retriever.Query{Text: p.Query, Mode: retriever.Mode(p.Mode), Limit: results, Explain: true, Paths: true, Cursor: r.URL.Query().Get("cursor"), Filter: store.Filter{PathPrefix: p.Prefix, Kind: p.Kind}}
	if p.Tag != "" {
		q.Filter.Tags = []string{p.Tag}
	}
	answers := []found{{Served: Served{Folder: h.site.Folder}, prefix: h.site.Prefix(r)}}
	if p.All != "" {
		answers = nil
		for _, f := range h.site.Folders(r) {
			answers = append(answers, found{Served: f, prefix: "/w/" + f.Name})
		}
	}
	var searching sync.WaitGroup
	for i := range answers {
		f := &answers[i]
		searching.Go(func() {
			start := time.Now()
			if f.answer, f.err = index.SearchOp.Call(r.Context(), f.Folder, q, nil); f.err == nil && f.Folder == h.site.Folder {
				h.took.add(time.Since(start))
				tools.ReportLacks(h.site.Lacked, q, f.answer)
			}
		})
	}
	searching.Wait()
	p.Words = view.NewMarker(p.Query)
	total := 0
	for _, f := range answers {
		if f.err != nil {
			p.Problem = f.err.Error()
			continue
		}
		total += f.answer.TotalCount
		for _, note := range view.Notes(f.answer) {
			if p.All != "" {
				note = f.Name + ": " + note
			}
			p.Notes = append(p.Notes, note)
		}
		for i := range f.answer.Results {
			result := &f.answer.Results[i]
			hit := hit{Result: result, Folder: f.Name, Prefix: f.prefix, From: p.From, Scores: scoreParts(result.Explain)}
			if store.KindOf(result.Path) == store.Code {
				hit.Lines = excerpt(r.Context(), f.Folder, result, p.Words)
			}
			p.Hits = append(p.Hits, hit)
		}
	}
	slices.SortStableFunc(p.Hits, func(a, b hit) int { return cmp.Compare(b.Score, a.Score) })
	if p.Problem == "" || total > 0 {
		how := map[string]string{string(retriever.Keyword): " with these words", string(retriever.Semantic): " with a similar meaning"}[p.Mode]
		if p.All != "" {
			how += " in all folders"
		}
		p.Count = view.Count(total, "document") + how + ", the best first"
	}
	if p.All != "" || p.Problem != "" {
		return nil
	}
	if next := answers[0].answer.NextCursor; next != nil {
		p.Further = p.address("cursor", *next)
	}
	return answers[0].answer.Paths
}

// Fields returns the filters as fields of the form.
func (p *searchPage) Fields() []field {
	return []field{{"in", p.Prefix}, {"tag", p.Tag}, {"mode", p.Mode}, {"kind", string(p.Kind)}, {"all", p.All}}
}

type field struct{ Key, Value string }

// address returns the query of the page's address with one value changed, or unchanged if
// key is "".
func (p *searchPage) address(key, value string) template.URL {
	v := url.Values{}
	for _, f := range append(p.Fields(), field{"q", p.Query}) {
		if f.Key == key {
			f.Value = value
		}
		if f.Value != "" {
			v.Set(f.Key, f.Value)
		}
	}
	if key == "cursor" {
		v.Set(key, value)
	}
	return template.URL(v.Encode())
}

// chips returns the filters that narrow the documents found: kinds, folders and tags with the
// number of documents of each, and the modes.
func (p *searchPage) chips(found *library) []chip {
	var chips, modes []chip
	kinds := found.kinds()
	for _, c := range choices {
		made := chip{Label: c.name, Link: "?" + p.address(c.key, c.value)}
		if c.key == "mode" && p.Mode == "" {
			modes = append(modes, made)
		} else if made.Documents = kinds[store.Kind(c.value)]; c.key == "kind" && p.Kind == "" && made.Documents > 0 {
			chips = append(chips, made)
		}
	}
	folders, _ := found.children(p.Prefix[:strings.LastIndex(p.Prefix, "/")+1])
	folders = slices.DeleteFunc(folders, func(c count) bool { return c.Documents == len(found.Documents) })
	folders = largest(folders, maxChips)
	slices.SortStableFunc(folders, func(a, b count) int { // hidden folders, such as .cairn, are last
		return cmp.Compare(strings.Count("/"+a.Name, "/."), strings.Count("/"+b.Name, "/."))
	})
	return slices.Concat(chips, p.folders(folders), p.tags(largest(found.tags(""), maxChips)), modes)
}

// set returns the chips of the filters that are set.
func (p *searchPage) set() (chips []chip) {
	filters := append([]choice{{"all", "yes", "in all folders"}, {"in", p.Prefix, p.Prefix}, {"tag", p.Tag, "#" + p.Tag}}, choices...)
	for _, c := range filters {
		if c.value != "" && slices.Contains(p.Fields(), field{c.key, c.value}) {
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
