package qdrant

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	pb "github.com/qdrant/go-client/qdrant"
	"google.golang.org/protobuf/proto"

	"cairn/internal/store"
)

// Documents keeps documents with their texts, so that whoever answers needs no
// disk. A document and its text are one point, so nobody sees half of a change;
// a text of more than partBytes has further points, named after its hash.
//
//	kind      "document"
//	path, hash, size, mtime, sections, chunks
//	under     as for chunks
//	document  JSON of store.Document
//	text      its beginning
//	parts     number of further points
//
//	kind      "part"
//	text
//
// Points of other kinds are the dictionary's, see terms.
type Documents struct {
	client *Client
	name   string
	shape  shape

	open  sync.Mutex
	ready bool // guarded by open
}

func documentsShape() shape {
	return shape{fields: map[string]pb.FieldType{"kind": pb.FieldType_FieldTypeKeyword, "under": pb.FieldType_FieldTypeInteger}}
}

func (d *Documents) start(ctx context.Context) error {
	d.open.Lock()
	defer d.open.Unlock()
	if d.ready {
		return nil
	}
	err := d.client.first(ctx, d.name, d.shape)
	d.ready = err == nil
	return err
}

// DocumentHead says which version of a document is held.
type DocumentHead struct {
	Path, Hash       string
	Size, ModTime    int64
	Sections, Chunks int
}

// Put stores a document with its text, replacing the one of that path. The
// text has to be UTF-8.
func (d *Documents) Put(ctx context.Context, doc *store.Document, text []byte) error {
	if err := d.put(ctx, doc, text); err != nil {
		return fmt.Errorf("storing %s in %s: %w", doc.Path, d.name, err)
	}
	return nil
}

func (d *Documents) put(ctx context.Context, doc *store.Document, text []byte) error {
	if err := d.start(ctx); err != nil {
		return err
	}
	if !utf8.Valid(text) {
		return fmt.Errorf("its text is not UTF-8")
	}
	encoded, err := json.Marshal(doc)
	if err != nil {
		return err // unreachable: documents always marshal
	}
	before, err := d.get(ctx, doc.Path, "hash", "parts")
	if err != nil {
		return err
	}
	pieces := cut(text)
	chunks := 0
	for i := range doc.Sections {
		chunks += len(doc.Sections[i].Chunks)
	}
	numbers := under(doc.Path)
	list := make([]*pb.Value, len(numbers))
	for i, n := range numbers {
		list[i] = pb.NewValueInt(n)
	}
	payload := map[string]*pb.Value{
		"kind": pb.NewValueString("document"), "path": pb.NewValueString(doc.Path), "hash": pb.NewValueString(doc.Hash),
		"size": pb.NewValueInt(doc.Size), "mtime": pb.NewValueInt(doc.ModTime), "sections": pb.NewValueInt(int64(len(doc.Sections))),
		"chunks": pb.NewValueInt(int64(chunks)), "under": pb.NewValueFromList(list...), "document": pb.NewValueString(string(encoded)),
		"text": pb.NewValueString(pieces[0]), "parts": pb.NewValueInt(int64(len(pieces) - 1)),
	}
	for n, piece := range pieces[1:] {
		part := bare(textPart(doc.Path, doc.Hash, n), map[string]*pb.Value{"kind": pb.NewValueString("part"), "text": pb.NewValueString(piece)})
		if err := d.client.update(ctx, d.name, []*pb.PointStruct{part}, nil); err != nil {
			return err
		}
	}
	if err := d.client.update(ctx, d.name, []*pb.PointStruct{bare("document:"+doc.Path, payload)}, nil); err != nil {
		return err
	}
	if old := before["hash"].GetStringValue(); old != doc.Hash {
		return d.client.update(ctx, d.name, nil, textParts(doc.Path, old, int(before["parts"].GetIntegerValue())))
	}
	return nil
}

// cut cuts a text into pieces of at most partBytes, at least one.
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

func textParts(path, hash string, parts int) []string {
	var names []string
	for n := range parts {
		names = append(names, textPart(path, hash, n))
	}
	return names
}

// Delete removes documents. Unknown paths are ignored.
func (d *Documents) Delete(ctx context.Context, paths []string) error {
	if err := d.start(ctx); err != nil {
		return fmt.Errorf("removing documents from %s: %w", d.name, err)
	}
	for _, path := range paths {
		before, err := d.get(ctx, path, "hash", "parts")
		if err == nil {
			names := append(textParts(path, before["hash"].GetStringValue(), int(before["parts"].GetIntegerValue())), "document:"+path)
			err = d.client.update(ctx, d.name, nil, names)
		}
		if err != nil {
			return fmt.Errorf("removing %s from %s: %w", path, d.name, err)
		}
	}
	return nil
}

// get returns fields of a document's point, nil when there is none.
func (d *Documents) get(ctx context.Context, path string, fields ...string) (payload map[string]*pb.Value, err error) {
	err = d.client.read(ctx, func(ctx context.Context) error {
		payload = nil
		r, err := d.client.grpc.Points().Get(ctx, &pb.GetPoints{CollectionName: d.name, Ids: pointIDs([]string{"document:" + path}), WithPayload: pb.NewWithPayloadInclude(fields...)})
		for _, p := range r.GetResult() {
			payload = p.Payload
		}
		return err
	})
	return payload, err
}

