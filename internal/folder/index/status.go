package index

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"

	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/text/markdown"
	"cairn/internal/text/query"
	"cairn/retriever"
)

// Status returns the state of the index.
func (x *Index) Status(_ context.Context, r StatusRequest) (*Status, error) {
	var s *Status
	stores, err := x.use()
	if err == nil {
		s, err = x.storesStatus(stores)
		x.mu.RUnlock()
	}
	if rebuild, ok := errors.AsType[*RebuildError](err); ok {
		s, err = x.status(retriever.IndexState{State: "unusable"}), nil
		s.Problem = rebuild.Error()
	}
	if err != nil {
		return nil, err
	}
	if problem := x.documentsProblem(); problem != "" {
		s.Degraded, s.Problem = []string{DocumentsLacking}, problem
	}
	if silent := x.options.Silent; silent != nil {
		s.Owner, s.Degraded, s.Problem = &silent.Holder, append(s.Degraded, OwnerLacking), silent.Error()
	}
	if r.Selection.Root != "" {
		s.Workspace = r.Selection
	}
	if x.options.Recovered != nil {
		for _, f := range x.options.Recovered() {
			s.Warnings = append(s.Warnings, f.Problems[0]+"; "+f.Repaired)
		}
	}
	x.mu.RLock()
	if x.options.Holder != nil && (x.options.Write || x.stores != nil && x.stores.writable) {
		s.Owner = x.options.Holder
	}
	x.mu.RUnlock()
	if x.notes.mu.TryLock() { // no check is running
		s.SetNotes(newNotes(x.notes.of))
		x.notes.mu.Unlock()
	}
	x.runs.Lock()
	defer x.runs.Unlock()
	if x.watcher != nil {
		x.watcher.describe(s)
	}
	if x.current != nil && x.current.Running() {
		s.Progress = new(x.current.Progress())
	} else if x.problem != nil {
		s.Problem = x.problem.Error()
	}
	return s, nil
}

