package qdrant

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	pb "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
)

// format is the version of the layout of points and payloads. It changes whenever an
// existing collection would give other results.
//
//	1: words and vectors in separate collections
//	2: a chunk is one point
const format = "2"

// shape describes a collection.
type shape struct {
	dim       int // of the vectors of chunks; 0 for none
	model     string
	fields    map[string]pb.FieldType // payload indexes
	unaliased bool                    // the collection is used by its name, not by an alias
}

// collection is one collection of a store, by its name or its alias.
type collection struct {
	client *Client
	name   string
	shape  shape
	opened once
}

// Open creates the collection if it is missing, unless the client only reads. It fails if the
// collection has another model, dimension or format. Other methods call Open.
func (c *collection) Open(ctx context.Context) error {
	return c.opened.do(func() error { return c.client.first(ctx, c.name, c.shape) })
}

// get returns fields of the points that exist, in no particular order.
func (c *collection) get(ctx context.Context, ids []*pb.PointId, fields ...string) ([]*pb.RetrievedPoint, error) {
	return c.client.points(ctx, &pb.GetPoints{CollectionName: c.name, Ids: ids, WithPayload: pb.NewWithPayloadInclude(fields...)})
}

// fields returns fields of a point, all if none are named, or nil if there is no such point.
// It reads from a majority of replicas, since a replica that was offline may have an older
// version.
func (c *collection) fields(ctx context.Context, name string, fields ...string) (map[string]*pb.Value, error) {
	r := &pb.GetPoints{
		CollectionName: c.name, Ids: pointIDs([]string{name}), WithPayload: pb.NewWithPayload(true),
		ReadConsistency: pb.NewReadConsistencyType(pb.ReadConsistencyType_Majority),
	}
	if len(fields) > 0 {
		r.WithPayload = pb.NewWithPayloadInclude(fields...)
	}
	points, err := c.client.points(ctx, r)
	if err != nil || len(points) == 0 {
		return nil, err
	}
	return points[0].Payload, nil
}

// scrollPoints is the number of points per page of a scroll.
const scrollPoints = 1000

