package usage

import (
	"context"
	"slices"
	"time"

	"cairn/graphrank"
)

// Bounds of one piece of work in a session.
const (
	// Window bounds the uses recorded for one query.
	Window = 32
	// Gap is the minimum pause that begins a new piece of work.
	Gap = 30 * time.Minute
	// maxWeak bounds the weak relations, and the weak intents, of a piece of work.
	maxWeak = 1024
)

// Session records one agent's session. Successive uses become sequence edges. The uses
// after a query become its Intent at the next query or at Close. A Session is not safe for
// concurrent use.
//
// An agent that reads a document has used it, and the Session writes the edges at once. An
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
	add func(context.Context, Change) error
	now func() time.Time

	query string
	used  []Call    // uses since the query, at most Window
	last  string    // the node of the last use
	at    time.Time // of the last record

	tools    search              // the last search for tools
	pending  []Observation       // weak observations until the next search for tools, at most Window
	found    map[string]int      // number of the last search that found a tool
	fetched  []string            // tools fetched since the last search, at most Window
	observed map[[2]string]bool  // weak observations of this piece of work
	intents  map[string]struct{} // keys of its weak intents
}

// search is a search for tools or a plan.
type search struct {
	number int
	query  string
	edges  [][2]string // of a plan; the second tool runs after the first
	plan   bool
}

// NewSession returns a session that calls add with its changes. A nil now means time.Now.
func NewSession(add func(context.Context, Change) error, now func() time.Time) *Session {
	if now == nil {
		now = time.Now
	}
	return &Session{add: add, now: now}
}

// Query records a search for documents, and writes the intent of the query before it.
func (r *Session) Query(ctx context.Context, text string) error {
	if normal(text) == normal(r.query) {
		return nil // the same query, or its next page
	}
	err := r.flush(ctx)
	if len(text) <= MaxIntent {
		r.query = text
	}
	return err
}

// Used records a successful use of a document by its DocumentID. It returns when the edge
// is durable. The caller does not record failed calls.
func (r *Session) Used(ctx context.Context, id string) error {
	before, err := r.visit(ctx, id)
	if err != nil {
		return err
	}
	if r.query != "" && len(r.used) < Window {
		r.used = append(r.used, Call{Tool: id})
	}
	if before == "" || before == id {
		return nil
	}
	if _, document := graphrank.DocumentPath(before); !document {
		r.infer(Observation{From: before, To: id, Type: graphrank.Sequence, Weak: true})
		return nil
	}
	return r.add(ctx, Change{Observations: []Observation{{From: before, To: id, Type: graphrank.Sequence}}})
}

// Searched records a search for tools with its results, and writes the weak observations
// since the search before.
func (r *Session) Searched(ctx context.Context, query string, found []string) error {
	return r.begin(ctx, search{query: query}, found)
}

// Planned records a plan for an intent, with its tools and its edges, and writes the weak
// observations since the search before.
func (r *Session) Planned(ctx context.Context, intent string, tools []string, edges [][2]string) error {
	return r.begin(ctx, search{query: intent, plan: true, edges: edges}, tools)
}

func (r *Session) begin(ctx context.Context, next search, found []string) error {
	if err := r.touch(ctx); err != nil {
		return err
	}
	next.number = r.tools.number
	if again := next.query != "" && normal(next.query) == normal(r.tools.query); !again || next.plan != r.tools.plan {
		if err := r.writeInferred(ctx); err != nil {
			return err
		}
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
	return nil
}

// Fetched records that the agent has fetched the schema of a tool.
func (r *Session) Fetched(ctx context.Context, id string) error {
	before, err := r.visit(ctx, id)
	if err != nil {
		return err
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
	if before == "" || before == id || r.found[id] != 0 && r.found[before] == r.found[id] {
		return nil
	}
	r.infer(Observation{From: before, To: id, Type: graphrank.Sequence, Weak: true})
	return nil
}

// Reported records the tools that the agent reports as used. It drops the weak observations
// about them and writes the others.
func (r *Session) Reported(ctx context.Context, ids []string) error {
	if err := r.touch(ctx); err != nil || len(ids) == 0 {
		return err
	}
	reported := func(id string) bool { return slices.Contains(ids, id) }
	r.pending = slices.DeleteFunc(r.pending, func(s Observation) bool { return reported(s.From) && reported(s.To) })
	if slices.ContainsFunc(r.fetched, reported) {
		r.fetched = nil
	}
	r.last = ids[len(ids)-1]
	return r.writeInferred(ctx)
}

// Close writes the intent of the last query and the weak observations.
func (r *Session) Close(ctx context.Context) error {
	if err := r.flush(ctx); err != nil {
		return err
	}
	return r.writeInferred(ctx)
}

// Idle reports whether the last record is older than Gap.
func (r *Session) Idle() bool {
	return !r.at.IsZero() && r.now().Sub(r.at) > Gap
}

// visit makes id the last node and returns the one before it, "" at the beginning of a piece
// of work.
func (r *Session) visit(ctx context.Context, id string) (before string, err error) {
	if err := checkID(id); err != nil {
		return "", err
	}
	if err := r.touch(ctx); err != nil {
		return "", err
	}
	before, r.last = r.last, id
	return before, nil
}

// touch records the time, and begins a new piece of work after a Gap.
func (r *Session) touch(ctx context.Context) error {
	now := r.now()
	pause := !r.at.IsZero() && now.Sub(r.at) > Gap
	r.at = now
	if !pause {
		return nil
	}
	r.last = ""
	if err := r.flush(ctx); err != nil {
		return err
	}
	err := r.writeInferred(ctx)
	r.tools, r.found, r.observed, r.intents = search{}, nil, nil, nil
	return err
}

// infer adds a weak observation, which a report may replace.
func (r *Session) infer(s Observation) {
	if len(r.pending) < Window {
		r.pending = append(r.pending, s)
	}
}

// writeInferred writes the pending weak observations, and the tools fetched for the last
// search as an intent. It writes each only once in a piece of work.
func (r *Session) writeInferred(ctx context.Context) error {
	var c Change
	if r.observed == nil {
		r.observed, r.intents = map[[2]string]bool{}, map[string]struct{}{}
	}
	for _, s := range r.pending {
		if pair := [2]string{s.From, s.To}; !r.observed[pair] && len(r.observed) < maxWeak {
			r.observed[pair] = true
			c.Observations = append(c.Observations, s)
		}
	}
	t := Trace{Intent: r.tools.query}
	for _, id := range r.fetched {
		t.Calls = append(t.Calls, Call{Tool: id})
	}
	r.pending, r.fetched = nil, nil
	if m, ok := t.Memory(); ok {
		m.Weak = true
		key := string(m.key())
		if _, already := r.intents[key]; !already && len(r.intents) < maxWeak {
			r.intents[key] = struct{}{}
			c.Intents = append(c.Intents, m)
		}
	}
	return r.add(ctx, c)
}

// flush writes the query with the uses after it as an intent. Used has written their edges.
func (r *Session) flush(ctx context.Context) error {
	t := Trace{Intent: r.query, Calls: r.used}
	r.query, r.used = "", nil
	m, ok := t.Memory()
	if !ok {
		return nil
	}
	return r.add(ctx, Change{Intents: []Intent{m}})
}
