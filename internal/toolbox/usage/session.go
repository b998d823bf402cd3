package usage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"cairn/graphrank"
)

// Bounds of one piece of work in a session.
const (
	// Window bounds the uses recorded for one query.
	Window = 32
	// Gap is the minimum pause that begins a new piece of work.
	Gap = 30 * time.Minute
	// maxWeak bounds the weak relations and the weak intents of a piece of work.
	maxWeak = 2048
)

// Session records one agent's session. Successive uses become sequence edges. The uses
// after a query become its Intent at the next query or at Close. A Session is not safe for
// concurrent use.
//
// An agent that reads a document has used it, and the Session adds the edges at once. An
// agent that fetches a tool's schema may call the tool, which cairn does not observe. A
// fetch is evidence like a click, which indicates that a result seemed relevant (Joachims,
// Optimizing search engines using clickthrough data, KDD 2002):
//
//   - It is weak: it has an effect from the third piece of work on. In one piece of work,
//     which a Gap ends, it is observed once.
//   - A tool is evidence for a query only if the search returned it.
//   - Two tools of one search make no sequence, because an agent that looks at several
//     results compares them to use one (McAuley et al., Inferring networks of substitutable
//     and complementary products, KDD 2015). Products viewed together are substitutes,
//     products bought together complements. Tools of different searches, and of a plan,
//     make sequences.
//   - A plan is not evidence, or cairn would learn from its own answers (Chaney et al., How
//     algorithmic confounding in recommendation systems increases homogeneity and
//     decreases utility, RecSys 2018). An edge of a plan is observed when the agent has
//     fetched both its ends.
//   - An agent's report replaces what the Session has inferred about the same tools.
type Session struct {
	add func(Change)
	now func() time.Time

	query string
	used  []string  // uses since the query, at most Window
	last  string    // the node of the last use
	at    time.Time // of the last record

	tools   search          // the last search for tools
	pending []Observation   // weak observations until the next search for tools, at most Window
	found   map[string]int  // number of the last search that found a tool
	fetched []string        // tools fetched since the last search, at most Window
	added   map[string]bool // keys of the weak observations and intents of this piece of work

	calls   Trace    // calls of tools since the last search, at most MaxCalls
	results []string // of calls, in their order
}

// search is a search for tools or a plan.
type search struct {
	number int
	query  string
	edges  [][2]string // of a plan; the second tool runs after the first
	plan   bool
}

// NewSession returns a session that calls add with its changes. A nil now means time.Now.
func NewSession(add func(Change), now func() time.Time) *Session {
	if now == nil {
		now = time.Now
	}
	return &Session{add: add, now: now}
}

// Query records a search for documents, and adds the intent of the query before it.
func (r *Session) Query(text string) {
	if normal(text) == normal(r.query) {
		return // the same query, or its next page
	}
	r.flush()
	if len(text) <= MaxIntent {
		r.query = text
	}
}

// Used records a successful use of a document by its DocumentID. The caller does not record
// failed calls.
func (r *Session) Used(id string) {
	before, ok := r.visit(id)
	if !ok {
		return
	}
	if r.query != "" && len(r.used) < Window {
		r.used = append(r.used, id)
	}
	if before == "" || before == id {
		return
	}
	if _, document := graphrank.DocumentPath(before); !document {
		r.infer(Observation{From: before, To: id, Type: graphrank.Sequence, Weak: true})
		return
	}
	r.add(Change{Observations: []Observation{{From: before, To: id, Type: graphrank.Sequence}}})
}

// Searched records a search for tools with its results, and adds the weak observations since
// the search before.
func (r *Session) Searched(query string, found []string) { r.begin(search{query: query}, found) }

// Planned records a plan for an intent, with its tools and its edges, and adds the weak
// observations since the search before.
func (r *Session) Planned(intent string, tools []string, edges [][2]string) {
	r.begin(search{query: intent, plan: true, edges: edges}, tools)
}