// scroll calls fn with fields of every point that passes a filter, until fn returns false.
func (c *collection) scroll(ctx context.Context, f *pb.Filter, fields []string, fn func(*pb.RetrievedPoint) bool) error {
	page := &pb.ScrollPoints{CollectionName: c.name, Filter: f, WithPayload: pb.NewWithPayloadInclude(fields...), Limit: pb.PtrOf(uint32(scrollPoints))}
	for {
		r, err := read(ctx, c.client, c.client.grpc.Points().Scroll, page)
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

// update upserts points, then deletes the points with the names.
func (c *collection) update(ctx context.Context, points []*pb.PointStruct, names ...string) error {
	for piece := range slices.Chunk(points, upsertPoints) {
		r := &pb.UpsertPoints{CollectionName: c.name, Wait: pb.PtrOf(true), Points: piece}
		if err := write(ctx, c.client, c.client.grpc.Points().Upsert, r); err != nil {
			return err
		}
	}
	for piece := range slices.Chunk(names, idsPerCall) {
		r := &pb.DeletePoints{CollectionName: c.name, Wait: pb.PtrOf(true), Points: pb.NewPointsSelectorIDs(pointIDs(piece))}
		if err := write(ctx, c.client, c.client.grpc.Points().Delete, r); err != nil {
			return err
		}
	}
	return nil
}

// labelFields are the payload indexes of chunks, one for each filter.
var labelFields = map[string]pb.FieldType{
	"tags": pb.FieldType_FieldTypeKeyword, "priority": pb.FieldType_FieldTypeKeyword, "assignee": pb.FieldType_FieldTypeKeyword,
	"under": pb.FieldType_FieldTypeInteger,
}

// creation returns the request that creates a collection.
func (c *Client) creation(name string, s shape) *pb.CreateCollection {
	r := &pb.CreateCollection{
		CollectionName: name, OnDiskPayload: pb.PtrOf(true), VectorsConfig: pb.NewVectorsConfigMap(map[string]*pb.VectorParams{}),
		Metadata: map[string]*pb.Value{
			"cairn_format": pb.NewValueString(format), "cairn_model": pb.NewValueString(s.model), "cairn_dimension": pb.NewValueInt(int64(s.dim)),
		},
	}
	for _, set := range []struct {
		from uint32
		to   **uint32
	}{{c.options.Shards, &r.ShardNumber}, {c.options.Replicas, &r.ReplicationFactor}, {c.options.WriteConsistency, &r.WriteConsistencyFactor}} {
		if set.from > 0 {
			*set.to = &set.from
		}
	}
	if s.dim > 0 {
		// Every search reads the quantised vectors, which are in memory. The original
		// vectors are only read for the head of the results and are on disk. The quantile
		// excludes outliers, which would make the steps of the quantisation larger.
		r.VectorsConfig = pb.NewVectorsConfigMap(map[string]*pb.VectorParams{denseVector: {Size: uint64(s.dim), Distance: pb.Distance_Cosine, OnDisk: pb.PtrOf(true)}})
		r.QuantizationConfig = pb.NewQuantizationScalar(&pb.ScalarQuantization{Type: pb.QuantizationType_Int8, Quantile: pb.PtrOf(float32(0.99)), AlwaysRam: pb.PtrOf(true)})
		r.SparseVectorsConfig = pb.NewSparseVectorsConfig(map[string]*pb.SparseVectorParams{wordsVector: {Modifier: pb.PtrOf(pb.Modifier_Idf)}})
	}
	return r
}

// first creates the first generation of a collection if the alias does not exist and the
// client may create it. It fails if the collection does not have the shape s.
func (c *Client) first(ctx context.Context, alias string, s shape) error {
	if err := c.check(ctx); err != nil {
		return err
	}
	info, err := c.describe(ctx, alias)
	if errors.Is(err, errMissing) && c.creates.Load() {
		name := alias
		if !s.unaliased {
			name += "-1"
		}
		if err = c.create(ctx, name, s); err == nil && !s.unaliased {
			err = c.alias(ctx, map[string]string{alias: name})
		}
		if err == nil {
			info, err = c.describe(ctx, alias) // of the first process that created it
		}
	}
	if err != nil {
		return err
	}
	meta := info.GetConfig().GetMetadata()
	const advice = "rebuild it with `cairn index --rebuild`, or choose another name"
	if have := meta["cairn_format"].GetStringValue(); have != format {
		return fmt.Errorf("collection %s has format %q, this version reads format %q; %s", alias, have, format, advice)
	}
	model := meta["cairn_model"].GetStringValue()
	dim := int(info.GetConfig().GetParams().GetVectorsConfig().GetParamsMap().GetMap()[denseVector].GetSize())
	if model != s.model || dim != s.dim {
		return fmt.Errorf("collection %s was made with model %s of dimension %d, this is model %s of dimension %d; %s", alias, model, dim, s.model, s.dim, advice)
	}
	return nil
}

func (c *Client) describe(ctx context.Context, name string) (*pb.CollectionInfo, error) {
	r, err := read(ctx, c, c.grpc.Collections().Get, &pb.GetCollectionInfoRequest{CollectionName: name})
	return r.GetResult(), err
}

// create creates a collection with its payload indexes. It completes an existing one,
// which another process is creating or an interrupted attempt has left.
func (c *Client) create(ctx context.Context, name string, s shape) error {
	if err := write(ctx, c, c.grpc.Collections().Create, c.creation(name, s), codes.AlreadyExists); err != nil {
		return fmt.Errorf("creating collection %s: %w", name, err)
	}
	for _, field := range slices.Sorted(maps.Keys(s.fields)) {
		r := &pb.CreateFieldIndexCollection{CollectionName: name, Wait: pb.PtrOf(true), FieldName: field, FieldType: pb.PtrOf(s.fields[field])}
		if err := write(ctx, c, c.grpc.Points().CreateFieldIndex, r); err != nil {
			return fmt.Errorf("indexing field %s of collection %s: %w", field, name, err)
		}
	}
	return nil
}

// alias sets the collections of aliases in one operation.
func (c *Client) alias(ctx context.Context, targets map[string]string) error {
	var actions []*pb.AliasOperations
	for _, alias := range slices.Sorted(maps.Keys(targets)) {
		actions = append(actions, pb.NewAliasCreate(alias, targets[alias]))
	}
	if err := write(ctx, c, c.grpc.Collections().UpdateAliases, &pb.ChangeAliases{Actions: actions}); err != nil {
		return fmt.Errorf("pointing %v at their collections: %w", slices.Sorted(maps.Keys(targets)), err)
	}
	return nil
}

// aliases returns the collection of each alias on the server.
func (c *Client) aliases(ctx context.Context) (map[string]string, error) {
	all := map[string]string{}
	r, err := read(ctx, c, c.grpc.Collections().ListAliases, &pb.ListAliasesRequest{})
	for _, a := range r.GetAliases() {
		all[a.AliasName] = a.CollectionName
	}
	return all, err
}

// drop deletes a collection if it exists.
func (c *Client) drop(ctx context.Context, name string) (err error) {
	defer wrap(&err, "removing collection %s", name)
	return write(ctx, c, c.grpc.Collections().Delete, &pb.DeleteCollection{CollectionName: name}, codes.NotFound)
}
