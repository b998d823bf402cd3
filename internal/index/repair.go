package index

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"cairn/indexer"
	"cairn/internal/kv"
	"cairn/internal/owner"
	"cairn/internal/query"
	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/store/flat"
	"cairn/internal/store/keyword"
	"cairn/models"
)

// The keyword index and the vectors are derived from the documents, which hold the
// text. The owner renames one that cannot be opened to its name with this suffix and
// builds it again. The next damaged one replaces it.
const damagedSuffix = ".damaged"

// Damage is what is known to be wrong with parts of an index, by the name of the file or
// folder.
type Damage map[string]error

// damagedPart returns the part of an index that err, of opening or using it, shows to be
// damaged or made by former rules, "" for another error. All parts can be rebuilt: the
// documents from the files, the others from the documents. Another model is no reason:
// the caller may have named it by mistake.
func damagedPart(err error) string {
	_, badFile := errors.AsType[*kv.CorruptError](err)
	_, badDocument := errors.AsType[*docs.CorruptError](err)
	format, _ := errors.AsType[*docs.FormatError](err)
	_, otherChunks := errors.AsType[*docs.ChunksError](err)
	_, badVectors := errors.AsType[*flat.CorruptError](err)
	_, otherVectors := errors.AsType[*flat.FormatError](err)
	diverged, _ := errors.AsType[*indexer.DivergedError](err)
	switch {
	case badFile, badDocument, otherChunks, format != nil && format.Have < format.Want:
		return documentsFile
	case errors.Is(err, keyword.ErrCorrupt), errors.Is(err, keyword.ErrFormat), diverged != nil && diverged.Kind == docs.Keyword:
		return keywordFolder
	case badVectors, otherVectors, diverged != nil:
		return vectorFolder
	}
	return ""
}

// derived are the parts that are built from the documents.
var derived = []struct {
	name, what string
	kind       docs.Kind
}{{keywordFolder, "the keyword index", docs.Keyword}, {vectorFolder, "the vectors", docs.Vectors}}

// openDerived opens the derived index in folder name of dir. With write, it renames a
// damaged one and opens an empty one in its place; a reader gets the zero T. Without
// known damage in s, even none, a damaged index is an error.
func openDerived[T interface {
	Count() (int, error)
	Close() error
}](s *Stores, dir, name string, kind docs.Kind, open func(path string) (T, error)) (x T, err error) {
	path := filepath.Join(dir, name)
	var none T
	damage := s.known[name]
	if damage == nil {
		x, err = open(path)
		if err == nil && s.known != nil {
			if damage = s.countDamage(kind, x.Count); damage != nil {
				err = x.Close()
			}
		} else if s.known != nil && (damagedPart(err) == name || errors.Is(err, fs.ErrNotExist)) {
			damage, err = err, nil
		}
		if err != nil || damage == nil {
			return x, err
		}
	}
	s.damage[name] = damage
	if !s.writable {
		return none, nil
	}
	err = os.RemoveAll(path + damagedSuffix)
	if err == nil {
		err = os.Rename(path, path+damagedSuffix)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return none, fmt.Errorf("renaming a damaged index: %w", err)
	}
	return open(path)
}

// countDamage compares the chunks that a derived index holds with those of the
// documents: files were removed, lost what was written last, or are damaged. While
// documents are pending, only an empty index is known to be wrong.
func (s *Stores) countDamage(kind docs.Kind, count func() (int, error)) error {
	counts, err := s.Docs.Counts()
	if err != nil || counts.Chunks == 0 && kind == docs.Vectors { // see openCache
		return err
	}
	pending := counts.Pending(kind)
	n, err := count()
	switch {
	case err != nil:
		return err
	case pending.Files == 0 && n != counts.Chunks:
		return fmt.Errorf("it holds %d pieces of text of %d", n, counts.Chunks)
	case n == 0 && counts.Chunks > pending.Chunks:
		return errors.New("it is empty, the documents are not")
	}
	return nil
}

// removeEmpty removes an index whose file of documents is empty, as a full disk or a
// power failure may leave it, or damaged: the other files belong to no index. It returns
// why it did so.
func removeEmpty(dir string, d models.Description, damage error) (why, err error) {
	path := filepath.Join(dir, documentsFile)
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 0 && damage == nil {
		return nil, nil // opening it reports other errors
	}
	if damage == nil {
		damage = fmt.Errorf("%s is empty", path)
	}
	return damage, removeIndex(dir, d)
}

// markDamaged marks the documents for the indexes that were damaged.
func (s *Stores) markDamaged() error {
	if !s.writable {
		return nil
	}
	for _, part := range derived {
		if s.damage[part.name] == nil {
			continue
		}
		if err := s.Docs.Renew(context.Background(), part.kind); err != nil {
			return fmt.Errorf("marking all documents for %s: %w", part.what, err)
		}
	}
	return nil
}

