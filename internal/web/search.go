package web

import (
	"cmp"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"cairn/internal/query"
	"cairn/internal/store"
	"cairn/internal/store/keyword"
	"cairn/retriever"
)

// results is the number of results per page.
const results = 10

type searchPage struct {
	Query, Mode, Prefix, Tag string
	Modes                    []string
	Answer                   *retriever.Answer
	Scores                   [][]scorePart // of each result
	Took                     string
	Problem                  string
	Terms                    map[string]bool
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
		Modes: []string{"hybrid", "keyword", "semantic"},
	}
	if !slices.Contains(p.Modes, p.Mode) {
		p.Mode = "hybrid"
	}
	if p.Query != "" {
		q := retriever.Query{Text: p.Query, Mode: retriever.Mode(p.Mode), Limit: results, Explain: true, Cursor: form.Get("cursor"), Filter: store.Filter{PathPrefix: p.Prefix}}
		if p.Tag != "" {
			q.Filter.Tags = []string{p.Tag}
		}
		start := time.Now()
		answer, err := h.sources.Engine.Search(r.Context(), q)
		if err != nil {
			p.Problem = err.Error()
		} else {
			took := time.Since(start)
			h.took.add(took)
			p.Took = took.Round(100 * time.Microsecond).String()
			p.Answer, p.Terms = answer, terms(p.Query)
			for i := range answer.Results {
				p.Scores = append(p.Scores, scoreParts(answer.Results[i].Explain))
			}
		}
	}
	title := "Search"
	if p.Query != "" {
		title = p.Query
	}
	h.show(w, r, http.StatusOK, "search", title, "results", p)
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

// terms returns the terms that a query looks up in the keyword index.
func terms(text string) map[string]bool {
	all := map[string]bool{}
	for _, term := range keyword.QueryTerms(query.Parse(text)) {
		all[term] = true
	}
	return all
}

// marked escapes a snippet and marks the words that contain one of terms.
func marked(snippet string, terms map[string]bool) template.HTML {
	var b strings.Builder
	rest := snippet
	for rest != "" {
		end := strings.IndexFunc(rest, func(r rune) bool { return !inWord(r) })
		if end < 0 {
			end = len(rest)
		}
		word := rest[:end]
		if word != "" && slices.ContainsFunc(keyword.Analyze(word), func(term string) bool { return terms[term] }) {
			b.WriteString("<mark>" + template.HTMLEscapeString(word) + "</mark>")
		} else {
			b.WriteString(template.HTMLEscapeString(word))
		}
		rest = rest[end:]
		next := strings.IndexFunc(rest, inWord)
		if next < 0 {
			next = len(rest)
		}
		b.WriteString(template.HTMLEscapeString(rest[:next]))
		rest = rest[next:]
	}
	return template.HTML(b.String()) // every part is escaped
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || r == '_' }

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
