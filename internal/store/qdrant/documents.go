package qdrant

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	pb "github.com/qdrant/go-client/qdrant"

	"cairn/internal/store"
	"cairn/internal/store/docs"
)

// Documents stores documents with their texts. A document and its text are one point, so
// that a reader always sees both from the same version. A text of more than partBytes has
// further points, whose names include its hash.
//
//	kind      "document"
//	path, hash, size, mtime, sections, chunks
//	complete  whether all chunks have vectors
//	under     as for chunks
//	document  JSON of store.Document
//	revision  random, another for each stored version
//	text      the beginning of the text
//	parts     number of further points
//
//	kind      "revision"
//	revision  that of the document, for readers: the engine reads whole payloads
//
//	kind      "part"
//	text
//
// The point of kind "dictionary" is a text, too: see terms. The point of kind "weights"
// holds the average length used for the weights of chunks: see Settle.
type Documents struct {
	collection
	kept *keptDocuments
}

// documentFields are the indexed fields of the points of documents.
var documentFields = map[string]pb.FieldType{"kind": pb.FieldType_FieldTypeKeyword, "under": pb.FieldType_FieldTypeInteger}

// DocumentHead identifies the stored version of a document.
type DocumentHead struct {
	docs.File
	// Complete reports whether all chunks had vectors when the document was stored.
	Complete bool
}

// Put adds or replaces a document with its text, which must be UTF-8. complete reports
// whether the store has all its vectors.
func (d *Documents) Put(ctx context.Context, doc *store.Document, text []byte, complete bool) (err error) {
	defer wrap(&err, "storing %s in %s", doc.Path, d.name)
	if err := d.Open(ctx); err != nil {
		return err
	}
	if !utf8.Valid(text) {
		return fmt.Errorf("its text is not UTF-8")
	}
	encoded, err := json.Marshal(doc)
	if err != nil {
		return err // unreachable: documents always marshal
	}
	return d.putText(ctx, "document", doc.Path, doc.Hash, text, map[string]*pb.Value{
		"path": pb.NewValueString(doc.Path), "size": pb.NewValueInt(doc.Size), "mtime": pb.NewValueInt(doc.ModTime),
		"sections": pb.NewValueInt(int64(len(doc.Sections))), "chunks": pb.NewValueInt(int64(len(doc.ChunkIDs()))), "under": listOf(under(doc.Path), pb.NewValueInt),
		"document": pb.NewValueString(string(encoded)), "complete": pb.NewValueBool(complete),
		"revision": pb.NewValueString(rand.Text()),
	})
}

// putText stores a text with further fields of its point. The names of the points for
// further parts include path and hash. putText first adds the new ones and finally removes
// the old ones.
func (d *Documents) putText(ctx context.Context, kind, path, hash string, text []byte, further map[string]*pb.Value) error {
	before, err := d.fields(ctx, kind+":"+path, "hash", "parts")
	if err != nil {
		return err
	}
	pieces := cut(text)
	for n, piece := range pieces[1:] {
		part := bare(textPart(path, hash, n), map[string]*pb.Value{"kind": pb.NewValueString("part"), "text": pb.NewValueString(piece)})
		if err := d.update(ctx, []*pb.PointStruct{part}); err != nil {
			return err
		}
	}
	payload := map[string]*pb.Value{
		"kind": pb.NewValueString(kind), "hash": pb.NewValueString(hash), "text": pb.NewValueString(pieces[0]), "parts": pb.NewValueInt(int64(len(pieces) - 1)),
	}
	maps.Copy(payload, further)
	points := []*pb.PointStruct{bare(kind+":"+path, payload)}
	if r := payload["revision"]; r != nil {
		points = append(points, bare("revision:"+path, map[string]*pb.Value{"kind": pb.NewValueString("revision"), "revision": r}))
	}
	if err := d.update(ctx, points); err != nil {
		return err
	}
	if before["hash"].GetStringValue() != hash {
		return d.update(ctx, nil, textParts(path, before)...)
	}
	return nil
}

// partBytes is the most bytes of a text in one point.
const partBytes = 1 << 20