// lacksKeywords reports whether the keyword index was unusable and is not
// complete again.
func (s *Stores) lacksKeywords() bool {
	if s.damage[keywordFolder] == nil || s.repaired.Load() {
		return false
	}
	counts, err := s.Docs.Counts()
	if s.Keyword != nil && err == nil && counts.Keyword.Files == 0 {
		s.repaired.Store(true)
		return false
	}
	return true
}

// keywordsHint says what to do about a keyword index that is missing.
func (s *Stores) keywordsHint() string {
	if s.writable {
		return "the keyword index was damaged and is being rebuilt from the documents; meanwhile answers are found by meaning alone"
	}
	return "the keyword index is damaged, so answers are found by meaning alone: call the tool index, or run `cairn index`, to rebuild it"
}

// repaired calls again when the operation that ends with err met damage that could be
// set aside. Damage that the retriever answered without is set aside for the next one.
// Each part is set aside once, so again is called once a part at most.
func (x *Index) repaired(err *error, again func()) {
	if met := x.met.Swap(nil); met != nil {
		x.heal(*met)
	}
	if *err != nil && x.heal(*err) {
		again()
	}
}

// heal sets a damaged part aside and, in the owner, rebuilds it in the background. It
// reports whether the caller should try again. A run in progress meets the damage itself.
func (x *Index) heal(err error) bool {
	part := damagedPart(err)
	if building, _ := x.building(); part == "" || building || !x.setAside(Damage{part: err}) {
		return false
	}
	switch {
	case x.o.Holder == nil || !x.o.Write:
	case part != documentsFile:
		x.background(x.repair, true)
	case x.o.Background:
		x.background(x.indexAll, true)
	}
	return true
}

// setAside closes the stores because parts of them are damaged. The next use opens them
// without these: the owner rebuilds them, a reader answers without them. It reports
// whether a part was set aside.
func (x *Index) setAside(found Damage) bool {
	if x.o.Remote != nil {
		return false
	}
	x.stopUpdates()
	x.swap.Lock()
	defer x.swap.Unlock()
	x.updates, x.stopUpdates = context.WithCancel(context.Background())
	x.mu.Lock()
	defer x.mu.Unlock()
	added := false
	for part, err := range found {
		if x.stores != nil && x.damage[part] == nil {
			added = true
			x.damage[part] = err
			x.o.Logger.Warn("a part of the index is damaged", "part", part, "error", err)
		}
	}
	if added {
		if err := x.closeStores(); err != nil {
			x.o.Logger.Warn("closing a damaged index", "error", err)
		}
	}
	return added
}

// noticing are vectors that report damage, which a search otherwise only logs.
type noticing struct {
	store.VectorSearcher
	met *atomic.Pointer[error]
}

func (v noticing) Search(ctx context.Context, query []float32, k int, f store.Filter) ([]store.Hit, error) {
	hits, err := v.VectorSearcher.Search(ctx, query, k, f)
	v.note(err)
	return hits, err
}

func (v noticing) Scores(ctx context.Context, query []float32, chunks []string) ([]float64, error) {
	scores, err := v.VectorSearcher.Scores(ctx, query, chunks)
	v.note(err)
	return scores, err
}

func (v noticing) note(err error) {
	if err != nil && damagedPart(err) != "" {
		v.met.Store(&err)
	}
}

// repair fills the damaged indexes, in a process that does not index by itself.
func (x *Index) repair(ctx context.Context, progress func(Progress)) (*IndexReport, error) {
	ix, _, err := x.writer()
	if err != nil {
		return nil, err
	}
	if err := ix.Keywords(ctx, nil); err != nil {
		return nil, err
	}
	if _, err := ix.Embed(ctx); err != nil {
		return nil, err
	}
	return &IndexReport{}, nil
}

// checkHeld fails with owner.ErrEnded when this process must not write to s, because
// it does not own the folder any more or files of s were removed.
func (x *Index) checkHeld(s *Stores) error {
	if x.o.Held != nil && !x.o.Held() || s.removed() {
		return owner.ErrEnded
	}
	return nil
}

// noKeywords is a keyword index that finds nothing, in the place of one that cannot be
// opened.
type noKeywords struct{}

func (noKeywords) Search(context.Context, query.Query, int, store.Filter) ([]store.Hit, error) {
	return nil, nil
}

// Admits cannot check exclusions; without them an answer is degraded anyway.
func (noKeywords) Admits(_ context.Context, q query.Query, chunks []string) ([]bool, error) {
	admits := make([]bool, len(chunks))
	for i := range admits {
		admits[i] = len(q.Phrases) == 0
	}
	return admits, nil
}
