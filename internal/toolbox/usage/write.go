package usage

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"cairn/internal/toolbox/records"
)

// Change holds what one write adds.
type Change struct {
	Observations []Observation `json:"observations,omitempty"`
	Intents      []Intent      `json:"intents,omitempty"`
	Traces       []Trace       `json:"traces,omitempty"`

	examples map[string]json.RawMessage // arguments by tool, of Traces
}

// Len returns the number of additions in the change.
func (c *Change) Len() int {
	return len(c.Observations) + len(c.Intents) + len(c.Traces) + len(c.examples)
}

// Add stores the observations and intents of a change and of its traces. It returns when they
// are durable. After an error it has stored none.
func (s *Store) Add(ctx context.Context, c Change) error {
	c.examples = map[string]json.RawMessage{}
	for i := range c.Traces {
		t := &c.Traces[i]
		if err := t.Check(); err != nil {
			return fmt.Errorf("trace %d: %w", i+1, err)
		}
		c.Observations = append(c.Observations, t.Observations()...)
		if m, ok := t.Memory(); ok {
			c.Intents = append(c.Intents, m)
		}
		addExamples(c.examples, t, s.o.Masks)
	}
	c.Traces = nil
	for _, observation := range c.Observations {
		if err := cmp.Or(checkID(observation.From), checkID(observation.To)); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil || c.Len() == 0 {
		return err
	}
	err := s.update(func(d *delta, now time.Time) {
		s.add(d, c, now)
		s.evict(d)
		s.sweep(d, now)
	})
	if err != nil {
		return fmt.Errorf("writing the usage graph: %w", err)
	}
	return nil
}

// update stores the changes that fn adds to a delta, in one transaction.
func (s *Store) update(fn func(d *delta, now time.Time)) error {
	s.commit.Lock()
	defer s.commit.Unlock()
	var d delta
	now := s.o.Now()
	s.mu.RLock()
	generation := s.generation
	s.mu.RUnlock()
	next, err := s.records.Update(context.Background(), generation, func(c records.Changes) ([]records.Record, error) {
		if err := s.apply(c); err != nil {
			return nil, err
		}
		s.mu.RLock()
		defer s.mu.RUnlock()
		d = newDelta()
		fn(&d, now)
		if s.version != version && len(d.edges)+len(d.intents)+len(d.examples) > 0 {
			d.version = version
		}
		return d.list(), nil
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if next > s.generation { // otherwise nothing has changed, or a reader has loaded the changes
		s.install(d, next, now)
	}
	return nil
}

// add adds the observations and intents of a change to the delta, based on the values in
// the delta or else in memory. The caller holds s.mu for reading.
func (s *Store) add(d *delta, c Change, now time.Time) {
	for _, observation := range c.Observations {
		if observation.From == observation.To {
			continue
		}
		p := pair{observation.From, observation.To}
		e, known := latest(d.edges, s.edges, p)
		e = s.observe(e, known, observation, now)
		d.edges[p] = &e
	}
	for tool, arguments := range c.examples {
		old, known := latest(d.examples, s.examples, tool)
		if !known && len(s.examples)+len(d.examples) < maxExamples || known && len(arguments) < len(old.arguments) {
			d.examples[tool] = &example{arguments, unix(now)}
		}
	}
	for i := range c.Intents {
		m := &c.Intents[i]
		key := string(m.key())
		old, known := latest(d.intents, s.intents, key)
		d.intents[key] = new(m.again(old, known, now))
	}
}

// latest returns a value of the delta, or else in memory.
func latest[K comparable, V any](delta map[K]*V, memory map[K]V, key K) (v V, known bool) {
	if next := delta[key]; next != nil {
		return *next, true
	}
	v, known = memory[key]
	return v, known
}

// evict removes the intents observed longest ago if there are more than MaxIntents.
func (s *Store) evict(d *delta) {
	total := len(s.intents)
	for key := range d.intents {
		if _, known := s.intents[key]; !known {
			total++
		}
	}
	if total <= s.o.MaxIntents {
		return
	}
	all := maps.Clone(s.intents)
	for key, m := range d.intents {
		all[key] = *m
	}
	keys := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(all[a].Last.Compare(all[b].Last), cmp.Compare(a, b))
	})
	// Remove another hundredth, so that not every write has to sort.
	for _, key := range keys[:min(len(keys), len(all)-s.o.MaxIntents+s.o.MaxIntents/100)] {
		d.intents[key] = nil
	}
}

// sweep removes dead edges and old weak intents, once in every refresh.
func (s *Store) sweep(d *delta, now time.Time) {
	if now.Sub(s.swept) < refresh {
		return
	}
	s.swept = now
	for p, e := range s.edges {
		if d.edges[p] == nil && !s.alive(e, now) {
			d.edges[p] = nil
		}
	}
	for key, m := range s.intents {
		if d.intents[key] == nil && m.Weak && now.Sub(m.Last) > weakLife {
			d.intents[key] = nil
		}
	}
}

// Forgotten counts the removed edges and intents.
type Forgotten struct {
	Edges   int `json:"edges"`
	Intents int `json:"intents"`
}

// Forget removes the edges, intents and examples for which match returns true, given their nodes
// and the time of their last observation in Unix seconds. An edge keeps or loses its whole
// count, because single observations are not stored.
func (s *Store) Forget(match func(nodes []string, last int64) bool) (f Forgotten, err error) {
	err = s.update(func(d *delta, _ time.Time) {
		for p, e := range s.edges {
			if match(p[:], int64(e.last)) {
				d.edges[p] = nil
			}
		}
		for key, m := range s.intents {
			if match(m.Tools, m.Last.Unix()) {
				d.intents[key] = nil
			}
		}
		for tool, e := range s.examples {
			if match([]string{tool}, int64(e.last)) {
				d.examples[tool] = nil
			}
		}
		f = Forgotten{len(d.edges), len(d.intents)}
	})
	if err != nil {
		return Forgotten{}, fmt.Errorf("forgetting: %w", err)
	}
	return f, nil
}
