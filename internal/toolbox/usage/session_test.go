package usage

import (
	"slices"
	"testing"
	"time"

	"cairn/graphrank"
	"cairn/internal/store/kv"
)

// play runs steps of a session.
func play(r *Session, steps ...func(*Session)) {
	for _, step := range steps {
		step(r)
	}
}

func TestWeakEvidence(t *testing.T) {
	search := func(query string, found ...string) func(*Session) {
		return func(r *Session) { r.Searched(query, found) }
	}
	plan := func(intent string, tools []string, edges ...[2]string) func(*Session) {
		return func(r *Session) { r.Planned(intent, tools, edges) }
	}
	fetch := func(id string) func(*Session) { return func(r *Session) { r.Fetched(id) } }
	read := func(id string) func(*Session) { return func(r *Session) { r.Used(id) } }
	told := func(ids ...string) func(*Session) {
		return func(r *Session) { r.Reported(ids) }
	}
	for _, c := range []struct {
		name    string
		steps   []func(*Session)
		edges   []string
		intents []string
	}{
		{"a hit is fetched", []func(*Session){search("q", "a", "b"), fetch("b")}, nil, []string{"q [b]"}},
		{"what is no hit says nothing of the query", []func(*Session){search("q", "a"), fetch("z")}, nil, nil},
		{"tools of two searches follow each other", []func(*Session){search("q", "a"), fetch("a"), search("p", "b"), fetch("b")}, []string{"a>b"}, []string{"p [b]", "q [a]"}},
		{"hits of one search are alternatives", []func(*Session){search("q", "a", "b"), fetch("a"), fetch("b")}, nil, []string{"q [a b]"}},
		{"the next page is the same search", []func(*Session){search("q", "a"), search("Q ", "b"), fetch("a"), fetch("b")}, nil, []string{"q [a b]"}},
		{"without a search they follow", []func(*Session){fetch("a"), fetch("b"), fetch("b"), fetch("a")}, []string{"a>b", "b>a"}, nil},
		{"a plan alone says nothing", []func(*Session){plan("i", []string{"a", "b"}, [2]string{"a", "b"})}, nil, nil},
		{"one end of a plan's edge is not enough", []func(*Session){plan("i", []string{"a", "b"}, [2]string{"a", "b"}), fetch("b")}, nil, []string{"i [b]"}},
		{"a plan is followed, in its order", []func(*Session){plan("i", []string{"a", "b", "c"}, [2]string{"a", "b"}), fetch("b"), fetch("a")}, []string{"a>b"}, []string{"i [b a]"}},
		{"a recorded relation is not inferred too", []func(*Session){search("q", "a"), fetch("a"), search("p", "b"), fetch("b"), told("a", "b"), fetch("c")}, []string{"b>c"}, []string{"q [a]"}},
		{"a document leads to a tool", []func(*Session){read("doc:d"), fetch("a")}, []string{"doc:d>a"}, nil},
		{"and back", []func(*Session){fetch("a"), read("doc:d")}, []string{"a>doc:d"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, openDB(t), &Options{HalfLife: -1})
			for round := range 3 {
				if got := edges(t, s); len(got) > 0 {
					t.Errorf("after %d pieces of work there are edges: %v", round, got)
				}
				if got := intentsOf(t, s); len(got) > 0 {
					t.Errorf("after %d pieces of work there are intents: %v", round, got)
				}
				r := s.NewSession(t)
				// Twice in one piece of work counts once.
				play(r, append(slices.Clone(c.steps), func(r *Session) { r.last = ""; r.Searched("something else", nil) })...)
				play(r, c.steps...)
				r.Close()
			}
			var want []string
			for _, e := range c.edges {
				want = append(want, e+" sequence observed 3")
			}
			if got := edges(t, s); !slices.Equal(got, want) {
				t.Errorf("edges %v, want %v", got, want)
			}
			var got []string
			for _, m := range intentsOf(t, s) {
				got = append(got, m.Text+" "+textOf(m.Tools))
			}
			if !slices.Equal(got, c.intents) {
				t.Errorf("intents %q, want %q", got, c.intents)
			}
		})
	}
}

func textOf(tools []string) string {
	text := "["
	for i, tool := range tools {
		if i > 0 {
			text += " "
		}
		text += tool
	}
	return text + "]"
}

