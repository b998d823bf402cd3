package qdrant

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	pb "github.com/qdrant/go-client/qdrant"

	"cairn/internal/query"
	"cairn/internal/store"
	"cairn/internal/store/keyword"
)

// Keyword is a store.Keyword in a collection: each chunk is a sparse vector of
// BM25 weights by the analysis of internal/store/keyword, and the engine multiplies
// by the inverse document frequency (its modifier IDF, by the same formula).
//
// Two things differ from the index on disk. The average length of chunks is
// inside the weights: it is kept while the true one is near, and all weights are
// made again from the texts when it has moved too far. And document frequencies
// are those of a shard. What is near a misspelt word a dictionary tells, see
// terms; how common each of those words is the engine.
//
// Phrases and exclusions are checked on the chunks that come back, which is why
// a chunk's text lies in the payload too.
type Keyword struct {
	client  *Client
	name    string
	shape   shape
	records *Records
	terms   *terms
	gate    gate

	open  sync.Mutex
	ready bool // guarded by open
}

var _ store.Keyword = (*Keyword)(nil)

// lengthsRecord holds what is known of the length of chunks, by collection.
const lengthsRecord = "lengths"

// lengths says which average the weights of a collection were made with, and
// what was seen since. Chunks that left are not taken out again.
type lengths struct {
	Average float64 `json:"average"` // words a chunk, in the weights; 0: none yet
	Chunks  int     `json:"chunks"`
	Words   int     `json:"words"`
	// Weighing is set while the weights are made again, so that an attempt
	// which was cut short is repeated.
	Weighing bool `json:"weighing,omitempty"`
}

// drift is how far the average may move, as a part of itself. On the k8s-docs
// set 4,096 chunks of one kind first, and weights left as they were, cost .011
// nDCG@10.
const drift = 0.02

func wordsShape() shape { return shape{words: true, fields: labelFields} }

func (x *Keyword) start(ctx context.Context) error {
	x.open.Lock()
	defer x.open.Unlock()
	if x.ready {
		return nil
	}
	err := x.client.first(ctx, x.name, x.shape)
	x.ready = err == nil
	return err
}

// count adds the entries of a batch to what is known of lengths, and says
// whether the weights that are there have to be made again, and how many of the
// entries hold each term. x.open is not held.
func (x *Keyword) count(ctx context.Context, entries []store.TextEntry) (avg float64, again bool, held map[string]int, err error) {
	words := 0
	held = map[string]int{}
	for _, e := range entries {
		words += countTerms(held, e)
	}
	err = x.note(ctx, func(l *lengths) {
		l.Chunks += len(entries)
		l.Words += words
		now := max(1, float64(l.Words)/float64(max(1, l.Chunks)))
		moved := l.Average > 0 && math.Abs(now/l.Average-1) > drift
		if l.Average == 0 || moved {
			l.Average = now
		}
		l.Weighing = l.Weighing || moved
		avg, again = l.Average, l.Weighing
	})
	return avg, again, held, err
}

// countTerms adds the terms of an entry to those of others and returns its length.
func countTerms(held map[string]int, e store.TextEntry) (length int) {
	terms, length := keyword.Terms(e)
	for term := range terms {
		held[term]++
	}
	return length
}

// stored returns how many chunks of the store hold each term, from the texts in
// their payloads.
func (x *Keyword) stored(ctx context.Context) (map[string]int, error) {
	held := map[string]int{}
	chunks := 0
	err := x.client.scroll(ctx, &pb.ScrollPoints{CollectionName: x.name, WithPayload: pb.NewWithPayloadInclude(textFields...)}, func(p *pb.RetrievedPoint) bool {
		if chunks == 0 {
			x.client.log.Info("making the store's dictionary from its texts", "collection", x.name)
		}
		chunks++
		countTerms(held, entryOf(p.Payload))
		return true
	})
	return held, err
}

// Complete makes what an index that was written by an earlier version lacks: the
// dictionary. It is for the one writer.
func (x *Keyword) Complete(ctx context.Context) error {
	err := x.start(ctx)
	if err == nil {
		var there bool
		if there, err = x.terms.exists(ctx); err == nil && !there {
			err = x.terms.add(ctx, nil, x.stored)
		}
	}
	if err != nil {
		return fmt.Errorf("completing %s: %w", x.name, err)
	}
	return nil
}

