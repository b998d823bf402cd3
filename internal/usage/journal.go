package usage

import (
	"encoding/binary"
	"errors"
	"time"

	"cairn/graphrank"
	"cairn/internal/kv"
)

// weakSight is added to the type of a weak sight in a record.
const weakSight = 8

// appendChange writes a change as a record of the journal: its time (Unix
// seconds), the number of sights and of each its type, with weakSight added where
// it is weak, and both ends, the number
// of intents and each as appendIntent writes it, after its length. Texts follow
// their length in bytes; all numbers are unsigned varints.
func appendChange(b []byte, c change, now time.Time) []byte {
	text := func(s string) {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	b = binary.AppendUvarint(b, unix(now))
	b = binary.AppendUvarint(b, uint64(len(c.sights)))
	for _, s := range c.sights {
		t := uint64(s.Type)
		if s.Weak {
			t += weakSight
		}
		b = binary.AppendUvarint(b, t)
		text(s.From)
		text(s.To)
	}
	b = binary.AppendUvarint(b, uint64(len(c.intents)))
	for i := range c.intents {
		m := c.intents[i]
		m.Last, m.Count = now, 1
		text(string(appendIntent(nil, &m)))
	}
	return b
}

var errRecord = errors.New("a record of the usage journal is damaged")

func decodeChange(b []byte) (c change, now time.Time, err error) {
	bad := false
	number := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > 1<<40 {
			bad, b = true, nil
			return 0
		}
		b = b[n:]
		return v
	}
	text := func() string {
		n := number()
		if n > uint64(len(b)) {
			bad, b = true, nil
			return ""
		}
		s := string(b[:n])
		b = b[n:]
		return s
	}
	now = time.Unix(int64(number()), 0)
	for n := number(); n > 0 && !bad; n-- {
		t := number()
		weak := t >= weakSight
		if weak {
			t -= weakSight
		}
		s := Sight{From: text(), To: text(), Type: graphrank.Type(t), Weak: weak}
		bad = bad || t > uint64(graphrank.Dependency) || checkID(s.From) != nil || checkID(s.To) != nil
		c.sights = append(c.sights, s)
	}
	for n := number(); n > 0 && !bad; n-- {
		m, err := decodeIntent([]byte(text()))
		bad = bad || err != nil
		c.intents = append(c.intents, m)
	}
	if bad || len(b) > 0 {
		return change{}, time.Time{}, errRecord
	}
	return c, now, nil
}

// laid is a change as it looks over what is stored already.
type laid struct {
	edges   map[[2]string]*edge
	intents map[string]Intent
	added   int // intents that were not known
	news    news
}

// prepare finds out what a change makes of what is stored, and changes nothing.
// One writer at a time calls it, under the journal's lock.
func (s *Store) prepare(c change, now time.Time) (laid, error) {
	o := laid{edges: map[[2]string]*edge{}, intents: map[string]Intent{}}
	keys := make([]string, len(c.intents))
	for _, sight := range c.sights {
		pair := [2]string{sight.From, sight.To}
		if e, ok := s.over.edges[pair]; ok && sight.From != sight.To {
			o.edges[pair] = s.aged(e, now)
		}
	}
	for i := range c.intents {
		keys[i] = string(c.intents[i].key())
	}
	if err := s.db.View(func(tx *kv.Tx) error { return s.stored(tx, &o, c, keys, now) }); err != nil {
		return laid{}, err
	}
	for _, sight := range c.sights {
		if sight.From == sight.To {
			continue
		}
		pair := [2]string{sight.From, sight.To}
		if o.edges[pair] == nil {
			o.edges[pair] = &edge{}
		}
		o.edges[pair].seen(sight, now)
	}
	for i, one := range c.intents {
		old, known := o.intents[keys[i]]
		if !known {
			if old, known = s.over.intents[keys[i]]; !known {
				o.added++
			}
		}
		next := one.again(old, known, now)
		o.news.intent(&old, known, &next)
		o.intents[keys[i]] = next
	}
	return o, nil
}

// stored reads what the database has of a change's edges and intents, where
// the journal has nothing newer.
func (s *Store) stored(tx *kv.Tx, o *laid, c change, keys []string, now time.Time) error {
	if err := s.onBase(tx); err != nil {
		return err
	}
	edges, err := tx.Bucket(edgesBucket)
	if err != nil {
		return err
	}
	for _, sight := range c.sights {
		pair := [2]string{sight.From, sight.To}
		if o.edges[pair] != nil || sight.From == sight.To {
			continue
		}
		key := edgeKey(sight.From, sight.To)
		if value := edges.Get(key); value != nil {
			e, err := s.decodeEdge(key, value, now)
			if err != nil {
				return err
			}
			o.edges[pair] = &e
		}
	}
	intents, err := tx.Bucket(intentsBucket)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if _, newer := s.over.intents[key]; newer {
			continue
		}
		if value := intents.Get([]byte(key)); value != nil {
			if o.intents[key], err = decodeIntent(value); err != nil {
				return err
			}
		}
	}
	return nil
}

// onBase fails when tx reads another database than the journal goes on from: one
// that another process has put the journal into, which no lock keeps out.
func (s *Store) onBase(tx *kv.Tx) error {
	epoch, err := Epoch(tx)
	if err == nil && epoch != s.base.epoch {
		err = ErrOvertaken
	}
	return err
}

// aged is a copy of e with its count as of now.
func (s *Store) aged(e *edge, now time.Time) *edge {
	copied := *e
	if copied.Source != graphrank.Template {
		copied.Count *= graphrank.HalfLifeFactor(now.Sub(copied.last).Seconds(), s.o.HalfLife.Seconds())
	}
	return &copied
}

// install lays a change over what is stored. s.mu is held.
func (s *Store) install(o laid) {
	if s.over.edges == nil {
		s.over = overlay{map[[2]string]*edge{}, map[string]Intent{}}
	}
	now := s.o.Now()
	n := o.news
	for pair, e := range o.edges {
		s.over.edges[pair] = e
		if !e.weak {
			one := s.aged(e, now).Edge
			s.graph.Set(one)
			n.edges = append(n.edges, one)
		}
	}
	for key, one := range o.intents {
		s.over.intents[key] = one
	}
	s.meta.generation++
	s.meta.remembered += uint64(o.added)
	for _, one := range o.intents {
		if !one.Weak {
			s.meta.intents = s.meta.generation
		}
	}
	s.recent.add(s.meta.generation, n)
}