func (r *Session) begin(next search, found []string) {
	r.touch()
	next.number = r.tools.number
	if again := next.query != "" && normal(next.query) == normal(r.tools.query); !again || next.plan != r.tools.plan {
		r.addInferred()
		next.number++
	} else {
		next.query = r.tools.query
	}
	if len(next.query) > MaxIntent {
		next.query = ""
	}
	r.tools = next
	if r.found == nil || len(r.found) > maxWeak {
		r.found = map[string]int{}
	}
	for _, id := range found {
		r.found[id] = next.number
	}
}

// Fetched records that the agent has fetched the schema of a tool.
func (r *Session) Fetched(id string) {
	before, ok := r.visit(id)
	if !ok {
		return
	}
	hit := r.tools.number > 0 && r.found[id] == r.tools.number
	if hit && len(r.fetched) < Window && !slices.Contains(r.fetched, id) {
		r.fetched = append(r.fetched, id)
	}
	if hit && r.tools.plan {
		for _, e := range r.tools.edges {
			if (e[0] == id || e[1] == id) && slices.Contains(r.fetched, e[0]) && slices.Contains(r.fetched, e[1]) {
				r.infer(Observation{From: e[0], To: e[1], Type: graphrank.Sequence, Weak: true})
			}
		}
	}
	if before != "" && before != id && (r.found[id] == 0 || r.found[before] != r.found[id]) {
		r.infer(Observation{From: before, To: id, Type: graphrank.Sequence, Weak: true})
	}
}

// Reported records the tools that the agent reports as used. It drops the weak observations
// about them and adds the others.
func (r *Session) Reported(ids []string) {
	r.touch()
	if len(ids) == 0 {
		return
	}
	r.replace(func(id string) bool { return slices.Contains(ids, id) })
	if slices.ContainsFunc(r.calls.Calls, func(c Call) bool { return slices.Contains(ids, c.Tool) }) {
		r.calls, r.results = Trace{}, nil
	}
	r.last = ids[len(ids)-1]
	r.addInferred()
}

// replace drops the weak observations about tools.
func (r *Session) replace(known func(id string) bool) {
	r.pending = slices.DeleteFunc(r.pending, func(s Observation) bool { return known(s.From) && known(s.To) })
	if slices.ContainsFunc(r.fetched, known) {
		r.fetched = nil
	}
}

// Close adds the intent of the last query and the weak observations.
func (r *Session) Close() {
	r.flush()
	r.addInferred()
}

// Idle reports whether the last record is older than Gap.
func (r *Session) Idle() bool {
	return !r.at.IsZero() && r.now().Sub(r.at) > Gap
}

// visit makes id the last node and returns the one before it, "" at the beginning of a piece
// of work. ok is false if id cannot be a node.
func (r *Session) visit(id string) (before string, ok bool) {
	if checkID(id) != nil {
		return "", false
	}
	r.touch()
	before, r.last = r.last, id
	return before, true
}

// touch records the time, and begins a new piece of work after a Gap.
func (r *Session) touch() {
	if r.Idle() {
		r.last = ""
		r.Close()
		r.tools, r.found, r.added = search{}, nil, nil
	}
	r.at = r.now()
}

// infer adds a weak observation, which a report may replace.
func (r *Session) infer(s Observation) {
	if len(r.pending) < Window {
		r.pending = append(r.pending, s)
	}
}