// note changes what is known of lengths.
func (x *Keyword) note(ctx context.Context, change func(*lengths)) error {
	x.open.Lock()
	defer x.open.Unlock()
	all, err := x.client.aliases(ctx)
	if err != nil {
		return err
	}
	name := cmp.Or(all[x.name], x.name) // the weights are those of one generation
	for {
		value, version, err := x.records.Get(ctx, lengthsRecord)
		if err != nil {
			return err
		}
		known := map[string]lengths{}
		if version > 0 {
			if err := json.Unmarshal(value, &known); err != nil {
				return fmt.Errorf("record %s: %w", lengthsRecord, err)
			}
		}
		l := known[name]
		change(&l)
		for other := range known {
			if !slices.Contains(slices.Collect(maps.Values(all)), other) {
				delete(known, other) // of a generation that was left
			}
		}
		known[name] = l
		if value, err = json.Marshal(known); err != nil {
			return err // unreachable: finite numbers always marshal
		}
		if _, err = x.records.Put(ctx, lengthsRecord, value, version); err == nil || !errors.Is(err, ErrConflict) {
			return err
		}
	}
}

// weigh makes the weights of all chunks again, from the texts in their payloads.
func (x *Keyword) weigh(ctx context.Context, avg float64) error {
	var points []*pb.PointStruct
	var failed error
	flush := func() bool {
		failed = x.client.update(ctx, x.name, points, nil)
		points = points[:0]
		return failed == nil
	}
	// Points keep their ids, so a page that was written does not come again.
	err := x.client.scroll(ctx, &pb.ScrollPoints{CollectionName: x.name, WithPayload: pb.NewWithPayload(true)}, func(p *pb.RetrievedPoint) bool {
		e := entryOf(p.Payload)
		points = append(points, &pb.PointStruct{Id: p.Id, Payload: p.Payload, Vectors: weightsOf(&e, avg)})
		return len(points) < upsertPoints || flush()
	})
	if err == nil && failed == nil {
		flush()
	}
	if err = cmp.Or(err, failed); err != nil {
		return err
	}
	return x.note(ctx, func(l *lengths) { l.Weighing = false })
}

// textFields are the fields that entryOf reads.
var textFields = []string{"chunk", "title", "trail", "body"}

// entryOf is what the weights of a chunk are made of.
func entryOf(p map[string]*pb.Value) store.TextEntry {
	e := store.TextEntry{Chunk: p["chunk"].GetStringValue(), Title: p["title"].GetStringValue(), Body: p["body"].GetStringValue()}
	e.Path, _, _, _ = store.SplitChunkID(e.Chunk)
	for _, heading := range p["trail"].GetListValue().GetValues() {
		e.Trail = append(e.Trail, heading.GetStringValue())
	}
	return e
}

// termIndex is the place of a term in sparse vectors. Two of a million terms
// share one once in some ten thousand words; their weights are then added.
func termIndex(term string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(term))
	return h.Sum32()
}

func sparse(terms map[string]float64) (indices []uint32, values []float32) {
	at := make(map[uint32]float64, len(terms))
	for _, term := range slices.Sorted(maps.Keys(terms)) {
		at[termIndex(term)] += terms[term]
	}
	for _, index := range slices.Sorted(maps.Keys(at)) {
		indices, values = append(indices, index), append(values, float32(at[index]))
	}
	return indices, values
}

// Update implements store.Keyword.
func (x *Keyword) Update(ctx context.Context, entries []store.TextEntry, stale []string) error {
	last := make(map[string]int, len(entries))
	for i := range entries {
		if entries[i].Chunk == "" {
			return fmt.Errorf("updating %s: entry %d has no chunk id", x.name, i)
		}
		last[entries[i].Chunk] = i
	}
	if err := x.start(ctx); err != nil {
		return fmt.Errorf("updating %s: %w", x.name, err)
	}
	if len(entries) == 0 && len(stale) == 0 {
		return ctx.Err()
	}
	avg, again, held, err := x.count(ctx, entries)
	if err == nil && again {
		err = x.weigh(ctx, avg)
	}
	if err == nil && len(held) > 0 {
		err = x.terms.add(ctx, held, x.stored)
	}
	if err != nil {
		return fmt.Errorf("updating %s: %w", x.name, err)
	}
	stale = slices.DeleteFunc(slices.Clone(stale), func(id string) bool { _, ok := last[id]; return ok })
	defer x.gate.write()()
	var points []*pb.PointStruct
	flush := func(names []string) error {
		err := x.client.update(ctx, x.name, points, names)
		points = points[:0]
		return err
	}
	for i := range entries {
		if last[entries[i].Chunk] != i {
			continue
		}
		if points = append(points, wordsPoint(&entries[i], avg)); len(points) == upsertPoints {
			if err := flush(nil); err != nil {
				return fmt.Errorf("updating %s: %w", x.name, err)
			}
		}
	}
	if err := flush(stale); err != nil {
		return fmt.Errorf("updating %s: %w", x.name, err)
	}
	return ctx.Err()
}

