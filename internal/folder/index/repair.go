package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"cairn/indexer"
	"cairn/internal/base/health"
	"cairn/internal/base/owner"
	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/store/flat"
	"cairn/internal/store/keyword"
	"cairn/internal/store/kv"
	"cairn/internal/text/query"
)

// damagedSuffix is the suffix of a damaged derived index. The keyword index and the
// vectors are derived from the documents. The owner renames one that cannot be opened and
// rebuilds it. The next damaged one replaces the renamed one.
const damagedSuffix = ".damaged"

// Damage is the known damage of an index, by the name of the damaged file or folder.
type Damage map[string]error

// damagedPart returns the part of an index that is damaged or of an earlier format,
// according to an error of opening or using it. It returns "" for other errors. All parts
// can be rebuilt: the documents from the files, the others from the documents. A different
// model is not damage, because the user may have named it by mistake.
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
		return DocumentsFile
	case errors.Is(err, keyword.ErrCorrupt), errors.Is(err, keyword.ErrFormat), diverged != nil && diverged.Kind == docs.Keyword:
		return keywordFolder
	case badVectors, otherVectors, diverged != nil:
		return vectorFolder
	}
	return ""
}

// outdated reports whether the error of opening a part says that it is not damaged, but of
// another version of cairn or made with other settings.
func outdated(err error) bool {
	_, format := errors.AsType[*docs.FormatError](err)
	_, chunks := errors.AsType[*docs.ChunksError](err)
	_, vectors := errors.AsType[*flat.FormatError](err)
	return format || chunks || vectors || errors.Is(err, keyword.ErrFormat)
}

// derived are the parts that are built from the documents.
var derived = []struct {
	name, what string
	kind       docs.Kind
}{{keywordFolder, "the keyword index", docs.Keyword}, {vectorFolder, "the vectors", docs.Vectors}}

