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

// namespace is that of our point ids. It was drawn at random and never changes.
var namespace = uuid.MustParse("6f2a1c54-93f0-4a51-8d0e-5b6f5b7c3a19")

// pointID is the UUIDv5 of a name in our namespace.
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

// chunkPayload is what a chunk's point carries in both collections.
func chunkPayload(chunk, path string, l store.Labels) map[string]*pb.Value {
	p := map[string]*pb.Value{"chunk": pb.NewValueString(chunk)}
	if l.Found { // without front matter no label filter matches
		if len(l.Tags) > 0 {
			p["tags"] = stringList(store.FoldAll(l.Tags...))
		}
		if l.Priority != "" {
			p["priority"] = pb.NewValueString(store.Fold(l.Priority))
		}
		if l.Assignee != "" {
			p["assignee"] = pb.NewValueString(store.Fold(l.Assignee))
		}
	}
	p["under"] = underList(path)
	return p
}

func underList(path string) *pb.Value {
	var list []*pb.Value
	for _, n := range under(path) {
		list = append(list, pb.NewValueInt(n))
	}
	return pb.NewValueFromList(list...)
}

func stringList(all []string) *pb.Value {
	list := make([]*pb.Value, len(all))
	for i, s := range all {
		list[i] = pb.NewValueString(s)
	}
	return pb.NewValueFromList(list...)
}

// codeNumber is among the numbers of source code, as if it were a folder that no path
// can name.
var codeNumber = prefixNumber("\x00code")

// underRunes is how many runes of a path element the index distinguishes; a prefix
// that ends deeper in an element is checked on what is returned.
const underRunes = 8

// under returns the numbers by which a prefix of path finds it: one for each
// folder and for each of the first underRunes runes of each element. Qdrant
// has no index for the beginning of a keyword.
func under(path string) []int64 {
	var numbers []int64
	if store.KindOf(path) == store.Code {
		numbers = append(numbers, codeNumber)
	}
	for start := 0; start < len(path); {
		rest := path[start:]
		element := rest
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			element = rest[:i]
		}
		end := start
		for n := 0; n < underRunes && end < start+len(element); n++ {
			_, size := utf8.DecodeRuneInString(path[end:])
			end += size
			numbers = append(numbers, prefixNumber(path[:end]))
		}
		start += len(element)
		if start < len(path) {
			start++
			numbers = append(numbers, prefixNumber(path[:start]))
		}
	}
	return numbers
}

// underKey is the number under which all paths with that prefix are found, and
// perhaps others: whole is false when they have to be checked.
func underKey(prefix string) (number int64, whole bool) {
	last := prefix[strings.LastIndexByte(prefix, '/')+1:]
	end := len(prefix) - len(last)
	for range underRunes {
		_, size := utf8.DecodeRuneInString(prefix[end:])
		end += size
	}
	return prefixNumber(prefix[:end]), end == len(prefix)
}

// prefixNumber is the beginning of the SHA-256 of a prefix, so that file names
// cannot be chosen to collide.
func prefixNumber(prefix string) int64 {
	sum := sha256.Sum256([]byte(prefix))
	return int64(binary.LittleEndian.Uint64(sum[:]) & math.MaxInt64)
}

// condition is a store.Filter as Qdrant takes it, nil when all pass.
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
		number, _ := underKey(f.PathPrefix)
		must = append(must, pb.NewMatchInt("under", number))
	}
	var not []*pb.Condition
	switch f.Kind {
	case store.Code:
		must = append(must, pb.NewMatchInt("under", codeNumber))
	case store.Docs:
		not = append(not, pb.NewMatchInt("under", codeNumber))
	}
	if must == nil && not == nil {
		return nil
	}
	return &pb.Filter{Must: must, MustNot: not}
}

// below reports whether a chunk's path begins with prefix.
func below(chunk, prefix string) bool {
	if prefix == "" {
		return true
	}
	path, _, _, ok := store.SplitChunkID(chunk)
	return ok && strings.HasPrefix(path, prefix)
}