func wordsPoint(e *store.TextEntry, avg float64) *pb.PointStruct {
	payload := chunkPayload(e.Chunk, e.Path, e.Labels)
	payload["title"], payload["trail"] = pb.NewValueString(valid(e.Title)), stringList(e.Trail)
	payload["body"] = pb.NewValueString(valid(e.Body))
	return &pb.PointStruct{Id: pointID(e.Chunk), Payload: payload, Vectors: weightsOf(e, avg)}
}

func weightsOf(e *store.TextEntry, avg float64) *pb.Vectors {
	vectors := map[string]*pb.Vector{}
	if indices, values := sparse(keyword.Weights(*e, avg)); len(indices) > 0 {
		vectors[wordsVector] = pb.NewVectorSparse(indices, values)
	}
	return pb.NewVectorsMap(vectors)
}

// valid is s as protocol buffers take it.
func valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

// restrictedHits is how many chunks are looked at for phrases and exclusions at most.
const restrictedHits = 4096

// Search implements store.Keyword.
func (x *Keyword) Search(ctx context.Context, q query.Query, k int, f store.Filter) ([]store.Hit, error) {
	if k <= 0 {
		return nil, ctx.Err()
	}
	if err := x.start(ctx); err != nil {
		return nil, fmt.Errorf("searching %s: %w", x.name, err)
	}
	var dictionary *keyword.Dictionary
	if q.Fuzzy {
		var err error
		if dictionary, err = x.terms.dictionary(ctx); err != nil {
			return nil, fmt.Errorf("searching %s: %w", x.name, err)
		}
	}
	defer x.gate.read()()
	question, err := x.resolve(ctx, q)
	if err == nil && q.Fuzzy {
		question, err = question.Near(dictionary, func(terms []string) (map[string]float64, error) { return x.rarities(ctx, terms) })
	}
	if err != nil {
		return nil, fmt.Errorf("searching %s: %w", x.name, err)
	}
	terms := question.Terms()
	if len(terms) == 0 {
		return nil, ctx.Err()
	}
	if question.Restricted() {
		return x.restricted(ctx, question, k, f)
	}
	indices, values := sparse(terms)
	request := &pb.QueryPoints{CollectionName: x.name, Using: pb.PtrOf(wordsVector), Query: pb.NewQuerySparse(indices, values), Filter: condition(f)}
	hits, err := x.client.best(ctx, request, k, func(h store.Hit) bool { return h.Score > 0 && below(h.Chunk, f.PathPrefix) })
	if err != nil {
		return nil, fmt.Errorf("searching %s: %w", x.name, err)
	}
	return hits, nil
}

// resolve analyses a query and finds out which of its dashed words are flags.
func (x *Keyword) resolve(ctx context.Context, q query.Query) (keyword.Query, error) {
	return keyword.NewQuery(q).Resolve(func(term string) (bool, error) {
		found, err := x.points(ctx, map[string]float64{term: 1}, nil, 1, false)
		return len(found) > 0, err
	})
}

