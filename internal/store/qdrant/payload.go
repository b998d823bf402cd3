package qdrant

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	pb "github.com/qdrant/go-client/qdrant"

	"cairn/internal/store"
)

// namespace is the namespace of point ids, a random UUID. It never changes.
var namespace = uuid.MustParse("6f2a1c54-93f0-4a51-8d0e-5b6f5b7c3a19")

// pointID returns the UUIDv5 of a name in namespace.
func pointID(name string) *pb.PointId {
	return pb.NewIDUUID(uuid.NewSHA1(namespace, []byte(name)).String())
}

func pointIDs(names []string) []*pb.PointId {
	ids := make([]*pb.PointId, len(names))
	for i, name := range names {
		ids[i] = pointID(name)
	}
	return ids
}

// chunkPayload returns the payload of a chunk's point without its text.
func chunkPayload(chunk, path string, l store.Labels) map[string]*pb.Value {
	p := map[string]*pb.Value{"chunk": pb.NewValueString(chunk)}
	if l.Found { // otherwise no filter on labels matches
		if len(l.Tags) > 0 {
			p["tags"] = listOf(store.FoldAll(l.Tags...), pb.NewValueString)
		}
		if l.Priority != "" {
			p["priority"] = pb.NewValueString(store.Fold(l.Priority))
		}
		if l.Assignee != "" {
			p["assignee"] = pb.NewValueString(store.Fold(l.Assignee))
		}
	}
	numbers := under(path)
	if _, anchor, _, _ := store.SplitChunkID(chunk); anchor != "" && store.KindOf(path) == store.Code {
		numbers = append(numbers, symbolNumber(anchor))
	}
	p["under"] = listOf(numbers, pb.NewValueInt)
	return p
}

// listOf returns a list of values that value converts.
func listOf[T any](all []T, value func(T) *pb.Value) *pb.Value {
	list := make([]*pb.Value, len(all))
	for i, v := range all {
		list[i] = value(v)
	}
	return pb.NewValueFromList(list...)
}

// kindNumber marks the files of a kind, like a folder whose name no path can have.
func kindNumber(k store.Kind) int64 { return prefixNumber("\x00" + string(k)) }

// symbolNumber marks the chunks of a symbol. Further symbols with the same name in a file
// have anchors that end with a hyphen and a number.
func symbolNumber(anchor string) int64 {
	name := anchor
	if i := strings.LastIndexByte(anchor, '-'); i > 0 && strings.Trim(anchor[i+1:], "0123456789") == "" {
		name = anchor[:i]
	}
	return prefixNumber("\x00#" + name)
}

// underRunes is how many runes of a path element are indexed. If a prefix ends deeper in
// an element, the search checks the paths of its results.
const underRunes = 8

// under returns the prefixNumber of each indexed prefix of a path: each folder, and each of
// the first underRunes prefixes of each element. Qdrant has no index for prefixes of a
// keyword.
func under(path string) []int64 {
	var numbers []int64
	if kind := store.KindOf(path); kind != store.Docs {
		numbers = append(numbers, kindNumber(kind))
	}
	for end, runes := 0, 0; end < len(path); {
		r, size := utf8.DecodeRuneInString(path[end:])
		end += size
		if runes++; r == '/' || runes <= underRunes {
			numbers = append(numbers, prefixNumber(path[:end]))
		}
		if r == '/' {
			runes = 0
		}
	}
	return numbers
}

// underKey returns the number of the longest indexed prefix of prefix. It may be shorter, so
// that the caller must check the paths of results.
func underKey(prefix string) int64 {
	end := strings.LastIndexByte(prefix, '/') + 1
	for range underRunes {
		_, size := utf8.DecodeRuneInString(prefix[end:])
		end += size
	}
	return prefixNumber(prefix[:end])
}

// prefixNumber returns the first 63 bits of the SHA-256 of a prefix. File names cannot be
// chosen to collide.
func prefixNumber(prefix string) int64 {
	sum := sha256.Sum256([]byte(prefix))
	return int64(binary.LittleEndian.Uint64(sum[:]) & math.MaxInt64)
}

// condition converts a store.Filter to a Qdrant filter; nil passes everything.
func condition(f store.Filter) *pb.Filter {
	var must []*pb.Condition
	if len(f.Tags) > 0 {
		must = append(must, pb.NewMatchKeywords("tags", store.FoldAll(f.Tags...)...))
	}
	if f.Priority != "" {
		must = append(must, pb.NewMatchKeyword("priority", store.Fold(f.Priority)))
	}
	if f.Assignee != "" {
		must = append(must, pb.NewMatchKeyword("assignee", store.Fold(f.Assignee)))
	}
	if f.PathPrefix != "" {
		must = append(must, pb.NewMatchInt("under", underKey(f.PathPrefix)))
	}
	var not []*pb.Condition
	switch f.Kind {
	case store.Code, store.Cards, store.Notes:
		must = append(must, pb.NewMatchInt("under", kindNumber(f.Kind)))
	case store.Docs:
		not = append(not, pb.NewMatchInt("under", kindNumber(store.Code)), pb.NewMatchInt("under", kindNumber(store.Cards)), pb.NewMatchInt("under", kindNumber(store.Notes)))
	}
	if must == nil && not == nil {
		return nil
	}
	return &pb.Filter{Must: must, MustNot: not}
}

// below reports whether f lets the path of a chunk pass.
func below(chunk string, f store.Filter) bool {
	if f.PathPrefix == "" && f.Paths == nil {
		return true
	}
	path, _, _, ok := store.SplitChunkID(chunk)
	return ok && strings.HasPrefix(path, f.PathPrefix) && f.Lists(path)
}