// TestWeakSights: weak observations wait for the third over a restart, a
// telling one ends the waiting, they do not rewrite what was told, they are
// forgotten on request, and when the third does not come in time.
func TestWeakSights(t *testing.T) {
	c := &clock{start}
	db := openDB(t)
	o := &Options{Now: c.now, HalfLife: -1}
	s := open(t, db, o)
	weak := Observation{From: "a", To: "b", Type: graphrank.Sequence, Weak: true}
	observe := func(observations ...Observation) {
		t.Helper()
		if err := s.Observe(t.Context(), observations...); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what string, want ...string) {
		t.Helper()
		for _, one := range []*Store{s, open(t, db, o)} {
			if got := edges(t, one); !slices.Equal(got, want) {
				t.Errorf("%s: edges %v, want %v", what, got, want)
			}
		}
	}
	observe(weak)
	s = open(t, db, o)
	observe(weak)
	check("two weak observations")
	observe(weak)
	check("three", "a>b sequence observed 3")
	observe(Observation{From: "a", To: "c", Type: graphrank.Sequence, Weak: true}, Observation{From: "a", To: "c", Type: graphrank.Dependency})
	observe(Observation{From: "a", To: "c", Type: graphrank.Sequence, Weak: true})
	check("told once", "a>b sequence observed 3", "a>c dependency observed 3")

	observe(Observation{From: "x", To: "y", Weak: true}, Observation{From: "x", To: "y", Weak: true})
	if f, err := s.ForgetNode("x"); err != nil || f.Edges != 1 {
		t.Errorf("forgetting x: %+v, %v, want what waited", f, err)
	}
	observe(Observation{From: "x", To: "y", Weak: true})
	observe(Observation{From: "u", To: "v", Weak: true}, Observation{From: "u", To: "v", Weak: true})
	c.t = c.t.Add(weakLife + day)
	observe(Observation{From: "u", To: "v", Weak: true})
	check("too late, and after forgetting", "a>b sequence observed 3", "a>c dependency observed 3")

	intent := func(weak bool, tools ...string) {
		t.Helper()
		if err := s.Add(t.Context(), Change{Intents: []Intent{{Text: "q", Tools: tools, Weak: weak}}}); err != nil {
			t.Fatal(err)
		}
	}
	intent(true, "a", "b")
	intent(true, "a", "b")
	if got := intentsOf(t, s); len(got) != 0 {
		t.Errorf("%+v, want no intent of two weak observations", got)
	}
	intent(false, "b", "a")
	intent(true, "a", "b")
	if got := intentsOf(t, s); len(got) != 1 || !slices.Equal(got[0].Tools, []string{"b", "a"}) || got[0].Count != 4 {
		t.Errorf("%+v, want what was told, four times", got)
	}
	if f, err := s.ForgetAll(); err != nil || f.Intents != 1 || f.Edges != 3 {
		t.Errorf("%+v, %v", f, err)
	}
	check("after all is forgotten")
}

// TestFormatOne: a file of version 1 is read, and becomes one of version 2 when
// it is written.
func TestFormatOne(t *testing.T) {
	db := openDB(t)
	s := open(t, db, &Options{HalfLife: -1})
	if err := s.Learn(t.Context(), trace(t, `{"intent":"i","calls":[{"tool":"a"},{"tool":"b"}]}`)); err != nil {
		t.Fatal(err)
	}
	stamp := func(version byte) error {
		return db.Update(func(tx *kv.Tx) error {
			return put(tx, metaBucket, "version", string([]byte{version, 0, 0, 0, 0, 0, 0, 0}))
		})
	}
	if err := stamp(1); err != nil {
		t.Fatal(err)
	}
	old := open(t, db, nil)
	if got := edges(t, old); len(got) != 1 {
		t.Errorf("edges %v of version 1, want one", got)
	}
	if err := old.Observe(t.Context(), Observation{From: "a", To: "b"}); err != nil {
		t.Fatal(err)
	}
	if got := open(t, db, nil).version; got != version {
		t.Errorf("after a write the version is %d, want %d", got, version)
	}
	if err := stamp(version + 1); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file(db), nil); err == nil {
		t.Error("a later version is opened")
	}
}

// TestSessionPauses: after a pause a new piece of work begins, which can show the
// same again.
func TestSessionPauses(t *testing.T) {
	c := &clock{start}
	s := open(t, openDB(t), &Options{Now: c.now, HalfLife: -1})
	r := s.NewSession(t)
	for range graphrank.ObservedAfter {
		for _, id := range []string{"a", "b"} {
			r.Fetched(id)
		}
		c.t = c.t.Add(Gap + time.Minute)
		if !r.Idle() {
			t.Error("a session is not idle after a pause")
		}
	}
	r.Close()
	if got := edges(t, s); !slices.Equal(got, []string{"a>b sequence observed 3"}) {
		t.Errorf("edges %v", got)
	}
}