// Admits implements store.Keyword.
func (x *Keyword) Admits(ctx context.Context, q query.Query, chunks []string) ([]bool, error) {
	admits := make([]bool, len(chunks))
	if len(chunks) == 0 {
		return admits, ctx.Err()
	}
	err := x.start(ctx)
	var resolved keyword.Query
	if err == nil {
		resolved, err = x.resolve(ctx, q)
	}
	held := make(map[string]bool, len(chunks))
	if err == nil {
		err = x.client.read(ctx, func(ctx context.Context) error {
			r, err := x.client.grpc.Points().Get(ctx, &pb.GetPoints{
				CollectionName: x.name, Ids: pointIDs(chunks), WithPayload: pb.NewWithPayloadInclude(textFields...),
			})
			for _, p := range r.GetResult() {
				e := entryOf(p.Payload)
				held[e.Chunk] = resolved.Admits(e)
			}
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("checking chunks of %s: %w", x.name, err)
	}
	for i, c := range chunks {
		admits[i] = held[c]
	}
	return admits, nil
}

// restricted looks at the best chunks in turn and keeps those that the query admits.
func (x *Keyword) restricted(ctx context.Context, q keyword.Query, k int, f store.Filter) ([]store.Hit, error) {
	found, err := x.points(ctx, q.Terms(), condition(f), restrictedHits, true)
	if err != nil {
		return nil, fmt.Errorf("searching %s: %w", x.name, err)
	}
	var hits []store.Hit
	for _, p := range found {
		e := entryOf(p.Payload)
		if p.Score > 0 && below(e.Chunk, f.PathPrefix) && q.Admits(e) {
			hits = append(hits, store.Hit{Chunk: e.Chunk, Score: float64(p.Score)})
		}
	}
	sortHits(hits)
	return hits[:min(k, len(hits))], nil
}

// points returns the best points for the terms, with their texts if asked.
func (x *Keyword) points(ctx context.Context, terms map[string]float64, f *pb.Filter, limit int, texts bool) (found []*pb.ScoredPoint, err error) {
	fields := []string{"chunk"}
	if texts {
		fields = textFields
	}
	indices, values := sparse(terms)
	err = x.client.read(ctx, func(ctx context.Context) error {
		r, err := x.client.grpc.Points().Query(ctx, &pb.QueryPoints{
			CollectionName: x.name, Using: pb.PtrOf(wordsVector), Query: pb.NewQuerySparse(indices, values), Filter: f,
			Limit: pb.PtrOf(uint64(limit)), WithPayload: pb.NewWithPayloadInclude(fields...),
		})
		found = r.GetResult()
		return err
	})
	return found, err
}

// askTerms is how many terms are looked up in one request, and idfStep what their
// rarities are rounded to: more than float32 scores leave uncertain, and less than
// one chunk more or less makes of ten thousand.
const (
	askTerms = 256
	idfStep  = 1e-5
)

// rarities returns the inverse document frequencies by which the engine
// multiplies the weights of terms, for those that some chunk holds: the score of
// the best chunk for the term alone by its weight there.
func (x *Keyword) rarities(ctx context.Context, terms []string) (map[string]float64, error) {
	held := map[string]float64{}
	for some := range slices.Chunk(terms, askTerms) {
		batch := &pb.QueryBatchPoints{CollectionName: x.name}
		for _, term := range some {
			batch.QueryPoints = append(batch.QueryPoints, &pb.QueryPoints{
				CollectionName: x.name, Using: pb.PtrOf(wordsVector), Query: pb.NewQuerySparse([]uint32{termIndex(term)}, []float32{1}),
				Limit: pb.PtrOf(uint64(1)), WithVectors: pb.NewWithVectorsInclude(wordsVector),
			})
		}
		var found []*pb.BatchResult
		err := x.client.read(ctx, func(ctx context.Context) error {
			r, err := x.client.grpc.Points().QueryBatch(ctx, batch)
			found = r.GetResult()
			return err
		})
		if err != nil {
			return nil, err
		}
		for i, result := range found[:min(len(found), len(some))] {
			for _, p := range result.GetResult() {
				if weight := weightIn(p.GetVectors(), termIndex(some[i])); weight > 0 && p.Score > 0 {
					held[some[i]] = max(1, math.Round(float64(p.Score)/weight/idfStep)) * idfStep
				}
			}
		}
	}
	return held, nil
}

// weightIn returns the weight of a term in a chunk's sparse vector, 0 if it has none.
func weightIn(vectors *pb.VectorsOutput, index uint32) float64 {
	out := vectors.GetVectors().GetVectors()[wordsVector]
	indices, values := out.GetSparse().GetIndices(), out.GetSparse().GetValues()
	if indices == nil {
		//lint:ignore SA1019 servers before 1.16 put it there
		indices, values = out.GetIndices().GetData(), out.GetData()
	}
	if i := slices.Index(indices, index); i >= 0 && i < len(values) {
		return float64(values[i])
	}
	return 0
}

// Count implements store.Keyword.
func (x *Keyword) Count() (int, error) {
	ctx := context.Background()
	if err := x.start(ctx); err != nil {
		return 0, fmt.Errorf("counting %s: %w", x.name, err)
	}
	return x.client.count(ctx, x.name)
}

// Close implements store.Keyword. The client stays open.
func (x *Keyword) Close() error { return nil }
