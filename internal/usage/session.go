package usage

import (
	"context"
	"slices"
	"sync"
	"time"

	"cairn/graphrank"
)

// Bounds on what counts as one piece of work in a session.
const (
	// Window is how many uses one query is remembered with.
	Window = 32
	// Gap is the pause after which the next use has nothing to do with the last.
	Gap = 30 * time.Minute
	// maxNoted is how many relations and intents a piece of work may show.
	maxNoted = 1024
)

// Session records one agent's session: what was used after what becomes
// sequence edges, and what was used after a query becomes its memory when the
// next query comes, or at Close. It is safe for concurrent use.
//
// A document that is read was used; its edges are written at once. A tool
// whose schema is fetched only may be: cairn does not see the call. That is
// evidence of the kind a click is, which says that a result seemed worth a look
// (Joachims, Optimizing search engines using clickthrough data, KDD 2002), and is
// treated as such:
//
//   - It is weak: nothing comes of it before it was seen in three pieces of
//     work. Within one piece of work, that is until a Gap, it counts once.
//   - A tool is evidence for a query only if it was an answer to it.
//   - Of two tools that one search found, neither follows the other: who looks
//     at one result after another compares, and has a use for one of them
//     (McAuley et al., Inferring networks of substitutable and complementary
//     products, KDD 2015: viewed together are substitutes, bought together
//     complements). Tools of different searches, and of a plan, follow.
//   - A plan is cairn's own, so making it is no evidence, or cairn would learn
//     from itself (Chaney et al., How algorithmic confounding in recommendation
//     systems increases homogeneity and decreases utility, RecSys 2018). Where
//     both ends of one of its edges are fetched then, that edge was seen.
//   - Reports of the agent are counted on their own, so what was inferred of the
//     same tools is dropped.
type Session struct {
	add func(context.Context, Change) error
	now func() time.Time

	mu    sync.Mutex
	query string
	used  []Call // since the query, at most Window
	last  string
	at    time.Time

	tools   search              // the last search of tools
	held    []Observation       // weak ones, until the next search of tools, at most Window
	found   map[string]int      // the search that found a tool, by number
	fetched []string            // tools since the last search, at most Window
	noted   map[[2]string]bool  // weak observations of this piece of work
	asked   map[string]struct{} // keys of its weak intents
}

// search is a query for tools with what it found.
type search struct {
	number int
	query  string
	edges  [][2]string // of a plan: the second after the first
	plan   bool
}

// NewSession starts a recording that passes what it shows to add. now may be nil.
func NewSession(add func(context.Context, Change) error, now func() time.Time) *Session {
	if now == nil {
		now = time.Now
	}
	return &Session{add: add, now: now}
}

// NewSession starts a recording in the store.
func (s *Store) NewSession() *Session { return NewSession(s.Add, s.o.Now) }

// Query notes what documents are looked for, and remembers what the query before
// it led to.
func (r *Session) Query(ctx context.Context, text string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if normal(text) == normal(r.query) {
		return nil // asked again, or for the next page
	}
	err := r.flush(ctx)
	if len(text) <= MaxIntent {
		r.query = text
	}
	return err
}

// Used notes a successful use of a document under its DocumentID, and returns
// when it is on disk. Failed calls are not noted.
func (r *Session) Used(ctx context.Context, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, err := r.note(ctx, id)
	if err != nil {
		return err
	}
	if r.query != "" && len(r.used) < Window {
		r.used = append(r.used, Call{Tool: id})
	}
	if before == "" || before == id {
		return nil
	}
	if _, document := DocumentPath(before); !document {
		r.hold(Observation{From: before, To: id, Type: graphrank.Sequence, Weak: true})
		return nil
	}
	return r.add(ctx, Change{Observations: []Observation{{From: before, To: id, Type: graphrank.Sequence}}})
}

// Searched notes that tools were looked for, and which were found, and writes what
// was inferred since the search before.
func (r *Session) Searched(ctx context.Context, query string, found []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begin(ctx, search{query: query}, found)
}

// Planned notes that a plan was made for an intent, with its tools and its edges,
// and writes what was inferred since the search before.
func (r *Session) Planned(ctx context.Context, intent string, tools []string, edges [][2]string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begin(ctx, search{query: intent, plan: true, edges: edges}, tools)
}