// openDerived opens the derived index in folder name of dir. If it is damaged, a writer
// renames it and opens an empty one, and a reader gets the zero T. If s.known is nil, a
// damaged index is an error.
func openDerived[T indexer.Derived](s *Stores, dir, name string, kind docs.Kind, open func(path string) (T, error)) (x T, err error) {
	path := filepath.Join(dir, name)
	var none T
	damage := s.known[name]
	if damage == nil {
		x, err = open(path)
		if err == nil && s.known != nil {
			if damage = s.derivedDamage(kind, x); damage != nil {
				err = x.Close()
			}
		} else if s.known != nil && (damagedPart(err) == name || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EISDIR)) {
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
	if err == nil && errors.Is(damage, keyword.ErrFormat) {
		err = os.RemoveAll(path)
	} else if err == nil {
		err = os.Rename(path, path+damagedSuffix)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return none, fmt.Errorf("renaming a damaged index: %w", err)
	}
	return open(path)
}

// derivedDamage compares the position of a derived index and its number of chunks with those
// in the documents. They differ if files were removed, lost their last writes, are older or
// are damaged. While documents are pending, fewer chunks are no error unless there are none.
func (s *Stores) derivedDamage(kind docs.Kind, x indexer.Derived) error {
	var counts docs.Counts
	meta, err := s.Docs.Meta()
	if err == nil {
		counts, err = s.Docs.Counts()
	}
	if err != nil || counts.Chunks == 0 && kind == docs.Vectors { // see openCache
		return err
	}
	pending := counts.Pending(kind)
	n, err := x.Count()
	switch {
	case err != nil:
		return err
	case x.Position() < meta.Positions[kind]:
		return errors.New("it is older than the documents")
	case pending.Files == 0 && n != counts.Chunks:
		return fmt.Errorf("it has %d of %d chunks", n, counts.Chunks)
	case n == 0 && counts.Chunks > pending.Chunks:
		return errors.New("it is empty, the documents are not")
	}
	return nil
}

// lostDocuments returns why the documents of the index in dir cannot be used, nil if they
// can, or if there never was an index. damage is their known damage. A file that is empty or
// missing, as after a full disk or a power failure, makes the other files useless.
func lostDocuments(dir string, damage error) error {
	path := filepath.Join(dir, DocumentsFile)
	info, err := os.Stat(path)
	_, noKeywords := os.Stat(filepath.Join(dir, keywordFolder))
	switch {
	case errors.Is(err, fs.ErrNotExist) && noKeywords == nil:
		return fmt.Errorf("%s is missing", path)
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a directory", path)
	case err != nil || !info.Mode().IsRegular():
		return nil // opening it reports other errors
	case damage == nil && info.Size() == 0:
		return fmt.Errorf("%s is empty", path)
	}
	return damage
}

// lacksKeywords reports whether the keyword index was damaged and its rebuild is not
// complete.
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

// keywordsHint returns what the user can do about a missing keyword index.
func (s *Stores) keywordsHint() string {
	if s.writable {
		return "the keyword index was damaged and is being rebuilt from the documents; meanwhile answers are found by meaning alone"
	}
	return "the keyword index is damaged, so answers are found by meaning alone: call the tool index, or run `cairn index`, to rebuild it"
}

// repaired calls again if the operation failed because of damage that could be set aside.
// It also sets aside damage despite which the retriever could answer. Each part is set
// aside once, so that repaired calls again at most once for each part.
func (x *Index) repaired(err *error, again func()) {
	if damage := x.vectorDamage.Swap(nil); damage != nil {
		x.heal(*damage)
	}
	if *err != nil && x.heal(*err) {
		again()
	}
}

// heal sets a damaged part aside and, in the owner, rebuilds it in the background. It
// reports whether the caller should try again. It leaves damage to a run in progress,
// which finds it too.
func (x *Index) heal(err error) bool {
	part := damagedPart(err)
	if building, _ := x.building(); part == "" || building || !x.setAside(Damage{part: err}) {
		return false
	}
	switch {
	case x.options.Holder == nil || !x.options.Write:
	case part != DocumentsFile:
		x.background(x.repair, true)
	case x.options.Background:
		x.background(x.indexAll, true)
	}
	return true
}

// setAside closes the stores because parts of them are damaged. The next use opens them
// without these parts: the owner rebuilds them, a reader answers without them. It reports
// whether it has set a part aside.
func (x *Index) setAside(found Damage) bool {
	if x.options.Remote != nil {
		return false
	}
	defer x.exclude()()
	added := false
	for part, err := range found {
		if x.stores != nil && x.damage[part] == nil {
			added = true
			x.damage[part] = err
			x.options.Logger.Warn("a part of the index is damaged", "part", part, "error", err)
		}
	}
	if added {
		if err := x.closeStores(); err != nil {
			x.options.Logger.Warn("closing a damaged index", "error", err)
		}
	}
	return added
}

// recordingVectors is a VectorSearcher that records damage, which a search only logs.
type recordingVectors struct {
	store.VectorSearcher
	damage *atomic.Pointer[error]
}

func (v recordingVectors) Search(ctx context.Context, query []float32, k int, f store.Filter) ([]store.Hit, error) {
	hits, err := v.VectorSearcher.Search(ctx, query, k, f)
	v.note(err)
	return hits, err
}

func (v recordingVectors) Scores(ctx context.Context, query []float32, chunks []string) ([]float64, error) {
	scores, err := v.VectorSearcher.Scores(ctx, query, chunks)
	v.note(err)
	return scores, err
}

func (v recordingVectors) note(err error) {
	if err != nil && damagedPart(err) != "" {
		v.damage.Store(&err)
	}
}

// repair fills the derived indexes that were damaged, without looking at the files.
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

// checkHeld fails with owner.ErrEnded if this process must not write to s, because it no
// longer owns the folder or files of s were removed.
func (x *Index) checkHeld(s *Stores) error {
	if x.options.Held != nil && !x.options.Held() || s.removed() {
		return owner.ErrEnded
	}
	return nil
}

// noKeywords is a KeywordSearcher that finds nothing. It replaces a keyword index that
// cannot be opened.
type noKeywords struct{}

func (noKeywords) Search(context.Context, query.Query, int, store.Filter) ([]store.Hit, error) {
	return nil, nil
}

// Admits does not check exclusions. An answer without the keyword index is degraded.
func (noKeywords) Admits(_ context.Context, q query.Query, chunks []string) ([]bool, error) {
	admits := make([]bool, len(chunks))
	for i := range admits {
		admits[i] = len(q.Phrases) == 0
	}
	return admits, nil
}

// VerifyRequest is a request to check all files.
type VerifyRequest struct {
	// Repair rebuilds what is damaged.
	Repair bool `json:"repair,omitempty"`
}

// Verified is the result of a check, by file.
type Verified = health.Report

// Verify reads the whole index and compares all checksums.
func (x *Index) Verify(ctx context.Context, r VerifyRequest) (*Verified, error) {
	return health.Check(ctx, []health.Part{
		x.part(DocumentsFile, func(_ context.Context, s *Stores) (health.File, error) { return s.Docs.Verify() }),
		x.part(keywordFolder, func(ctx context.Context, s *Stores) (health.File, error) {
			return verifyDerived(ctx, s, docs.Keyword, s.text)
		}),
		x.part(vectorFolder, func(ctx context.Context, s *Stores) (health.File, error) {
			return verifyDerived(ctx, s, docs.Vectors, s.vectors)
		}),
	}, r.Repair)
}

// part returns a part of the index. check checks it in open stores.
func (x *Index) part(name string, check func(context.Context, *Stores) (health.File, error)) health.Part {
	return health.Part{Repair: x.restore, Check: func(ctx context.Context) (f health.File, err error) {
		s, err := x.use()
		if err != nil {
			return f, err
		}
		defer x.mu.RUnlock()
		damage := x.damage[name]
		if s != nil && s.own {
			f, err = check(ctx, s)
			f.Name = name
		}
		if damagedPart(err) != "" {
			damage, err = err, nil
		}
		if damage != nil {
			f.Name, f.Problems, f.Outdated = name, append(f.Problems, damage.Error()), outdated(damage)
		}
		return f, err
	}}
}

// restore sets a damaged part aside and rebuilds it.
func (x *Index) restore(ctx context.Context, f health.File) (did string, err error) {
	if building, _ := x.building(); building { // the stores cannot be replaced during a run
		if _, err := x.Index(ctx, IndexRequest{Join: true}, nil); err != nil && damagedPart(err) == "" {
			return "", err
		}
	}
	x.setAside(Damage{f.Name: errors.New(f.Problems[0])})
	if _, err := x.Index(ctx, IndexRequest{Join: true}, nil); err != nil {
		return "", fmt.Errorf("rebuilding what is damaged: %w", err)
	}
	return "rebuilt", nil
}

// verifyRegularly verifies and repairs the index at intervals until Close.
func (x *Index) verifyRegularly() {
	tick := time.NewTicker(cmp.Or(x.options.VerifyEvery, 24*time.Hour))
	defer tick.Stop()
	for {
		select {
		case <-x.life.Done():
			return
		case <-tick.C:
		}
		v, err := x.Verify(x.life, VerifyRequest{Repair: true})
		switch {
		case x.life.Err() != nil:
			return
		case err != nil:
			x.options.Logger.Error("verifying the index", "error", err)
		default:
			for _, f := range v.Files {
				if len(f.Problems) > 0 {
					x.options.Logger.Warn("a part of the index was damaged", "part", f.Name, "problems", f.Problems, "repaired", f.Repaired)
				}
			}
		}
	}
}

// verifyDerived checks a derived index. In a reader x is nil if it is damaged.
func verifyDerived[T any, X interface {
	*T
	indexer.Derived
	Verify(context.Context) (health.File, error)
}](ctx context.Context, s *Stores, kind docs.Kind, x X) (f health.File, err error) {
	if x == nil {
		return f, nil
	}
	if f, err = x.Verify(ctx); err != nil {
		return f, err
	}
	if lacks := s.derivedDamage(kind, x); lacks != nil {
		f.Problems = append(f.Problems, lacks.Error())
	}
	return f, nil
}
