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

	pb "github.com/qdrant/go-client/qdrant"

	"cairn/internal/store"
	"cairn/internal/store/keyword"
)

// The words of a chunk are a sparse vector of BM25 weights by the analysis of
// internal/store/keyword. The engine multiplies each by the inverse document
// frequency (its modifier IDF, by the same formula).
//
// The weights depend on the average length of chunks, which the writer gives with
// each batch. They keep the average they were made with while the true one is
// near, and are all made again from the texts when it has moved too far. Document
// frequencies are those of a shard.

// lengthsRecord holds the lengths of each collection.
const lengthsRecord = "lengths"

// lengths says what the weights of a collection were made with.
type lengths struct {
	Average float64 `json:"average"` // words a chunk; 0: none yet
	// Weighing is set while the weights are made again, so that an interrupted
	// attempt is repeated.
	Weighing bool `json:"weighing,omitempty"`
}

// drift is how far the average may move, as a part of itself, before all weights
// are made again: a pass over the collection. On the k8s-docs set 4,096 chunks of
// one kind first, and weights left as they were, cost .011 nDCG@10.
const drift = 0.02

// Settle makes all weights again unless the average they were made with is within
// tolerance of avg, as a part of it.
func (c *Chunks) Settle(ctx context.Context, avg, tolerance float64) error {
	if err := c.Open(ctx); err != nil {
		return err
	}
	c.weighing.Lock()
	defer c.weighing.Unlock()
	if c.average > 0 && math.Abs(avg/c.average-1) <= tolerance {
		return nil
	}
	var l lengths
	err := c.updateLengths(ctx, func(stored *lengths) {
		switch {
		case stored.Average == 0:
			stored.Average = avg
		case math.Abs(avg/stored.Average-1) > tolerance:
			stored.Average, stored.Weighing = avg, true
		}
		l = *stored
	})
	if err == nil && l.Weighing {
		err = c.reweigh(ctx, l.Average)
	}
	if err == nil {
		c.average = l.Average
	}
	return err
}

// countTerms adds the terms of an entry to held and returns its length.
func countTerms(held map[string]int, e store.KeywordEntry) (length int) {
	terms, length := keyword.Terms(e)
	for term := range terms {
		held[term]++
	}
	return length
}

// stored returns how many chunks of the store hold each term, from the texts in
// their payloads.
func (c *Chunks) stored(ctx context.Context) (map[string]int, error) {
	held := map[string]int{}
	chunks := 0
	err := c.client.scroll(ctx, &pb.ScrollPoints{CollectionName: c.name, WithPayload: pb.NewWithPayloadInclude(textFields...)}, func(p *pb.RetrievedPoint) bool {
		if chunks == 0 {
			c.client.log.Info("making the store's dictionary from its texts", "collection", c.name)
		}
		chunks++
		countTerms(held, entryOf(p.Payload))
		return true
	})
	return held, err
}

// updateLengths changes the known lengths.
func (c *Chunks) updateLengths(ctx context.Context, change func(*lengths)) error {
	all, err := c.client.aliases(ctx)
	if err != nil {
		return err
	}
	name := cmp.Or(all[c.name], c.name) // the weights are those of one generation
	for {
		value, version, err := c.records.Get(ctx, lengthsRecord)
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
				delete(known, other) // of a removed generation
			}
		}
		known[name] = l
		if value, err = json.Marshal(known); err != nil {
			return err // unreachable: finite numbers always marshal
		}
		if _, err = c.records.Put(ctx, lengthsRecord, value, version); err == nil || !errors.Is(err, ErrConflict) {
			return err
		}
	}
}

// reweigh makes the weights of all chunks again, from the texts in their payloads.
func (c *Chunks) reweigh(ctx context.Context, avg float64) error {
	r := &pb.UpdatePointVectors{CollectionName: c.name, Wait: pb.PtrOf(true)}
	var failed error
	flush := func() bool {
		if len(r.Points) > 0 {
			failed = c.client.write(ctx, func(ctx context.Context) error {
				_, err := c.client.grpc.Points().UpdateVectors(ctx, r)
				return err
			})
			r.Points = nil
		}
		return failed == nil
	}
	// Points keep their ids, so a page that was written is not read again.
	err := c.client.scroll(ctx, &pb.ScrollPoints{CollectionName: c.name, WithPayload: pb.NewWithPayloadInclude(textFields...)}, func(p *pb.RetrievedPoint) bool {
		if words := wordsOf(entryOf(p.Payload), avg); words != nil {
			r.Points = append(r.Points, &pb.PointVectors{Id: p.Id, Vectors: pb.NewVectorsMap(map[string]*pb.Vector{wordsVector: words})})
		}
		return len(r.Points) < upsertPoints || flush()
	})
	if err == nil && failed == nil {
		flush()
	}
	if err = cmp.Or(err, failed); err != nil {
		return err
	}
	return c.updateLengths(ctx, func(l *lengths) { l.Weighing = false })
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

// wordsOf returns the sparse vector of an entry, nil when it has no terms.
func wordsOf(e store.KeywordEntry, avg float64) *pb.Vector {
	indices, values := sparse(keyword.Weights(e, avg))
	if len(indices) == 0 {
		return nil
	}
	return pb.NewVectorSparse(indices, values)
}