// maxParts is the most parts of a text to read.
const maxParts = 1024

// cut divides a text into one or more pieces of at most partBytes.
func cut(text []byte) []string {
	var pieces []string
	for len(text) > partBytes {
		end := partBytes
		for !utf8.RuneStart(text[end]) {
			end--
		}
		pieces = append(pieces, string(text[:end]))
		text = text[end:]
	}
	return append(pieces, string(text))
}

func textPart(path, hash string, n int) string { return fmt.Sprintf("text:%s:%s:%d", path, hash, n) }

// textParts returns the names of the further points of a text, from its fields hash and
// parts.
func textParts(path string, p map[string]*pb.Value) []string {
	var names []string
	for n := range max(0, min(p["parts"].GetIntegerValue(), maxParts)) {
		names = append(names, textPart(path, p["hash"].GetStringValue(), int(n)))
	}
	return names
}

// Delete removes documents. Unknown paths are ignored.
func (d *Documents) Delete(ctx context.Context, paths []string) error {
	if err := d.Open(ctx); err != nil {
		return fmt.Errorf("removing documents from %s: %w", d.name, err)
	}
	for _, path := range paths {
		before, err := d.fields(ctx, "document:"+path, "hash", "parts")
		if err == nil {
			err = d.update(ctx, nil, append(textParts(path, before), "revision:"+path, "document:"+path)...)
		}
		if err != nil {
			return fmt.Errorf("removing %s from %s: %w", path, d.name, err)
		}
	}
	return nil
}

// Head returns the head of a document; ok is false if there is no such document.
func (d *Documents) Head(ctx context.Context, path string) (head DocumentHead, ok bool, err error) {
	defer wrap(&err, "looking up %s in %s", path, d.name)
	if err := d.Open(ctx); err != nil {
		return head, false, err
	}
	payload, err := d.fields(ctx, "document:"+path, headFields...)
	return headOf(payload), payload != nil, err
}

var headFields = []string{"path", "hash", "size", "mtime", "sections", "chunks", "complete"}

func headOf(p map[string]*pb.Value) DocumentHead {
	h := DocumentHead{docs.File{
		Path: p["path"].GetStringValue(), Size: p["size"].GetIntegerValue(), ModTime: p["mtime"].GetIntegerValue(),
		Sections: int(p["sections"].GetIntegerValue()), Chunks: int(p["chunks"].GetIntegerValue()),
	}, p["complete"].GetBoolValue()}
	hash, _ := hex.DecodeString(p["hash"].GetStringValue())
	copy(h.Hash[:], hash) // a damaged hash matches no file, so the document is sent again
	return h
}

// loadPoints is how many documents one call reads, since each may have partBytes of text.
const loadPoints = 32

