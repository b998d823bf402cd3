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

// partBytes is how much of a record or a text one point holds.
const partBytes = 1 << 20

// Records are small named values that processes change one after the other:
// every change names the version it was made from and fails when another came
// first. A value has one point, or one for each part and one for the whole.
//
//	record, version, parts, value, token, earlier
//	        the whole: value is base64, or empty when there are parts;
//	        token was drawn by who wrote it, earlier are those of the
//	        versions before, the newest last
//	record, part, value
//	        part n, under an id made of the name, the token and n
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
	if err := r.client.check(ctx); err != nil {
		return nil, 0, fmt.Errorf("reading record %s: %w", name, err)
	}
	// A part that is missing has been replaced since the whole was read.
	for range 3 {
		var whole map[string]*pb.Value
		if whole, err = r.whole(ctx, name); err != nil || whole == nil {
			break
		}
		version = whole["version"].GetIntegerValue()
		if value, err = r.value(ctx, name, whole); err == nil {
			return value, version, nil
		}
	}
	if err != nil {
		return nil, 0, fmt.Errorf("reading record %s: %w", name, err)
	}
	return nil, 0, nil
}

// whole returns the payload of a record's point, nil when there is none.
func (r *Records) whole(ctx context.Context, name string) (map[string]*pb.Value, error) {
	points, err := r.points(ctx, []string{name}, pb.NewWithPayload(true))
	if err != nil || len(points) == 0 {
		return nil, err
	}
	return points[0].Payload, nil
}

// points returns the points of records, those that are there.
func (r *Records) points(ctx context.Context, names []string, payload *pb.WithPayloadSelector) (points []*pb.RetrievedPoint, err error) {
	ids := make([]string, len(names))
	for i, name := range names {
		ids[i] = "record:" + name
	}
	err = r.client.read(ctx, func(ctx context.Context) error {
		// The majority is asked, lest a replica that was away answers with what it knew.
		got, err := r.client.grpc.Points().Get(ctx, &pb.GetPoints{
			CollectionName: r.name, Ids: pointIDs(ids), WithPayload: payload,
			ReadConsistency: pb.NewReadConsistencyType(pb.ReadConsistencyType_Majority),
		})
		points = got.GetResult()
		return err
	})
	if status.Code(err) == codes.NotFound { // whoever writes first makes the collection
		return nil, nil
	}
	return points, err
}

func partName(name, token string, n int) string { return fmt.Sprintf("part:%s:%s:%d", name, token, n) }

// value puts a record's value together.
func (r *Records) value(ctx context.Context, name string, whole map[string]*pb.Value) ([]byte, error) {
	parts := int(whole["parts"].GetIntegerValue())
	if parts == 0 {
		return base64.StdEncoding.DecodeString(whole["value"].GetStringValue())
	}
	var value []byte
	for n := range parts {
		var text *string
		err := r.client.read(ctx, func(ctx context.Context) error {
			got, err := r.client.grpc.Points().Get(ctx, &pb.GetPoints{
				CollectionName: r.name, Ids: pointIDs([]string{partName(name, whole["token"].GetStringValue(), n)}), WithPayload: pb.NewWithPayload(true),
			})
			for _, p := range got.GetResult() {
				text = pb.PtrOf(p.Payload["value"].GetStringValue())
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if text == nil {
			return nil, fmt.Errorf("part %d of %d is missing", n+1, parts)
		}
		part, err := base64.StdEncoding.DecodeString(*text)
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", n+1, err)
		}
		value = append(value, part...)
	}
	return value, nil
}

// Put replaces version from of a record, 0 for one that is not there yet, and
// returns the new version. It fails with ErrConflict, wrapped, when the record
// has another version by then. The condition is checked by the server, within
// the write.
func (r *Records) Put(ctx context.Context, name string, value []byte, from int64) (int64, error) {
	version, err := r.put(ctx, name, value, from)
	if err != nil {
		return 0, fmt.Errorf("writing record %s: %w", name, err)
	}
	return version, nil
}

func (r *Records) put(ctx context.Context, name string, value []byte, from int64) (int64, error) {
	if err := r.start(ctx); err != nil {
		return 0, err
	}
	before, err := r.whole(ctx, name)
	if err != nil {
		return 0, err
	}
	if before["version"].GetIntegerValue() != from {
		return 0, ErrConflict
	}
	token := rand.Text()
	payload := map[string]*pb.Value{
		"record": pb.NewValueString(name), "version": pb.NewValueInt(from + 1), "token": pb.NewValueString(token), "parts": pb.NewValueInt(0),
	}
	earlier := append(slices.Clone(before["earlier"].GetListValue().GetValues()), pb.NewValueString(before["token"].GetStringValue()))
	payload["earlier"] = pb.NewValueFromList(earlier[max(0, len(earlier)-keptTokens):]...)
	var parts []*pb.PointStruct
	if len(value) <= partBytes {
		payload["value"] = pb.NewValueString(base64.StdEncoding.EncodeToString(value))
	} else {
		for n := 0; n*partBytes < len(value); n++ {
			piece := value[n*partBytes : min(len(value), (n+1)*partBytes)]
			parts = append(parts, bare(partName(name, token, n), map[string]*pb.Value{
				"record": pb.NewValueString(name), "part": pb.NewValueInt(int64(n)), "value": pb.NewValueString(base64.StdEncoding.EncodeToString(piece)),
			}))
		}
		payload["parts"] = pb.NewValueInt(int64(len(parts)))
	}
	for _, p := range parts { // each in a request of its own: together they may be too large for one
		if err := r.client.update(ctx, r.name, []*pb.PointStruct{p}, nil); err != nil {
			return 0, err
		}
	}
	request := &pb.UpsertPoints{
		CollectionName: r.name, Wait: pb.PtrOf(true), Points: []*pb.PointStruct{bare("record:"+name, payload)},
		// A point that is there changes only if it matches; one that is not is made.
		UpdateFilter: &pb.Filter{Must: []*pb.Condition{pb.NewMatchInt("version", from)}},
		Ordering:     &pb.WriteOrdering{Type: pb.WriteOrderingType_Strong},
	}
	if err := r.client.write(ctx, func(ctx context.Context) error {
		_, err := r.client.grpc.Points().Upsert(ctx, request)
		return err
	}); err != nil {
		return 0, err
	}
	// The answer does not say whether the condition held. Where it did, others
	// may have written since, each from what it had read.
	after, err := r.whole(ctx, name)
	if err != nil {
		return 0, err
	}
	if after["token"].GetStringValue() != token && !slices.ContainsFunc(after["earlier"].GetListValue().GetValues(), func(v *pb.Value) bool { return v.GetStringValue() == token }) {
		r.clean(ctx, name, token, len(parts))
		return 0, ErrConflict
	}
	r.clean(ctx, name, before["token"].GetStringValue(), int(before["parts"].GetIntegerValue()))
	return from + 1, nil
}

// clean removes the parts of a value that nobody needs any more. What a failure
// leaves lies there unused.
func (r *Records) clean(ctx context.Context, name, token string, parts int) {
	var old []string
	for n := range parts {
		old = append(old, partName(name, token, n))
	}
	if err := r.client.update(ctx, r.name, nil, old); err != nil {
		r.client.log.Warn("removing parts of an old record", "record", name, "error", err)
	}
}

// bare is a point without vectors.
func bare(name string, payload map[string]*pb.Value) *pb.PointStruct {
	return &pb.PointStruct{Id: pointID(name), Payload: payload, Vectors: pb.NewVectorsMap(map[string]*pb.Vector{})}
}
