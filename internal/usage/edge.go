package usage

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"time"

	"cairn/graphrank"
)

// DocumentPrefix starts the ids of documents. No tool's id starts with it.
const DocumentPrefix = "doc:"

// MaxID bounds the id of a node in bytes.
const MaxID = 8 << 10

// DocumentID is the node of the document at a path within the workspace.
func DocumentID(path string) string { return DocumentPrefix + path }

// DocumentPath is the path of a document's node; ok is false for a tool's.
func DocumentPath(id string) (path string, ok bool) { return strings.CutPrefix(id, DocumentPrefix) }

// Sight is one sight of a relation: To was used after, is part of, or needs
// From, by Type.
type Sight struct {
	From, To string
	Type     graphrank.Type
	// Weak sights were inferred from what an agent looked at, not told: a
	// relation that only such were seen of is none before the third.
	Weak bool
}

// weakLife is how long weak sights wait for the third.
const weakLife = 30 * 24 * time.Hour

// checkID refuses what cannot be a node.
func checkID(id string) error {
	switch {
	case id == "" || id == DocumentPrefix:
		return fmt.Errorf("an empty id")
	case len(id) > MaxID:
		return fmt.Errorf("id %.40q… is longer than %d bytes", id, MaxID)
	case strings.ContainsFunc(id, func(r rune) bool { return r < 0x20 || r == 0x7f || r == '\uFFFD' }):
		return fmt.Errorf("id %.80q holds control characters or broken text", id)
	}
	return nil
}

func edgeKey(from, to string) []byte { return []byte(from + "\x00" + to) }

const edgeSize = 22

// weakBit marks, in the byte of the source, an edge that does not count yet.
const weakBit = 1 << 7

// edge is one as it is stored.
type edge struct {
	graphrank.Edge
	last time.Time // to the second
	// sights is how often it was seen, without decay: the third sight makes an
	// edge observed although its count is a little below three by then.
	sights uint32
	weak   bool // not enough was seen of it yet: it is no part of the graph
}

func (e *edge) encode() []byte {
	source := byte(e.Source)
	if e.weak {
		source |= weakBit
	}
	b := append(make([]byte, 0, edgeSize), byte(e.Type), source)
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(e.Count))
	b = binary.LittleEndian.AppendUint64(b, unix(e.last))
	return binary.LittleEndian.AppendUint32(b, e.sights)
}

// decodeEdge reads an edge with its count as of now.
func (s *Store) decodeEdge(key, value []byte, now time.Time) (e edge, err error) {
	from, to, ok := bytes.Cut(key, []byte{0})
	if !ok || len(value) != edgeSize || value[0] > byte(graphrank.Dependency) || value[1]&^weakBit > byte(graphrank.Observed) {
		return e, fmt.Errorf("the stored edge %.80q is damaged", key)
	}
	e.Edge = graphrank.Edge{From: string(from), To: string(to), Type: graphrank.Type(value[0]), Source: graphrank.Source(value[1] &^ weakBit)}
	e.weak = value[1]&weakBit != 0
	e.Count = math.Float64frombits(binary.LittleEndian.Uint64(value[2:]))
	e.last = time.Unix(int64(binary.LittleEndian.Uint64(value[10:])), 0)
	e.sights = binary.LittleEndian.Uint32(value[18:])
	if e.Source != graphrank.Template {
		e.Count *= graphrank.HalfLifeFactor(now.Sub(e.last).Seconds(), s.o.HalfLife.Seconds())
	}
	if !(e.Count >= 0) {
		return e, fmt.Errorf("the stored edge %.80q is damaged", key)
	}
	return e, nil
}

// seen counts a sight of e as it is now; an edge that is new or dead begins anew.
// A weak sight does not change what a relation was told to be.
func (e *edge) seen(s Sight, now time.Time) {
	var one graphrank.Graph // which knows how types, sources and counts change
	if e.From != "" && e.alive(now) {
		one.Set(e.Edge)
		if s.Weak && !e.weak {
			s.Type = e.Type
		}
	} else {
		e.sights, e.weak = 0, s.Weak
	}
	e.Edge, e.last = one.Observe(s.From, s.To, s.Type), now
	if e.sights < math.MaxUint32 {
		e.sights++
	}
	if e.sights >= graphrank.ObservedAfter {
		e.Source = graphrank.Observed
	}
	e.weak = e.weak && s.Weak && e.sights < graphrank.ObservedAfter
}

// alive reports whether decay has left enough of an edge.
func (e *edge) alive(now time.Time) bool {
	if e.weak && now.Sub(e.last) > weakLife {
		return false
	}
	return e.Source == graphrank.Template || e.Count >= graphrank.MinCount
}

// unix is a time in whole seconds, 0 for what lies before 1970.
func unix(t time.Time) uint64 { return uint64(max(t.Unix(), 0)) }
