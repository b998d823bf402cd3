package toolsearch

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"cairn/internal/store/legs"
	"cairn/internal/text/query"
)

// election weighs the votes of remembered tools for a new intent.
type election struct {
	memory *memory
	index  *Index
	units  [][]float32                // vectors of the new intent and its parts; none without an embedder
	best   float64                    // nearness of the nearest tool to them; 0 until it is computed
	known  map[int]map[string]float64 // cached results of of, by trace
}

// votes adds the votes of past intents, whose weights sum to 1, to into. It returns the share of
// the votes that remains after the reductions.
func (e *election) votes(ctx context.Context, raw []Neighbour, into map[string]float64) (kept float64, err error) {
	support := map[string]float64{}
	for _, v := range raw {
		for _, t := range Distinct(v.Trace.Tools) {
			support[t] += v.Weight
		}
	}
	for _, v := range raw {
		short, err := e.of(ctx, v.number)
		if err != nil {
			return 0, err
		}
		most := 0.0
		for t, d := range short {
			others := 0.0
			if v.Weight < 0.999 {
				others = (support[t] - v.Weight) / (1 - v.Weight)
			}
			same := clip((v.Similarity - sureSimilarity) / sameSimilarity)
			sure := leastShare + (1-leastShare)*max(min(1, enoughSupport*others), same)
			share := sure * math.Exp(-d/(aloneTolerance+supportTolerance*max(others, same)))
			into[t] += v.Weight * share
			most = max(most, share)
		}
		kept += v.Weight * most
	}
	return kept, nil
}

// of returns for each tool of a trace how much its shortfall, the difference in nearness to
// the best tool, is larger for the new intent than for the trace's intent; at least 0.
func (e *election) of(ctx context.Context, trace int) (map[string]float64, error) {
	if known, ok := e.known[trace]; ok {
		return known, nil
	}
	tools := Distinct(e.memory.traces[trace].Tools)
	list := make(map[string]float64, len(tools))
	for _, t := range tools {
		list[t] = 0
	}
	e.known[trace] = list
	if len(e.units) == 0 {
		return list, nil
	}
	then, err := e.memory.shortfall(ctx, trace, tools, e.index)
	if err != nil || then == nil {
		return list, err
	}
	if e.best == 0 {
		if e.best, err = e.index.nearestTo(ctx, e.units); err != nil {
			return nil, err
		}
	}
	now, err := e.index.nearTo(ctx, e.units, tools)
	if err != nil {
		return nil, err
	}
	for i, t := range tools {
		list[t] = max(0, e.best-now[i]-then[i])
	}
	return list, nil
}

// knownShortfalls is the number of traces whose shortfall is cached.
const knownShortfalls = 4096

// shortfallKey identifies a shortfall: it depends on the vectors of the tools.
type shortfallKey struct {
	trace   int
	tools   *legs.Legs
	changes int // tools.Changes
}

// shortfall returns how much less near each tool of a trace is to the trace's intent than
// the nearest tool. It returns nil for an intent that has a text without a vector.
func (m *memory) shortfall(ctx context.Context, trace int, tools []string, x *Index) ([]float64, error) {
	key := shortfallKey{trace, x.legs, x.legs.Changes()}
	if short, known := m.shortfalls.Get(key); known {
		return short, nil
	}
	units, err := m.unitsOf(ctx, trace)
	if err != nil || slices.ContainsFunc(units, func(v []float32) bool { return v == nil }) {
		return nil, err
	}
	best, err := x.nearestTo(ctx, units)
	if err != nil {
		return nil, err
	}
	short, err := x.nearTo(ctx, units, tools)
	if err != nil {
		return nil, err
	}
	for i, near := range short {
		short[i] = max(best, near) - near
	}
	m.shortfalls.Add(key, short)
	return short, nil
}

// unitsOf returns the vectors of a remembered intent and of its parts.
func (m *memory) unitsOf(ctx context.Context, trace int) ([][]float32, error) {
	t := &m.traces[trace]
	units, err := m.intents.Vectors(ctx, 0, []string{t.id})
	if err == nil && t.parts > 1 {
		ids := make([]string, t.parts)
		for i := range ids {
			ids[i] = partID(t.id, i)
		}
		parts, err := m.parts.Vectors(ctx, 0, ids)
		return append(units, parts...), err
	}
	return units, err
}

// nearTo returns the nearness of tools to an intent, given the vectors of the intent and of
// its parts: Candidate.Hybrid without keywords, 0 for a tool without vectors.
func (x *Index) nearTo(ctx context.Context, units [][]float32, ids []string) ([]float64, error) {
	whole, part := make([]float64, len(ids)), make([]float64, len(ids))
	for n, vector := range units {
		h := legs.Hits{Cosines: []map[string]float64{{}, {}}}
		if err := x.legs.Complete(ctx, &h, vector, ids); err != nil {
			return nil, fmt.Errorf("comparing tools: %w", err)
		}
		for i, id := range ids {
			var l Leg
			if l.setCosines(&h, id); n == 0 {
				whole[i] = l.nearness()
			} else {
				part[i] = max(part[i], l.nearness())
			}
		}
	}
	if len(units) > 1 {
		for i := range whole {
			whole[i] = (whole[i] + partWeight*part[i]) / (1 + partWeight)
		}
	}
	return whole, nil
}

// nearest is the number of hits of each vector search among which nearestTo looks for the
// nearest tool.
const nearest = 3

// nearestTo returns the nearness of the nearest of all tools to an intent, given the
// vectors of the intent and of its parts.
func (x *Index) nearestTo(ctx context.Context, units [][]float32) (float64, error) {
	h, err := x.legs.Search(ctx, query.Query{}, units[0], nearest)
	if err != nil {
		return 0, fmt.Errorf("searching tools: %w", err)
	}
	maps.Copy(h.Cosines[0], h.Cosines[1])
	near, err := x.nearTo(ctx, units, slices.Collect(maps.Keys(h.Cosines[0])))
	best := 0.0
	for _, v := range near {
		best = max(best, v)
	}
	return best, err
}
