package usage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"cairn/graphrank"
)

// MaxID bounds the id of a node in bytes.
const MaxID = 8 << 10

// Observation is one observation of a relation. According to its Type, To was used after
// From, is part of From, or needs From.
type Observation struct {
	From, To string
	Type     graphrank.Type
	// Weak reports that the observation was inferred from what an agent looked at. A
	// relation with weak observations only is in the graph from the third on.
	Weak bool
}

// weakLife is how long weak observations remain valid before the third.
const weakLife = 30 * 24 * time.Hour

// checkID returns an error for an ID that cannot be a node.
func checkID(id string) error {
	switch {
	case id == "" || id == graphrank.DocumentPrefix:
		return errors.New("an empty id")
	case len(id) > MaxID:
		return fmt.Errorf("id %.40q… is longer than %d bytes", id, MaxID)
	case strings.ContainsFunc(id, func(r rune) bool { return r < 0x20 || r == 0x7f || r == '\uFFFD' }):
		return fmt.Errorf("id %.80q holds control characters or broken text", id)
	}
	return nil
}

const edgeSize = 22

// weakBit in the source byte marks a weak edge.
const weakBit = 1 << 7

// edge is a stored edge.
type edge struct {
	count float64 // at the time last
	last  uint64  // time of the last observation in Unix seconds
	// observations is the count without decay. The third observation makes the source
	// Observed, although the decayed count is then a little less than three.
	observations uint32
	kind         graphrank.Type
	source       graphrank.Source
	weak         bool // has too few observations to be in the graph
}

func (e *edge) encode() []byte {
	source := byte(e.source)
	if e.weak {
		source |= weakBit
	}
	b := append(make([]byte, 0, edgeSize), byte(e.kind), source)
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(e.count))
	b = binary.LittleEndian.AppendUint64(b, e.last)
	return binary.LittleEndian.AppendUint32(b, e.observations)
}

var errEdge = errors.New("a stored edge is damaged")

func decodeEdge(value []byte) (edge, error) {
	if len(value) != edgeSize || value[0] > byte(graphrank.Dependency) || value[1]&^weakBit > byte(graphrank.Observed) {
		return edge{}, errEdge
	}
	e := edge{
		kind: graphrank.Type(value[0]), source: graphrank.Source(value[1] &^ weakBit), weak: value[1]&weakBit != 0,
		count: math.Float64frombits(binary.LittleEndian.Uint64(value[2:])),
		last:  binary.LittleEndian.Uint64(value[10:]), observations: binary.LittleEndian.Uint32(value[18:]),
	}
	if !(e.count >= 0) {
		return edge{}, errEdge
	}
	return e, nil
}

// at returns an edge with its count at the time now.
func (s *Store) at(p pair, e edge, now time.Time) graphrank.Edge {
	if e.source != graphrank.Template {
		e.count *= graphrank.HalfLifeFactor(now.Sub(e.time()).Seconds(), s.o.HalfLife.Seconds())
	}
	return graphrank.Edge{From: p[0], To: p[1], Type: e.kind, Source: e.source, Count: e.count}
}

func (e edge) time() time.Time { return time.Unix(int64(e.last), 0) }

// alive reports whether the decayed count of an edge is at least graphrank.MinCount. A weak
// edge must also be younger than weakLife.
func (s *Store) alive(e edge, now time.Time) bool {
	if e.weak && now.Sub(e.time()) > weakLife {
		return false
	}
	return e.source == graphrank.Template || s.at(pair{}, e, now).Count >= graphrank.MinCount
}

// observe returns e after an observation at the time now. The count of an unknown or dead
// edge begins at zero. A weak observation does not change the type of an edge that is not
// weak.
func (s *Store) observe(e edge, known bool, o Observation, now time.Time) edge {
	var one graphrank.Graph // has the rules for types, sources and counts
	if known && s.alive(e, now) {
		one.Set(s.at(pair{o.From, o.To}, e, now))
		if o.Weak && !e.weak {
			o.Type = e.kind
		}
	} else {
		e = edge{weak: o.Weak}
	}
	next := one.Observe(o.From, o.To, o.Type)
	e.kind, e.source, e.count, e.last = next.Type, next.Source, next.Count, unix(now)
	if e.observations < math.MaxUint32 {
		e.observations++
	}
	if e.observations >= graphrank.ObservedAfter {
		e.source = graphrank.Observed
	}
	e.weak = e.weak && o.Weak && e.observations < graphrank.ObservedAfter
	return e
}

// unix returns a time in whole seconds, 0 for times before 1970.
func unix(t time.Time) uint64 { return uint64(max(t.Unix(), 0)) }