// addInferred adds the calls, the pending weak observations, and the tools fetched for the last
// search as an intent. It adds each weak one only once in a piece of work. Calls replace the weak
// observations about their tools.
func (r *Session) addInferred() {
	var c Change
	if len(r.calls.Calls) > 0 {
		r.replace(r.calls.uses)
		c.Traces = []Trace{r.calls}
		r.calls, r.results = Trace{}, nil
	}
	if r.added == nil {
		r.added = map[string]bool{}
	}
	first := func(key string) bool {
		known := r.added[key] || len(r.added) >= maxWeak
		if !known {
			r.added[key] = true
		}
		return !known
	}
	for _, s := range r.pending {
		if first(pair{s.From, s.To}.key()) {
			c.Observations = append(c.Observations, s)
		}
	}
	if m, ok := memoryOf(r.tools.query, r.fetched); ok && first(string(m.key())) {
		m.Weak = true
		c.Intents = append(c.Intents, m)
	}
	r.pending, r.fetched = nil, nil
	r.add(c)
}

// flush adds the query with the uses after it as an intent. Used has added their edges.
func (r *Session) flush() {
	m, ok := memoryOf(r.query, r.used)
	r.query, r.used = "", nil
	if ok {
		r.add(Change{Intents: []Intent{m}})
	}
}

// memoryOf returns the intent of a query and the nodes used for it.
func memoryOf(query string, used []string) (Intent, bool) {
	t := Trace{Intent: query}
	for _, id := range used {
		t.Calls = append(t.Calls, Call{Tool: id})
	}
	return t.Memory()
}

// Limits on what a Session keeps to see the flow of data: of a result in bytes, and the
// shortest value.
const (
	maxSeen   = 16 << 10
	maxValues = 50 // of one call
	minValue  = 4
)

// telling reports whether a value is in a result for more reasons than chance, unlike a plain
// word such as "main" or a short number.
func telling(value string) bool {
	plain := strings.IndexFunc(value, func(r rune) bool { return !unicode.IsLetter(r) }) < 0
	return len(value) >= 3*minValue || len(value) > minValue && !plain
}

// Called records a call of a tool with the text of its result. The calls since the last
// search for tools are one trace. An argument that an earlier result contains, and no earlier
// argument, makes an edge.
func (r *Session) Called(c Call, result string) {
	r.touch()
	if len(r.calls.Calls) == MaxCalls {
		r.addInferred()
	}
	now := len(r.calls.Calls)
	r.calls.Intent = r.tools.query
	for _, value := range values(c.Arguments) {
		edge := [2]int{r.origin(value), now}
		if edge[0] >= 0 && len(r.calls.Edges) < MaxEdges && !slices.Contains(r.calls.Edges, edge) {
			r.calls.Edges = append(r.calls.Edges, edge)
		}
	}
	r.calls.Calls = append(r.calls.Calls, c)
	r.results = append(r.results, strings.Clone(result[:min(len(result), maxSeen)]))
	r.last = c.Tool
}

// Ran records the calls of a plan that cairn has run.
func (r *Session) Ran(t Trace) {
	r.touch()
	r.replace(t.uses)
	r.add(Change{Traces: []Trace{t}})
}

// origin returns the position of the last call whose result is a value or contains a telling
// one, -1 if there is none or an argument had the value before.
func (r *Session) origin(value string) int {
	const end = `(?:^|$|[^\pL\pN])`
	whole := regexp.MustCompile(end + regexp.QuoteMeta(value) + end)
	from := -1
	for i, c := range r.calls.Calls {
		if strings.Contains(string(c.Arguments), value) {
			return from
		}
		if strings.TrimSpace(r.results[i]) == value || telling(value) && whole.MatchString(r.results[i]) {
			from = i
		}
	}
	return from
}

// values returns the texts and numbers in the values of arguments that are long enough.
func values(raw json.RawMessage) (found []string) {
	var visit func(v any)
	visit = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, e := range v {
				visit(e)
			}
		case []any:
			for _, e := range v {
				visit(e)
			}
		case string, json.Number:
			if text := fmt.Sprint(v); len(text) >= minValue && len(text) <= maxSeen && len(found) < maxValues {
				found = append(found, text)
			}
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var v any
	if decoder.Decode(&v) == nil {
		visit(v)
	}
	slices.Sort(found)
	return slices.Compact(found)
}