func (r *Session) begin(ctx context.Context, next search, found []string) error {
	if err := r.arrive(ctx); err != nil {
		return err
	}
	next.number = r.tools.number
	if again := next.query != "" && normal(next.query) == normal(r.tools.query); !again || next.plan != r.tools.plan {
		if err := r.settle(ctx); err != nil {
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
	if r.found == nil || len(r.found) > maxNoted {
		r.found = map[string]int{}
	}
	for _, id := range found {
		r.found[id] = next.number
	}
	return nil
}

// Fetched notes that an agent fetched what it needs to call a tool.
func (r *Session) Fetched(ctx context.Context, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, err := r.note(ctx, id)
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
				r.hold(Observation{From: e[0], To: e[1], Type: graphrank.Sequence, Weak: true})
			}
		}
	}
	if before == "" || before == id || r.found[id] != 0 && r.found[before] == r.found[id] {
		return nil
	}
	r.hold(Observation{From: before, To: id, Type: graphrank.Sequence, Weak: true})
	return nil
}

// Reported notes the tools that an agent reports as used, and drops what was
// inferred of them.
func (r *Session) Reported(ctx context.Context, ids []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.arrive(ctx); err != nil || len(ids) == 0 {
		return err
	}
	reported := func(id string) bool { return slices.Contains(ids, id) }
	r.held = slices.DeleteFunc(r.held, func(s Observation) bool { return reported(s.From) && reported(s.To) })
	if slices.ContainsFunc(r.fetched, reported) {
		r.fetched = nil
	}
	r.last = ids[len(ids)-1]
	return r.settle(ctx)
}

// Close remembers what the last query led to.
func (r *Session) Close(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.flush(ctx); err != nil {
		return err
	}
	return r.settle(ctx)
}

// Idle reports whether nothing was noted for longer than a Gap.
func (r *Session) Idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.at.IsZero() && r.now().Sub(r.at) > Gap
}

// note makes id the last one noted and returns the one before it; "" is none in
// this piece of work. r.mu is held.
func (r *Session) note(ctx context.Context, id string) (before string, err error) {
	if err := checkID(id); err != nil {
		return "", err
	}
	if err := r.arrive(ctx); err != nil {
		return "", err
	}
	before, r.last = r.last, id
	return before, nil
}

// arrive notes the time, and begins a new piece of work after a pause. r.mu is held.
func (r *Session) arrive(ctx context.Context) error {
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
	err := r.settle(ctx)
	r.tools, r.found, r.noted, r.asked = search{}, nil, nil, nil
	return err
}

// hold keeps a weak observation until the agent may have reported it. r.mu is held.
func (r *Session) hold(s Observation) {
	if len(r.held) < Window {
		r.held = append(r.held, s)
	}
}

// settle writes the weak observations that are held, and what was fetched for the last
// search of tools, each once for a piece of work. r.mu is held.
func (r *Session) settle(ctx context.Context) error {
	var c Change
	if r.noted == nil {
		r.noted, r.asked = map[[2]string]bool{}, map[string]struct{}{}
	}
	for _, s := range r.held {
		if pair := [2]string{s.From, s.To}; !r.noted[pair] && len(r.noted) < maxNoted {
			r.noted[pair] = true
			c.Observations = append(c.Observations, s)
		}
	}
	t := Trace{Intent: r.tools.query}
	for _, id := range r.fetched {
		t.Calls = append(t.Calls, Call{Tool: id})
	}
	r.held, r.fetched = nil, nil
	if m, ok := t.Memory(); ok {
		m.Weak = true
		key := string(m.key())
		if _, already := r.asked[key]; !already && len(r.asked) < maxNoted {
			r.asked[key] = struct{}{}
			c.Intents = append(c.Intents, m)
		}
	}
	return r.add(ctx, c)
}

// flush remembers the query with what was used since. Its edges were counted
// as they were seen. r.mu is held.
func (r *Session) flush(ctx context.Context) error {
	t := Trace{Intent: r.query, Calls: r.used}
	r.query, r.used = "", nil
	m, ok := t.Memory()
	if !ok {
		return nil
	}
	return r.add(ctx, Change{Intents: []Intent{m}})
}
