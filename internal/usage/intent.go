package usage

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"cairn/graphrank"
	"cairn/internal/kv"
)

// weakMark ends the record of an intent that does not count yet.
const weakMark = 1

// Intent is something that was asked for and the tools that served it.
type Intent struct {
	Text string
	// Tools are ids in the order of use; one may stand twice.
	Tools []string
	// Edges are pairs of positions in Tools: the second needed the first's result.
	Edges [][2]int
	Last  time.Time // when it was last seen, to the second
	Count int       // how often, at least 1
	// Weak intents were inferred from what an agent looked at, not told. They
	// are not remembered, only counted, until they were seen three times.
	Weak bool
}

// sameUse reports whether two intents say the same of the order of their tools.
func (m *Intent) sameUse(o *Intent) bool {
	return m.Text == o.Text && slices.Equal(m.Tools, o.Tools) && slices.Equal(m.Edges, o.Edges)
}

// again is m seen at now, after old, which known says there was. A weak sight does
// not rewrite what was told.
func (m *Intent) again(old Intent, known bool, now time.Time) Intent {
	next := *m
	if !known || old.Weak && now.Sub(old.Last) > weakLife {
		old = Intent{Weak: m.Weak}
	} else if m.Weak && !old.Weak {
		next = old
	}
	next.Last, next.Count = now, old.Count+1
	next.Weak = m.Weak && old.Weak && next.Count < graphrank.ObservedAfter
	return next
}

// normal is the text that decides whether two intents are the same: lower
// case, with blanks made one.
func normal(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }

func (m *Intent) key() []byte {
	h := sha256.New()
	h.Write([]byte(normal(m.Text)))
	for _, tool := range slices.Compact(slices.Sorted(slices.Values(m.Tools))) {
		h.Write([]byte("\x00" + tool))
	}
	return h.Sum(nil)[:16]
}

// appendIntent writes an intent: last sight (Unix seconds) and count as
// unsigned varints, the text, the number of tools and each of them, the number of
// edges and both ends of each, and weakMark on those that are weak. Texts follow
// their length in bytes; all numbers are unsigned varints.
func appendIntent(b []byte, m *Intent) []byte {
	text := func(s string) {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	b = binary.AppendUvarint(binary.AppendUvarint(b, unix(m.Last)), uint64(m.Count))
	text(m.Text)
	b = binary.AppendUvarint(b, uint64(len(m.Tools)))
	for _, tool := range m.Tools {
		text(tool)
	}
	b = binary.AppendUvarint(b, uint64(len(m.Edges)))
	for _, e := range m.Edges {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(e[0])), uint64(e[1]))
	}
	if m.Weak {
		b = append(b, weakMark)
	}
	return b
}

var errIntent = errors.New("a stored intent is damaged")

func decodeIntent(b []byte) (m Intent, err error) {
	bad := false
	number := func() int {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > 1<<40 {
			bad, b = true, nil
			return 0
		}
		b = b[n:]
		return int(v)
	}
	size := func() int { // of what follows, which takes a byte each at least
		n := number()
		if n > len(b) {
			bad, b = true, nil
			return 0
		}
		return n
	}
	text := func() string {
		n := size()
		s := string(b[:n])
		b = b[n:]
		return s
	}
	m.Last = time.Unix(int64(number()), 0)
	m.Count = number()
	m.Text = text()
	for range size() {
		m.Tools = append(m.Tools, text())
	}
	for range size() {
		e := [2]int{number(), number()}
		bad = bad || max(e[0], e[1]) >= len(m.Tools)
		m.Edges = append(m.Edges, e)
	}
	if m.Weak = len(b) == 1 && b[0] == weakMark; m.Weak {
		b = nil
	}
	if bad || len(b) > 0 || len(m.Tools) == 0 {
		return Intent{}, errIntent
	}
	return m, nil
}

