package qdrant

import (
	"context"
	"fmt"
	"maps"
	"slices"

	pb "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// format names the layout of points and payloads. It changes whenever a
// collection written before would answer differently.
//
//	1: words and vectors in a collection each
//	2: a chunk is one point
const format = "2"

// MismatchError says that a collection was made for another model, dimension or format.
type MismatchError struct {
	Collection             string
	HaveModel, WantModel   string
	HaveDim, WantDim       int // of vectors; 0 where there are none
	HaveFormat, WantFormat string
}

func (e *MismatchError) Error() string {
	if e.HaveFormat != e.WantFormat {
		return fmt.Sprintf("collection %s has format %q, this version reads format %q; rebuild it with `cairn index --rebuild`, or choose another name", e.Collection, e.HaveFormat, e.WantFormat)
	}
	return fmt.Sprintf("collection %s was made with model %s of dimension %d, this is model %s of dimension %d; rebuild it with `cairn index --rebuild`, or choose another name",
		e.Collection, e.HaveModel, e.HaveDim, e.WantModel, e.WantDim)
}

// shape is what a collection of ours is made with.
type shape struct {
	dim       int // of the vectors of chunks; 0 where there are none
	model     string
	fields    map[string]pb.FieldType // the payload indexes
	unaliased bool                    // the name is the collection's own
}

// labelFields are the payload indexes of chunks: one for every filter.
var labelFields = map[string]pb.FieldType{
	"tags": pb.FieldType_FieldTypeKeyword, "priority": pb.FieldType_FieldTypeKeyword, "assignee": pb.FieldType_FieldTypeKeyword,
	"under": pb.FieldType_FieldTypeInteger,
}

// creation is the request that makes a collection of that shape.
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
		// The originals are read for the head of a search alone and lie on disk;
		// the bytes that every search reads are held in memory. The quantile
		// leaves out the outermost numbers, which would widen the steps.
		r.VectorsConfig = pb.NewVectorsConfigMap(map[string]*pb.VectorParams{denseVector: {Size: uint64(s.dim), Distance: pb.Distance_Cosine, OnDisk: pb.PtrOf(true)}})
		r.QuantizationConfig = pb.NewQuantizationScalar(&pb.ScalarQuantization{Type: pb.QuantizationType_Int8, Quantile: pb.PtrOf(float32(0.99)), AlwaysRam: pb.PtrOf(true)})
		r.SparseVectorsConfig = pb.NewSparseVectorsConfig(map[string]*pb.SparseVectorParams{wordsVector: {Modifier: pb.PtrOf(pb.Modifier_Idf)}})
	}
	return r
}

// first makes the first generation of a collection unless the alias has one.
// Several processes may do so at a time.
func (c *Client) first(ctx context.Context, alias string, s shape) error {
	if err := c.check(ctx); err != nil {
		return err
	}
	_, err := c.describe(ctx, alias)
	if status.Code(err) != codes.NotFound {
		return c.fits(ctx, alias, s, err)
	}
	if s.unaliased {
		if err := c.create(ctx, alias, s); err != nil {
			return err
		}
		return c.fits(ctx, alias, s, nil)
	}
	name := alias + "-1"
	if err := c.create(ctx, name, s); err != nil {
		return err
	}
	if err := c.alias(ctx, map[string]string{alias: name}); err != nil {
		return err
	}
	return c.fits(ctx, alias, s, nil)
}

// fits compares a collection with the shape it should have. err is from an
// earlier look and comes first.
func (c *Client) fits(ctx context.Context, name string, s shape, err error) error {
	if err != nil {
		return err
	}
	info, err := c.describe(ctx, name)
	if err != nil {
		return err
	}
	meta := info.GetConfig().GetMetadata()
	e := &MismatchError{
		Collection: name, HaveModel: meta["cairn_model"].GetStringValue(), WantModel: s.model, WantDim: s.dim,
		HaveDim:    int(info.GetConfig().GetParams().GetVectorsConfig().GetParamsMap().GetMap()[denseVector].GetSize()),
		HaveFormat: meta["cairn_format"].GetStringValue(), WantFormat: format,
	}
	if e.HaveModel != e.WantModel || e.HaveDim != e.WantDim || e.HaveFormat != e.WantFormat {
		return e
	}
	return nil
}

func (c *Client) describe(ctx context.Context, name string) (*pb.CollectionInfo, error) {
	r, err := read(ctx, c, c.grpc.Collections().Get, &pb.GetCollectionInfoRequest{CollectionName: name})
	return r.GetResult(), err
}

// create makes a collection with its payload indexes. One that exists, because
// another process is as far or an earlier attempt was cut short, is completed.
func (c *Client) create(ctx context.Context, name string, s shape) error {
	if err := write(ctx, c, c.grpc.Collections().Create, c.creation(name, s), codes.AlreadyExists); err != nil {
		return fmt.Errorf("making collection %s: %w", name, err)
	}
	for _, field := range slices.Sorted(maps.Keys(s.fields)) {
		r := &pb.CreateFieldIndexCollection{CollectionName: name, Wait: pb.PtrOf(true), FieldName: field, FieldType: pb.PtrOf(s.fields[field])}
		if err := write(ctx, c, c.grpc.Points().CreateFieldIndex, r); err != nil {
			return fmt.Errorf("indexing field %s of collection %s: %w", field, name, err)
		}
	}
	return nil
}

// alias points aliases at collections, all in one operation.
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

// aliases returns what every alias of the server points at.
func (c *Client) aliases(ctx context.Context) (map[string]string, error) {
	all := map[string]string{}
	r, err := read(ctx, c, c.grpc.Collections().ListAliases, &pb.ListAliasesRequest{})
	for _, a := range r.GetAliases() {
		all[a.AliasName] = a.CollectionName
	}
	return all, err
}

// drop deletes a collection; one that is not there is no error.
func (c *Client) drop(ctx context.Context, name string) error {
	return write(ctx, c, c.grpc.Collections().Delete, &pb.DeleteCollection{CollectionName: name}, codes.NotFound)
}
