package toolbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/records"
	"cairn/internal/toolbox/usage"
)

// Parts of a backup.
const (
	catalogPart = "catalogue"
	usagePart   = "usage"
)

// Parts returns the names of the parts.
func Parts() []string { return []string{catalogPart, usagePart} }

// Line is a record of a part in a backup.
type Line struct {
	Part   string `json:"part,omitempty"`
	Bucket string `json:"bucket,omitempty"`
	Key    []byte `json:"key,omitempty"`
	Value  []byte `json:"value,omitempty"`
}

// Record returns the record of a line.
func (l Line) Record() records.Record {
	return records.Record{Bucket: l.Bucket, Key: string(l.Key), Value: append([]byte{}, l.Value...)}
}

// backup calls fn with every record of the catalogue and the usage. Each part is a snapshot
// of one moment.
func (s *Toolbox) backup(ctx context.Context, _ none, fn func(Line)) (none, error) {
	for _, part := range slices.Sorted(maps.Keys(s.records)) {
		all, err := s.records[part].Since(ctx, 0)
		if err != nil {
			return none{}, err
		}
		for _, r := range all.Records {
			fn(Line{part, r.Bucket, []byte(r.Key), r.Value})
		}
	}
	return none{}, nil
}

// restore replaces the catalogue and the usage: both or, after an error, none.
func (s *Toolbox) restore(ctx context.Context, lines []Line) (_ none, err error) {
	byPart := map[string][]records.Record{}
	for _, l := range lines {
		if s.records[l.Part] == nil {
			return none{}, fmt.Errorf("the backup has an unknown part %q", l.Part)
		}
		byPart[l.Part] = append(byPart[l.Part], l.Record())
	}
	for _, part := range slices.Sorted(maps.Keys(s.records)) {
		store := s.records[part]
		var before records.Changes
		if before, err = store.Since(ctx, 0); err == nil {
			err = records.Replace(ctx, store, byPart[part])
		}
		if err != nil {
			return none{}, fmt.Errorf("restoring the %s: %w", part, err)
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, records.Replace(context.WithoutCancel(ctx), store, before.Records))
			}
		}()
	}
	return none{}, nil
}

// Exported is an entry of an export: a tool with its source, an edge or an intent.
type Exported struct {
	Source string        `json:"source,omitempty"`
	Tool   *catalog.Tool `json:"tool,omitempty"`
	usage.Exported
}

// Merged counts the changes of MergeOp.
type Merged struct {
	Tools int `json:"tools"` // added, changed or removed
	Usage int `json:"usage"` // edges and intents
}

// export calls fn with every tool, edge and intent.
func (s *Toolbox) export(_ context.Context, _ none, fn func(Exported)) (none, error) {
	tools, err := s.catalog.Snapshot()
	if err != nil {
		return none{}, err
	}
	for source, t := range tools.All() {
		t.Takes, t.Gives = nil, nil // catalog.New derives them from the schemas
		fn(Exported{Source: source, Tool: &t})
	}
	learnt, err := s.usage.Export()
	for _, x := range learnt {
		fn(Exported{Exported: x})
	}
	return none{}, err
}

// merge imports the entries of an export. The tools of a source replace all tools of that
// source in the catalogue. An edge or intent replaces an existing one that was observed
// earlier.
func (s *Toolbox) merge(ctx context.Context, list []Exported) (m Merged, err error) {
	bySource := map[string][]catalog.Tool{}
	var learnt []usage.Exported
	for i, x := range list {
		if x.Tool == nil {
			learnt = append(learnt, x.Exported)
			continue
		}
		t, err := catalog.New(*x.Tool)
		if err != nil {
			return m, fmt.Errorf("entry %d: %w", i+1, err)
		}
		bySource[x.Source] = append(bySource[x.Source], t)
	}
	for _, source := range slices.Sorted(maps.Keys(bySource)) {
		d, err := s.catalog.Import(source, bySource[source])
		if err != nil {
			return m, err
		}
		m.Tools += len(d.Added) + len(d.Changed) + len(d.Removed)
	}
	m.Usage, err = s.usage.Merge(ctx, learnt)
	return m, err
}
