package toolbox

import (
	"context"
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

// Backup calls fn with every record of the catalogue and the usage. Each part is a snapshot
// of one moment.
func (t *Toolbox) Backup(ctx context.Context, fn func(Line)) error {
	_, err := opBackup.Call(ctx, t.folder, struct{}{}, fn)
	return err
}

// Restore replaces the catalogue and the usage.
func (t *Toolbox) Restore(ctx context.Context, lines []Line) error {
	_, err := opRestore.Call(ctx, t.folder, lines, nil)
	return err
}

func (s *service) backup(ctx context.Context, _ struct{}, fn func(Line)) (struct{}, error) {
	for _, part := range slices.Sorted(maps.Keys(s.records)) {
		all, err := s.records[part].Since(ctx, 0)
		if err != nil {
			return struct{}{}, err
		}
		for _, r := range all.Records {
			fn(Line{part, r.Bucket, []byte(r.Key), r.Value})
		}
	}
	return struct{}{}, nil
}

func (s *service) restore(ctx context.Context, lines []Line, _ func(struct{})) (struct{}, error) {
	byPart := map[string][]records.Record{}
	for _, l := range lines {
		if s.records[l.Part] == nil {
			return struct{}{}, fmt.Errorf("the backup has an unknown part %q", l.Part)
		}
		byPart[l.Part] = append(byPart[l.Part], l.Record())
	}
	for part, store := range s.records {
		if err := records.Replace(ctx, store, byPart[part]); err != nil {
			return struct{}{}, fmt.Errorf("restoring the %s: %w", part, err)
		}
	}
	return struct{}{}, nil
}

// Exported is an entry of an export: a tool with its source, an edge or an intent.
type Exported struct {
	Source string        `json:"source,omitempty"`
	Tool   *catalog.Tool `json:"tool,omitempty"`
	usage.Exported
}

// Merged counts the changes of a Merge.
type Merged struct {
	Tools int `json:"tools"` // added, changed or removed
	Usage int `json:"usage"` // edges and intents
}

// Export calls fn with every tool, edge and intent.
func (t *Toolbox) Export(ctx context.Context, fn func(Exported)) error {
	_, err := opExport.Call(ctx, t.folder, struct{}{}, fn)
	return err
}

// Merge imports the entries of an Export. The tools of a source replace all tools of that
// source in the catalogue. An edge or intent replaces an existing one that was observed
// earlier.
func (t *Toolbox) Merge(ctx context.Context, list []Exported) (Merged, error) {
	return opMerge.Call(ctx, t.folder, list, nil)
}

func (s *service) export(_ context.Context, _ struct{}, fn func(Exported)) (struct{}, error) {
	tools, err := s.catalog.All()
	if err != nil {
		return struct{}{}, err
	}
	for i := range tools {
		t := &tools[i].Tool
		t.Takes, t.Gives = nil, nil // catalog.New derives them from the schemas
		fn(Exported{Source: tools[i].Source, Tool: t})
	}
	learnt, err := s.usage.Export()
	for _, x := range learnt {
		fn(Exported{Exported: x})
	}
	return struct{}{}, err
}

func (s *service) merge(ctx context.Context, list []Exported, _ func(struct{})) (m Merged, err error) {
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
