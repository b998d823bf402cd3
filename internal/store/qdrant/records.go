package qdrant

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	pb "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Records are small named values that processes change one after the other:
// every change names the version it was made from and fails when another came
// first. A value is one point:
//
//	record, version
//	value    base64
//	token    drawn by its writer
//	earlier  the tokens of the versions before, the newest last
type Records struct {
	client *Client
	name   string
	opened once
}

// keptTokens is how many writers may come between a write and the look at
// whether it held.
const keptTokens = 64

// ErrConflict says that a record has changed since it was read.
var ErrConflict = errors.New("another process has changed the record")

// Records returns the store's records.
func (c *Client) Records() *Records {
	return &Records{client: c, name: c.target.Collection + "-records"}
}

func (r *Records) start(ctx context.Context) error {
	return r.opened.do(func() error {
		if err := r.client.check(ctx); err != nil {
			return err
		}
		return r.client.create(ctx, r.name, shape{fields: map[string]pb.FieldType{"version": pb.FieldType_FieldTypeInteger}})
	})
}

// Get returns a record with its version, which counts from 1; version 0 and no
// value when there is none.
func (r *Records) Get(ctx context.Context, name string) (value []byte, version int64, err error) {
	err = r.client.check(ctx)
	var p map[string]*pb.Value
	if err == nil {
		p, err = r.payload(ctx, name)
	}
	if err == nil {
		value, err = base64.StdEncoding.DecodeString(p["value"].GetStringValue())
	}
	if err != nil {
		return nil, 0, fmt.Errorf("reading record %s: %w", name, err)
	}
	if p == nil {
		return nil, 0, nil
	}
	return value, p["version"].GetIntegerValue(), nil
}

// payload returns that of a record's point, nil when there is none.
func (r *Records) payload(ctx context.Context, name string) (payload map[string]*pb.Value, err error) {
	// The majority is asked, in case a replica that was away holds an older version.
	points, err := r.client.points(ctx, &pb.GetPoints{
		CollectionName: r.name, Ids: pointIDs([]string{"record:" + name}), WithPayload: pb.NewWithPayload(true),
		ReadConsistency: pb.NewReadConsistencyType(pb.ReadConsistencyType_Majority),
	})
	for _, p := range points {
		payload = p.Payload
	}
	if status.Code(err) == codes.NotFound { // the first writer makes the collection
		return nil, nil
	}
	return payload, err
}

// Put replaces version from of a record, 0 for a new one, and returns the new
// version. It fails with ErrConflict, wrapped, when the record has another version
// by then. The server checks the condition within the write.
func (r *Records) Put(ctx context.Context, name string, value []byte, from int64) (int64, error) {
	if err := r.put(ctx, name, value, from); err != nil {
		return 0, fmt.Errorf("writing record %s: %w", name, err)
	}
	return from + 1, nil
}

func (r *Records) put(ctx context.Context, name string, value []byte, from int64) error {
	if err := r.start(ctx); err != nil {
		return err
	}
	before, err := r.payload(ctx, name)
	if err != nil {
		return err
	}
	if before["version"].GetIntegerValue() != from {
		return ErrConflict
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
		return err
	}
	// The answer does not say whether the condition held. Where it did, others
	// may have written since, each from what it had read.
	after, err := r.payload(ctx, name)
	if err != nil {
		return err
	}
	isMine := func(v *pb.Value) bool { return v.GetStringValue() == token }
	if !isMine(after["token"]) && !slices.ContainsFunc(after["earlier"].GetListValue().GetValues(), isMine) {
		return ErrConflict
	}
	return nil
}

// bare is a point without vectors.
func bare(name string, payload map[string]*pb.Value) *pb.PointStruct {
	return &pb.PointStruct{Id: pointID(name), Payload: payload, Vectors: pb.NewVectorsMap(map[string]*pb.Vector{})}
}
