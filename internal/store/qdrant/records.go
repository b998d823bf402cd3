package qdrant

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"slices"

	pb "github.com/qdrant/go-client/qdrant"
)

// Records stores small named values with optimistic concurrency control: a change names
// the version that it is based on, and fails if the record has another version. A value
// is one point:
//
//	record, version
//	value    base64
//	token    random, chosen by the writer
//	earlier  tokens of previous versions, newest last
type Records struct{ collection }

// keptTokens is how many other writes may happen between a write and its check.
const keptTokens = 64

// ErrConflict reports that a record has changed since the caller read it.
var ErrConflict = errors.New("another process has changed the record")

// Records returns the store's records.
func (c *Client) Records() *Records {
	return &Records{collection{client: c, name: c.target.Collection + "-records"}}
}

// Open creates the collection if it is missing.
func (r *Records) Open(ctx context.Context) error {
	return r.opened.do(func() error {
		if err := r.client.check(ctx); err != nil {
			return err
		}
		return r.client.create(ctx, r.name, shape{fields: map[string]pb.FieldType{"version": pb.FieldType_FieldTypeInteger}})
	})
}

// Get returns the value of a record and its version, which counts from 1. If there is no
// such record, the version is 0.
func (r *Records) Get(ctx context.Context, name string) (value []byte, version int64, err error) {
	defer wrap(&err, "reading record %s", name)
	if err := r.client.check(ctx); err != nil {
		return nil, 0, err
	}
	p, err := r.payload(ctx, name)
	if p == nil || err != nil {
		return nil, 0, err
	}
	value, err = base64.StdEncoding.DecodeString(p["value"].GetStringValue())
	return value, p["version"].GetIntegerValue(), err
}

// payload returns the payload of a record's point, or nil if there is none.
func (r *Records) payload(ctx context.Context, name string) (map[string]*pb.Value, error) {
	payload, err := r.fields(ctx, "record:"+name)
	if errors.Is(err, errMissing) { // the first writer creates the collection
		return nil, nil
	}
	return payload, err
}

// Put replaces version from of a record (0 for a new record) and returns the new version.
// If the record has another version, the error wraps ErrConflict. The server checks the
// version within the write.
func (r *Records) Put(ctx context.Context, name string, value []byte, from int64) (version int64, err error) {
	defer wrap(&err, "writing record %s", name)
	if err := r.Open(ctx); err != nil {
		return 0, err
	}
	before, err := r.payload(ctx, name)
	if err != nil {
		return 0, err
	}
	if before["version"].GetIntegerValue() != from {
		return 0, ErrConflict
	}
	token := rand.Text()
	earlier := append(slices.Clone(before["earlier"].GetListValue().GetValues()), pb.NewValueString(before["token"].GetStringValue()))
	request := &pb.UpsertPoints{
		CollectionName: r.name, Wait: pb.PtrOf(true), Points: []*pb.PointStruct{bare("record:"+name, map[string]*pb.Value{
			"record": pb.NewValueString(name), "version": pb.NewValueInt(from + 1), "value": pb.NewValueString(base64.StdEncoding.EncodeToString(value)),
			"token": pb.NewValueString(token), "earlier": pb.NewValueFromList(earlier[max(0, len(earlier)-keptTokens):]...),
		})},
		// An existing point changes only if it matches; a new one is inserted.
		UpdateFilter: &pb.Filter{Must: []*pb.Condition{pb.NewMatchInt("version", from)}},
		Ordering:     &pb.WriteOrdering{Type: pb.WriteOrderingType_Strong},
	}
	if err := write(ctx, r.client, r.client.grpc.Points().Upsert, request); err != nil {
		return 0, err
	}
	// The reply does not tell whether the condition held. If it did, other processes may
	// have written later versions.
	after, err := r.payload(ctx, name)
	if err != nil {
		return 0, err
	}
	isMine := func(v *pb.Value) bool { return v.GetStringValue() == token }
	if !isMine(after["token"]) && !slices.ContainsFunc(after["earlier"].GetListValue().GetValues(), isMine) {
		return 0, ErrConflict
	}
	return from + 1, nil
}

// bare returns a point without vectors.
func bare(name string, payload map[string]*pb.Value) *pb.PointStruct {
	return &pb.PointStruct{Id: pointID(name), Payload: payload, Vectors: pb.NewVectorsMap(map[string]*pb.Vector{})}
}