// remember puts intents into the file; one that is known counts once more, and
// its latest order, edges and spelling hold. It notes in n what becomes of the
// memory.
func (s *Store) remember(tx *kv.Tx, meta *meta, intents []Intent, now time.Time, n *news) error {
	if len(intents) == 0 {
		return nil
	}
	b, err := tx.Bucket(intentsBucket)
	if err != nil {
		return err
	}
	type keyed struct {
		key []byte
		Intent
	}
	list := make([]keyed, len(intents))
	for i := range intents {
		list[i] = keyed{intents[i].key(), intents[i]}
	}
	// In order, for the reason given in count; equal ones stay as they came.
	slices.SortStableFunc(list, func(a, b keyed) int { return bytes.Compare(a.key, b.key) })
	for _, one := range list {
		var old Intent
		value := b.Get(one.key)
		if value == nil {
			meta.remembered++
		} else if old, err = decodeIntent(value); err != nil {
			return err
		}
		m := one.again(old, value != nil, now)
		n.intent(&old, value != nil, &m)
		if err := b.Put(one.key, appendIntent(nil, &m)); err != nil {
			return err
		}
		if !m.Weak {
			meta.intents = meta.generation + 1
		}
	}
	evicted, err := s.bound(tx, meta)
	if evicted > 0 {
		meta.intents, n.partial = meta.generation+1, true
	}
	return err
}

// bound removes the oldest intents beyond MaxIntents, and says how many.
func (s *Store) bound(tx *kv.Tx, meta *meta) (int, error) {
	if meta.remembered <= uint64(s.o.MaxIntents) {
		return 0, nil
	}
	// Some room is made at once, so that not every write has to look.
	n, err := evict(tx, int(meta.remembered)-s.o.MaxIntents+s.o.MaxIntents/100)
	meta.remembered -= uint64(n)
	return n, err
}

// evict removes the n intents that were not seen for longest, of equal ones
// those of the smaller key.
func evict(tx *kv.Tx, n int) (int, error) {
	type aged struct {
		last time.Time
		key  []byte
	}
	b, err := tx.Bucket(intentsBucket)
	if err != nil {
		return 0, err
	}
	var all []aged
	b.ForEach(func(key, value []byte) bool {
		var m Intent
		if m, err = decodeIntent(value); err == nil {
			all = append(all, aged{m.Last, bytes.Clone(key)})
		}
		return err == nil
	})
	if err != nil {
		return 0, err
	}
	slices.SortFunc(all, func(a, b aged) int {
		return cmp.Or(a.last.Compare(b.last), bytes.Compare(a.key, b.key))
	})
	all = all[:min(n, len(all))]
	for _, a := range all {
		if err := b.Delete(a.key); err != nil {
			return 0, err
		}
	}
	return len(all), nil
}

// Intents are all that is remembered, by text, then tools. The slice is shared:
// read only. It is the same slice until an intent is added or forgotten.
func (s *Store) Intents() ([]Intent, error) {
	if err := s.refresh(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	intents, current := s.intents, s.intGen == s.meta.intents
	s.mu.RUnlock()
	if current {
		return intents, nil
	}
	if s.o.Journal != nil {
		release, err := s.o.Journal.Lock(false)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	var m meta
	err := overtaken(func() (err error) {
		if s.o.Journal != nil {
			if err := s.catchUp(); err != nil {
				return err
			}
		}
		intents, m, err = s.storedIntents()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the memory of intents: %w", err)
	}
	for _, one := range s.over.intents {
		if !one.Weak {
			intents = append(intents, one)
		}
	}
	slices.SortFunc(intents, func(a, b Intent) int {
		return cmp.Or(cmp.Compare(a.Text, b.Text), slices.Compare(a.Tools, b.Tools))
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intents, s.intGen = intents, max(m.intents, s.meta.intents)
	return intents, nil
}

// storedIntents are those of the database that the journal has nothing newer of.
func (s *Store) storedIntents() (intents []Intent, m meta, err error) {
	err = s.db.View(func(tx *kv.Tx) (err error) {
		if m, err = readMeta(tx); err != nil {
			return err
		}
		if s.o.Journal != nil {
			if err := s.onBase(tx); err != nil {
				return err
			}
		}
		b, err := tx.Bucket(intentsBucket)
		if err != nil {
			return err
		}
		b.ForEach(func(key, value []byte) bool {
			if _, newer := s.over.intents[string(key)]; newer {
				return true
			}
			var one Intent
			if one, err = decodeIntent(value); err == nil && !one.Weak {
				intents = append(intents, one)
			}
			return err == nil
		})
		return err
	})
	return intents, m, err
}
