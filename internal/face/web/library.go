package web

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"cairn/internal/base/owner"
	"cairn/internal/folder/index"
	"cairn/internal/store"
	"cairn/internal/task/cards"
	"cairn/internal/text/markdown"
)

// library is a list of the documents of a folder. It is immutable but for links.
type library struct {
	Documents []index.DocumentEntry // in the order of their paths
	// Cut is set if the folder has more than maxListed documents.
	Cut bool

	linking *sync.Mutex
	links   map[string][]string // see Handler.links
	places  *markdown.Places
}

// count is a folder or a tag with its number of documents.
type count struct {
	Name      string
	Documents int
}

const (
	// maxListed bounds the documents that the pages list.
	maxListed = 20_000
	// listedFor is how long a list is used without a check of the index.
	listedFor = 5 * time.Second
	// keptFor is how long a list is used while the state of the index is the same. A second
	// change within one second may not change the state.
	keptFor = time.Minute
)

// shelf keeps the last library.
type shelf struct {
	mu      sync.Mutex
	last    *library
	state   string    // of the index when it was read
	checked time.Time // when the index last had this state
	read    time.Time
}

// library returns the documents as they were at most listedFor ago. It lists them again
// only if the index has changed, because a list of 10,000 documents takes 0.1 s, and longer
// during indexing.
func (s *shelf) library(ctx context.Context, folder *owner.Folder) (*library, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil && time.Since(s.checked) < listedFor {
		return s.last, nil
	}
	status, err := index.StatusOp.Call(ctx, folder, index.StatusRequest{}, nil)
	if err != nil {
		return nil, err
	}
	state := fmt.Sprint(status.Files, status.Sections, status.BuiltAt)
	if s.last != nil && state == s.state && time.Since(s.read) < keptFor {
		s.checked = time.Now()
		return s.last, nil
	}
	l := &library{linking: new(sync.Mutex)}
	for request := (index.DocumentsRequest{Limit: index.MaxDocuments, Tags: true}); ; {
		part, err := index.DocumentsOp.Call(ctx, folder, request, nil)
		if err != nil {
			return nil, err
		}
		l.Documents = append(l.Documents, part.Documents...)
		if l.Cut = part.More && len(l.Documents) >= maxListed; l.Cut || !part.More || len(part.Documents) == 0 {
			break
		}
		request.After = part.Documents[len(part.Documents)-1].Path
	}
	l.places = markdown.NewPlaces(func(yield func(string) bool) {
		for _, d := range l.Documents {
			yield(d.Path)
		}
	})
	s.last, s.state, s.checked, s.read = l, state, time.Now(), time.Now()
	return l, nil
}

// find returns the index of a document in Documents.
func (l *library) find(file string) (int, bool) {
	return slices.BinarySearchFunc(l.Documents, file, func(d index.DocumentEntry, file string) int { return strings.Compare(d.Path, file) })
}

// of returns the documents of a kind, or all for "".
func (l *library) of(kind store.Kind) *library {
	if kind == "" {
		return l
	}
	some := *l
	some.Documents = slices.DeleteFunc(slices.Clone(l.Documents), func(d index.DocumentEntry) bool { return store.KindOf(d.Path) != kind })
	return &some
}

// only returns the documents with the given paths.
func (l *library) only(paths []string) *library {
	some := *l
	some.Documents = nil
	for _, path := range slices.Compact(slices.Sorted(slices.Values(paths))) {
		if i, ok := l.find(path); ok {
			some.Documents = append(some.Documents, l.Documents[i])
		}
	}
	return &some
}

// kinds returns the number of files of each kind, or none if all are of one kind.
func (l *library) kinds() map[store.Kind]int {
	kinds := map[store.Kind]int{}
	for _, d := range l.Documents {
		kinds[store.KindOf(d.Path)]++
	}
	if len(kinds) == 1 {
		return nil
	}
	return kinds
}

// below returns the documents whose paths begin with prefix.
func (l *library) below(prefix string) []index.DocumentEntry {
	from, _ := l.find(prefix)
	end := from
	for end < len(l.Documents) && strings.HasPrefix(l.Documents[end].Path, prefix) {
		end++
	}
	return l.Documents[from:end]
}

// children returns the folders and the documents directly in folder, which is "" or ends
// with a slash.
func (l *library) children(folder string) (folders []count, documents []index.DocumentEntry) {
	for _, d := range l.below(folder) {
		name, _, nested := strings.Cut(strings.TrimPrefix(d.Path, folder), "/")
		if !nested {
			documents = append(documents, d)
			continue
		}
		name = folder + name + "/"
		if n := len(folders); n == 0 || folders[n-1].Name != name {
			folders = append(folders, count{Name: name})
		}
		folders[len(folders)-1].Documents++
	}
	return folders, documents
}

// recent returns the n documents that changed last, the latest first, without cards.
func (l *library) recent(n int) []index.DocumentEntry {
	list := slices.DeleteFunc(slices.Clone(l.Documents), func(d index.DocumentEntry) bool { return isCard(d.Path) })
	slices.SortStableFunc(list, func(a, b index.DocumentEntry) int { return b.Modified.Compare(a.Modified) })
	return list[:min(n, len(list))]
}

func isCard(file string) bool {
	return strings.HasPrefix(file, cards.Folder+"/") || strings.HasPrefix(file, cards.CueDeckFolder+"/")
}

// tags returns the tags of the documents with prefix, the most frequent first.
func (l *library) tags(prefix string) []count {
	n := map[string]int{}
	for _, d := range l.below(prefix) {
		for _, tag := range d.Tags {
			n[tag]++
		}
	}
	counts := make([]count, 0, len(n))
	for _, tag := range slices.Sorted(maps.Keys(n)) {
		counts = append(counts, count{tag, n[tag]})
	}
	slices.SortStableFunc(counts, func(a, b count) int { return b.Documents - a.Documents })
	return counts
}

// largest returns the n counts with the most documents, in the order of counts.
func largest(counts []count, n int) []count {
	if len(counts) <= n {
		return counts
	}
	sorted := slices.SortedStableFunc(slices.Values(counts), func(a, b count) int { return b.Documents - a.Documents })
	least := sorted[n-1].Documents
	kept := slices.DeleteFunc(slices.Clone(counts), func(c count) bool { return c.Documents < least })
	return kept[:n]
}
