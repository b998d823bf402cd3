package qdrant

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"
	pb "github.com/qdrant/go-client/qdrant"

	"cairn/internal/store"
)

// Chunks is the collection of a generation's chunks. A chunk is one point with its text,
// its words as a sparse vector, and its embedding, so that one request searches both.
// Updates replace whole points, so the words and the embedding always belong to the same
// version.
type Chunks struct {
	collection
	documents *Documents // of the same generation
	terms     *terms
	// names holds the chunks of points. The engine reads a payload from disk, which takes
	// ten times as long as scoring the point. So a search requests no payloads, and looks up
	// only the chunks that are missing here. The id of a point is a hash of its chunk, so an
	// entry never becomes wrong. See nameAll.
	names    *lru.Cache[uuid.UUID, string]
	searches atomic.Int64

	weighing sync.Mutex
	average  float64 // average length used for the weights; 0 until Settle has read it
}

// Chunk is an entry of a collection.
type Chunk struct {
	store.KeywordEntry
	// Vector is the embedding, of unit length; nil if there is none yet.
	Vector []float32
}

// The names of the vectors of a chunk.
const (
	wordsVector = "words"
	denseVector = "embedding"
)

// The sizes of requests. A point has about 2 kB for a vector of 384 numbers, and as much
// for the text.
const (
	upsertPoints = 256
	idsPerCall   = 1000
)

// Keyword returns the chunks as a keyword index.
func (c *Chunks) Keyword() Keyword { return Keyword{c} }

// Vectors returns the chunks as a vector store.
func (c *Chunks) Vectors() Vectors { return Vectors{c} }

// checkVector reports whether the collection can store a vector.
func (c *Chunks) checkVector(vector []float32) error {
	if len(vector) != c.shape.dim {
		return fmt.Errorf("vector of dimension %d, want %d", len(vector), c.shape.dim)
	}
	for _, x := range vector {
		if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("vector holds %v, want finite numbers", x)
		}
	}
	return nil
}

// Update applies one batch: it adds or replaces entries, then removes stale chunks, in
// this order so that searches always find every chunk. avg is the average number of words
// per chunk in the whole index. Unknown stale ids are ignored. After an error, the caller
// can repeat the batch.
func (c *Chunks) Update(ctx context.Context, entries []Chunk, stale []string, avg float64) (err error) {
	defer wrap(&err, "updating %s", c.name)
	last := make(map[string]int, len(entries))
	for i := range entries {
		if entries[i].Chunk == "" {
			return fmt.Errorf("entry %d has no chunk id", i)
		}
		if v := entries[i].Vector; v != nil {
			if err := c.checkVector(v); err != nil {
				return fmt.Errorf("%s: %w", entries[i].Chunk, err)
			}
		}
		last[entries[i].Chunk] = i
	}
	if err := c.Open(ctx); err != nil {
		return err
	}
	if len(entries) == 0 && len(stale) == 0 {
		return ctx.Err()
	}
	if len(entries) > 0 {
		if err := c.Settle(ctx, avg, drift); err != nil {
			return err
		}
	}
	var points []*pb.PointStruct
	for i := range entries {
		if last[entries[i].Chunk] != i {
			continue
		}
		if points = append(points, chunkPoint(&entries[i], c.average)); len(points) == upsertPoints {
			if err := c.update(ctx, points); err != nil {
				return err
			}
			points = nil
		}
	}
	stale = slices.DeleteFunc(slices.Clone(stale), func(id string) bool { _, ok := last[id]; return ok })
	return c.update(ctx, points, stale...)
}

// IDs calls fn with the ID of every chunk, in no particular order.
func (c *Chunks) IDs(ctx context.Context, fn func(id string)) (err error) {
	defer wrap(&err, "listing %s", c.name)
	if err := c.Open(ctx); err != nil {
		return err
	}
	return c.scroll(ctx, nil, []string{"chunk"}, func(p *pb.RetrievedPoint) bool {
		fn(chunkIn(p.Payload))
		return true
	})
}

func chunkPoint(e *Chunk, avg float64) *pb.PointStruct {
	payload := chunkPayload(e.Chunk, e.Path, e.Labels)
	payload["title"], payload["trail"] = pb.NewValueString(valid(e.Title)), listOf(e.Trail, pb.NewValueString)
	payload["body"] = pb.NewValueString(valid(e.Body))
	vectors := map[string]*pb.Vector{}
	if words := wordsOf(e.KeywordEntry, avg); words != nil {
		vectors[wordsVector] = words
	}
	if e.Vector != nil {
		vectors[denseVector] = pb.NewVectorDense(e.Vector)
	}
	return &pb.PointStruct{Id: pointID(e.Chunk), Payload: payload, Vectors: pb.NewVectorsMap(vectors)}
}

// textFields are the fields that entryOf reads.
var textFields = []string{"chunk", "title", "trail", "body"}

// entryOf returns the entry from which the weights of a chunk are computed.
func entryOf(p map[string]*pb.Value) store.KeywordEntry {
	e := store.KeywordEntry{Chunk: p["chunk"].GetStringValue(), Title: p["title"].GetStringValue(), Body: p["body"].GetStringValue()}
	e.Path, _, _, _ = store.SplitChunkID(e.Chunk)
	for _, heading := range p["trail"].GetListValue().GetValues() {
		e.Trail = append(e.Trail, heading.GetStringValue())
	}
	return e
}

// valid replaces invalid UTF-8, which protocol buffers do not allow.
func valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

// Complete updates the dictionary with the terms of the writer's own index, most common
// first. Searches need the dictionary to match misspelt words.
func (c *Chunks) Complete(ctx context.Context, terms []string) (err error) {
	defer wrap(&err, "writing the dictionary of %s", c.name)
	return c.terms.complete(ctx, terms)
}

// countPoints returns the number of points that pass a filter; nil counts all.
func (c *Chunks) countPoints(f *pb.Filter) (n int, err error) {
	defer wrap(&err, "counting %s", c.name)
	ctx := context.Background()
	if err := c.Open(ctx); err != nil {
		return 0, err
	}
	r, err := read(ctx, c.client, c.client.grpc.Points().Count, &pb.CountPoints{CollectionName: c.name, Exact: pb.PtrOf(true), Filter: f})
	return int(r.GetResult().GetCount()), err
}