// Load returns the existing documents among paths, by path. It makes one call for the
// revisions of the documents that it has kept from earlier calls, one for every loadPoints
// other documents, and one for each further part of a text.
func (d *Documents) Load(ctx context.Context, paths ...string) (map[string]docs.Loaded, error) {
	all := make(map[string]docs.Loaded, len(paths))
	err := d.Open(ctx)
	if err == nil {
		paths, err = d.unchanged(ctx, paths, all)
	}
	for tries := 3; err == nil && len(paths) > 0; tries-- {
		var changed []string // changed during the call
		for some := range slices.Chunk(paths, loadPoints) {
			if err = d.load(ctx, some, all, &changed); err != nil {
				break
			}
		}
		if paths = changed; err == nil && tries == 0 && len(paths) > 0 {
			err = fmt.Errorf("a part of the text of %s is missing", paths[0])
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading %d documents from %s: %w", len(paths), d.name, err)
	}
	return all, nil
}

// unchanged adds the kept documents that have not changed to all, and returns the other
// paths.
func (d *Documents) unchanged(ctx context.Context, paths []string, all map[string]docs.Loaded) (other []string, err error) {
	kept := map[string]keptDocument{} // by id
	var ids []*pb.PointId
	for _, path := range paths {
		if have, ok := d.kept.get(path); ok {
			id := pointID("revision:" + path)
			ids, kept[id.GetUuid()] = append(ids, id), have
		}
	}
	if len(ids) == 0 {
		return paths, nil
	}
	points, err := d.get(ctx, ids, "revision")
	for _, p := range points {
		if have := kept[p.Id.GetUuid()]; have.revision == p.Payload["revision"].GetStringValue() {
			all[have.Document.Path] = have.Loaded
		}
	}
	for _, path := range paths {
		if _, ok := all[path]; !ok {
			other = append(other, path)
		}
	}
	return other, err
}

// load adds documents to all, and the paths of documents with a missing part to changed.
func (d *Documents) load(ctx context.Context, paths []string, all map[string]docs.Loaded, changed *[]string) error {
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = "document:" + path
	}
	points, err := d.get(ctx, pointIDs(names), "document", "hash", "text", "parts", "revision")
	if err != nil {
		return err
	}
	for _, p := range points {
		doc := &store.Document{}
		if err := json.Unmarshal([]byte(p.Payload["document"].GetStringValue()), doc); err != nil {
			return fmt.Errorf("a stored document is damaged: %w", err)
		}
		text, whole, err := d.textOf(ctx, doc.Path, p.Payload)
		if err != nil {
			return err
		}
		if !whole {
			*changed = append(*changed, doc.Path)
			continue
		}
		all[doc.Path] = docs.Loaded{Document: doc, Text: text}
		d.kept.put(doc.Path, keptDocument{all[doc.Path], p.Payload["revision"].GetStringValue()})
	}
	return nil
}

// textOf returns the whole text of a point from its fields hash, text and parts. whole is
// false if a part is missing.
func (d *Documents) textOf(ctx context.Context, path string, p map[string]*pb.Value) (text []byte, whole bool, err error) {
	text = []byte(p["text"].GetStringValue())
	for _, name := range textParts(path, p) {
		part, err := d.fields(ctx, name, "text")
		if err != nil || part == nil {
			return nil, false, err
		}
		text = append(text, part["text"].GetStringValue()...)
	}
	return text, true, nil
}

// List calls fn with the documents whose path begins with prefix, in no particular order,
// until fn returns false.
func (d *Documents) List(ctx context.Context, prefix string, fn func(DocumentHead) bool) (err error) {
	defer wrap(&err, "listing %s", d.name)
	if err := d.Open(ctx); err != nil {
		return err
	}
	f := cmp.Or(condition(store.Filter{PathPrefix: prefix}), &pb.Filter{})
	f.Must = append(f.Must, pb.NewMatchKeyword("kind", "document"))
	return d.scroll(ctx, f, headFields, func(p *pb.RetrievedPoint) bool {
		h := headOf(p.Payload)
		return !strings.HasPrefix(h.Path, prefix) || fn(h)
	})
}

// maxKept is the largest number of bytes of text in a keptDocuments. The decoded sections
// take about as much again.
const maxKept = 64 << 20

// keptDocuments holds the most recently loaded documents. Each stored version of a document
// has a random revision, so that a search that finds the document again reads only that.
type keptDocuments struct {
	mu    sync.Mutex
	lru   *simplelru.LRU[string, keptDocument] // by path
	bytes int
}

type keptDocument struct {
	docs.Loaded
	revision string
}

func newKeptDocuments() *keptDocuments {
	k := &keptDocuments{}
	// maxKept is reached before this number of documents, unless they are very short.
	k.lru, _ = simplelru.NewLRU(1<<16, func(_ string, d keptDocument) { k.bytes -= len(d.Text) }) // the size is positive
	return k
}

// get returns the document of a path; ok is false if there is none.
func (k *keptDocuments) get(path string) (d keptDocument, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lru.Get(path)
}

// put keeps a document unless it is large.
func (k *keptDocuments) put(path string, d keptDocument) {
	if len(d.Text) > maxKept/16 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lru.Remove(path)
	k.lru.Add(path, d)
	for k.bytes += len(d.Text); k.bytes > maxKept; {
		k.lru.RemoveOldest()
	}
}