// Head returns what is recorded of a path; ok is false when there is no such document.
func (d *Documents) Head(ctx context.Context, path string) (head DocumentHead, ok bool, err error) {
	if err := d.start(ctx); err != nil {
		return head, false, fmt.Errorf("looking up %s in %s: %w", path, d.name, err)
	}
	payload, err := d.get(ctx, path, headFields...)
	if err != nil {
		return head, false, fmt.Errorf("looking up %s in %s: %w", path, d.name, err)
	}
	return headOf(payload), payload != nil, nil
}

var headFields = []string{"path", "hash", "size", "mtime", "sections", "chunks"}

func headOf(p map[string]*pb.Value) DocumentHead {
	return DocumentHead{
		Path: p["path"].GetStringValue(), Hash: p["hash"].GetStringValue(), Size: p["size"].GetIntegerValue(), ModTime: p["mtime"].GetIntegerValue(),
		Sections: int(p["sections"].GetIntegerValue()), Chunks: int(p["chunks"].GetIntegerValue()),
	}
}

// Load returns a document with its text, both of one version; nil when there is none.
func (d *Documents) Load(ctx context.Context, path string) (*store.Document, []byte, error) {
	doc, text, err := d.load(ctx, path)
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s from %s: %w", path, d.name, err)
	}
	return doc, text, nil
}

func (d *Documents) load(ctx context.Context, path string) (*store.Document, []byte, error) {
	if err := d.start(ctx); err != nil {
		return nil, nil, err
	}
	for tries := 3; ; tries-- {
		payload, err := d.get(ctx, path, "document", "text", "parts", "hash")
		if err != nil || payload == nil {
			return nil, nil, err
		}
		doc := &store.Document{}
		if err := json.Unmarshal([]byte(payload["document"].GetStringValue()), doc); err != nil {
			return nil, nil, fmt.Errorf("what is stored is damaged: %w", err)
		}
		text := bytes.NewBufferString(payload["text"].GetStringValue())
		whole := true
		for _, name := range textParts(path, doc.Hash, int(payload["parts"].GetIntegerValue())) {
			found := false
			err := d.client.read(ctx, func(ctx context.Context) error {
				r, err := d.client.grpc.Points().Get(ctx, &pb.GetPoints{CollectionName: d.name, Ids: pointIDs([]string{name}), WithPayload: pb.NewWithPayloadInclude("text")})
				for _, p := range r.GetResult() {
					found = true
					text.WriteString(p.Payload["text"].GetStringValue())
				}
				return err
			})
			if err != nil {
				return nil, nil, err
			}
			whole = whole && found
		}
		if whole {
			return doc, text.Bytes(), nil
		}
		if tries == 0 {
			return nil, nil, fmt.Errorf("a part of its text is missing")
		}
	}
}

// scrollPoints is how many points one page of a listing has.
const scrollPoints = 1000

// List calls fn with what is held below prefix, in no order, until it returns false.
func (d *Documents) List(ctx context.Context, prefix string, fn func(DocumentHead) bool) error {
	if err := d.start(ctx); err != nil {
		return fmt.Errorf("listing %s: %w", d.name, err)
	}
	f := condition(store.Filter{PathPrefix: prefix})
	if f == nil {
		f = &pb.Filter{}
	}
	f.Must = append(f.Must, pb.NewMatchKeyword("kind", "document"))
	err := d.client.scroll(ctx, &pb.ScrollPoints{CollectionName: d.name, Filter: f, WithPayload: pb.NewWithPayloadInclude(headFields...)}, func(p *pb.RetrievedPoint) bool {
		h := headOf(p.Payload)
		return !strings.HasPrefix(h.Path, prefix) || fn(h)
	})
	if err != nil {
		return fmt.Errorf("listing %s: %w", d.name, err)
	}
	return nil
}

// Paths returns the paths below prefix, sorted.
func (d *Documents) Paths(ctx context.Context, prefix string) (paths []string, err error) {
	err = d.List(ctx, prefix, func(h DocumentHead) bool {
		paths = append(paths, h.Path)
		return true
	})
	slices.Sort(paths)
	return paths, err
}

// scroll calls fn with every point that a request finds, until it returns false.
func (c *Client) scroll(ctx context.Context, request *pb.ScrollPoints, fn func(*pb.RetrievedPoint) bool) error {
	page := proto.CloneOf(request)
	if page.Limit == nil {
		page.Limit = pb.PtrOf(uint32(scrollPoints))
	}
	for {
		var r *pb.ScrollResponse
		err := c.read(ctx, func(ctx context.Context) (err error) {
			r, err = c.grpc.Points().Scroll(ctx, page)
			return err
		})
		if err != nil {
			return err
		}
		for _, p := range r.Result {
			if !fn(p) {
				return nil
			}
		}
		if page.Offset = r.NextPageOffset; page.Offset == nil {
			return nil
		}
	}
}
