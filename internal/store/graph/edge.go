package graph

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
}

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

// edge is one as it is stored.
type edge struct {
	graphrank.Edge
	last time.Time // to the second
	// sights is how often it was seen, without decay: the third sight makes an
	// edge observed although its count is a little below three by then.
	sights uint32
}

func (e *edge) encode() []byte {
	b := append(make([]byte, 0, edgeSize), byte(e.Type), byte(e.Source))
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(e.Count))
	b = binary.LittleEndian.AppendUint64(b, unix(e.last))
	return binary.LittleEndian.AppendUint32(b, e.sights)
}

// decodeEdge reads an edge with its count as of now.
func (s *Store) decodeEdge(key, value []byte, now time.Time) (e edge, err error) {
	from, to, ok := bytes.Cut(key, []byte{0})
	if !ok || len(value) != edgeSize || value[0] > byte(graphrank.Dependency) || value[1] > byte(graphrank.Observed) {
		return e, fmt.Errorf("the stored edge %.80q is damaged", key)
	}
	e.Edge = graphrank.Edge{From: string(from), To: string(to), Type: graphrank.Type(value[0]), Source: graphrank.Source(value[1])}
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
func (e *edge) seen(s Sight, now time.Time) {
	var one graphrank.Graph // which knows how types, sources and counts change
	if alive(e.Edge) && e.From != "" {
		one.Set(e.Edge)
	} else {
		e.sights = 0
	}
	e.Edge, e.last = one.Observe(s.From, s.To, s.Type), now
	if e.sights < math.MaxUint32 {
		e.sights++
	}
	if e.sights >= graphrank.ObservedAfter {
		e.Source = graphrank.Observed
	}
}

// alive reports whether decay has left enough of an edge.
func alive(e graphrank.Edge) bool {
	return e.Source == graphrank.Template || e.Count >= graphrank.MinCount
}

// unix is a time in whole seconds, 0 for what lies before 1970.
func unix(t time.Time) uint64 { return uint64(max(t.Unix(), 0)) }