func (x *Index) storesStatus(stores *Stores) (*Status, error) {
	if stores == nil {
		return x.status(retriever.IndexState{State: "missing"}), nil
	}
	var counts docs.Counts
	meta, err := stores.Docs.Meta()
	if err == nil {
		counts, err = stores.Docs.Counts()
	}
	if err != nil && !stores.own { // the server is unavailable
		s := x.status(retriever.IndexState{State: "unusable"})
		s.Problem = err.Error()
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	building, unread := x.building()
	s := x.status(retriever.NewIndexState(meta, counts, building, unread))
	s.Tasks = counts.Tasks
	if k := (Kernels{meta.Model.Kernel, x.options.Description.Kernel}); k.Vectors != "" && k.Process != "" && k.Vectors != k.Process {
		s.Kernels = &k
	}
	if stores.lacksKeywords() {
		s.Degraded, s.Problem = []string{KeywordsLacking}, stores.keywordsHint()
	}
	if !stores.own {
		return s, nil
	}
	counted, err := x.counted.get(stores.Docs, count)
	if err != nil {
		return nil, err
	}
	s.Kinds = maps.Clone(counted.kinds)
	if strings.HasPrefix(s.Model, englishModel+"@") && counted.notEnglish > 50 {
		s.NotEnglish = counted.notEnglish
	}
	skipped, err := stores.Docs.Skipped()
	for _, skip := range skipped {
		s.Skipped[skip.Reason]++
	}
	return s, err
}

// Skipped returns the files that Status.Skipped counts, sorted by reason and path. Stores
// of a server do not record them.
func (x *Index) Skipped(context.Context) ([]SkippedFile, error) {
	stores, err := x.use()
	if err != nil {
		return nil, err
	}
	defer x.mu.RUnlock()
	files := []SkippedFile{}
	if stores == nil {
		return files, nil
	}
	skipped, err := stores.Docs.Skipped()
	for _, f := range skipped {
		files = append(files, SkippedFile{f.Path, f.Reason})
	}
	slices.SortStableFunc(files, func(a, b SkippedFile) int { return strings.Compare(a.Reason, b.Reason) })
	return files, err
}

// ofDocuments caches a value computed from the documents.
type ofDocuments[T any] struct {
	mu      sync.Mutex
	docs    *docs.Store
	version int // of docs
	last    T
}

// get returns the value of compute for d. It calls compute only if the documents have
// changed since the last call.
func (c *ofDocuments[T]) get(d *docs.Store, compute func(*docs.Reader) (T, error)) (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := d.View(func(r *docs.Reader) (err error) {
		if c.docs == d && c.version == r.Version() {
			return nil
		}
		c.docs = nil
		if c.last, err = compute(r); err == nil {
			c.docs, c.version = d, r.Version()
		}
		return err
	})
	return c.last, err
}

// of is get for the documents of x, the zero T if it has none of its own.
func (c *ofDocuments[T]) of(x *Index, compute func(*docs.Reader) (T, error)) (none T, err error) {
	s, err := x.use()
	if err != nil {
		return none, err
	}
	defer x.mu.RUnlock()
	if s == nil || !s.own {
		return none, nil
	}
	return c.get(s.Docs, compute)
}

// indexed returns the paths of the indexed files, which the caller must not change.
func (x *Index) indexed() ([]string, error) {
	return x.paths.of(x, func(r *docs.Reader) (paths []string, err error) {
		err = r.Files("", func(f docs.File) bool { paths = append(paths, f.Path); return true })
		return paths, err
	})
}

type counted struct {
	kinds      map[string]int // number of documents by format; nil if all have the same
	notEnglish int            // see notEnglish
}

// count computes the part of the status that reads all documents.
func count(r *docs.Reader) (counted, error) {
	kinds, prose := map[string]int{}, []string{}
	err := r.Files("", func(f docs.File) bool {
		kinds[markdown.FormatOf(f.Path).Kind]++
		if store.KindOf(f.Path) == store.Docs {
			prose = append(prose, f.Path)
		}
		return true
	})
	if err != nil {
		return counted{}, err
	}
	if len(kinds) < 2 {
		kinds = nil
	}
	return counted{kinds, notEnglish(r, prose)}, nil
}

// status returns a Status with the fields that do not depend on the stores.
func (x *Index) status(s retriever.IndexState) *Status {
	st := &Status{IndexState: s, Model: x.options.Description.ID, Workspace: x.options.Selection, Skipped: map[string]int{}}
	if x.options.Store != nil {
		st.Store = x.options.Store.String()
	}
	for _, warning := range x.options.Config.Warnings {
		st.Warnings = append(st.Warnings, warning.String())
	}
	return st
}

// englishModel is the name of the embedding model that was trained on English alone.
const englishModel = "all-MiniLM-L6-v2"

// In English prose every third word is a stop word, in references full of names every
// tenth. A text of fewer than minWords words is too short to judge.
const (
	minStopShare = 0.04
	minWords     = 50
	maxSample    = 4 << 10 // bytes read of a document
	samples      = 64      // documents read of a folder
)

// notEnglish estimates the percentage of the documents' bytes that are not English, from
// a sample of the documents that is evenly spaced by path.
func notEnglish(r *docs.Reader, paths []string) int {
	all, other := 0, 0
	for i := range min(samples, len(paths)) {
		path := paths[i*len(paths)/min(samples, len(paths))]
		src := r.Text(path)
		all += len(src)
		if !isEnglish(path, src[:min(len(src), maxSample)]) {
			other += len(src)
		}
	}
	return 100 * other / max(all, 1)
}

// isEnglish reports whether the text of a file may be English.
func isEnglish(path string, src []byte) bool {
	words, stops, foreign, letters := 0, 0, 0, 0
	for word := range strings.FieldsFuncSeq(markdown.Plain(path, "", src), func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' }) {
		words++
		if query.IsStopWord(strings.ToLower(word)) {
			stops++
		}
		for _, r := range word {
			letters++
			if !unicode.Is(unicode.Latin, r) && r != '\'' {
				foreign++
			}
		}
	}
	return foreign <= letters/2 && (words < minWords || float64(stops) >= minStopShare*float64(words))
}

// Language returns a warning if most of the text is not English and the model supports
// English only, and what the user can do. Both are "" if there is no warning.
func (s *Status) Language() (message, fix string) {
	if s.NotEnglish == 0 {
		return "", ""
	}
	return fmt.Sprintf("%d %% of the text is not English, and %s supports no other language: search by meaning finds little, search by words works", s.NotEnglish, englishModel),
		"install a multilingual encoder with `cairn model add`, or search with `--mode keyword`"
}
