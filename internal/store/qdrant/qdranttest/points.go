package qdranttest

import (
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"
	pb "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// point is one stored point. It is replaced, not changed.
type point struct {
	id      string // as text: a number or a UUID
	pid     *pb.PointId
	payload map[string]*pb.Value
	dense   []float32          // nil for none
	sparse  map[uint32]float32 // nil for none
	rounded []float32          // dense as quantised
}

// collection is one collection with a single shard. Its points have at most one dense and
// one sparse vector.
type collection struct {
	server            *Server
	created           *pb.CreateCollection
	denseName, sparse string // of the vectors; "" for none
	size              int    // of the dense vector
	quantised         bool

	mu      sync.RWMutex
	points  map[string]*point
	indexes map[string]pb.FieldType

	// The range of the quantised numbers is recomputed whenever the collection has doubled, as
	// the engine's optimiser rebuilds segments.
	low, step  float32
	calibrated int // number of points at the last calibration
}

func newCollection(r *pb.CreateCollection) (*collection, error) {
	c := &collection{created: proto.CloneOf(r), points: map[string]*point{}, indexes: map[string]pb.FieldType{}}
	c.quantised = r.QuantizationConfig.GetScalar() != nil
	dense, sparse := r.VectorsConfig.GetParamsMap().GetMap(), r.SparseVectorsConfig.GetMap()
	for name, p := range dense {
		if c.denseName, c.size = name, int(p.Size); p.Distance != pb.Distance_Cosine {
			return nil, invalid("the fake supports Cosine, not %s of %q", p.Distance, name)
		}
	}
	for name, p := range sparse {
		if c.sparse = name; p.GetModifier() != pb.Modifier_Idf {
			return nil, invalid("the fake supports the modifier Idf, not %s of %q", p.GetModifier(), name)
		}
	}
	if len(dense) > 1 || len(sparse) > 1 {
		return nil, invalid("the fake supports one dense and one sparse vector")
	}
	return c, nil
}

// idText returns the canonical text of an id.
func idText(id *pb.PointId) (string, error) {
	switch v := id.GetPointIdOptions().(type) {
	case *pb.PointId_Num:
		return strconv.FormatUint(v.Num, 10), nil
	case *pb.PointId_Uuid:
		u, err := uuid.Parse(v.Uuid)
		if err != nil {
			return "", invalid("Unable to parse UUID: %s", v.Uuid)
		}
		return u.String(), nil
	}
	return "", invalid("Empty ID is provided. ID must be either a UUID or a number")
}

func idTexts(ids []*pb.PointId) (map[string]bool, error) {
	set := make(map[string]bool, len(ids))
	for _, id := range ids {
		text, err := idText(id)
		if err != nil {
			return nil, err
		}
		set[text] = true
	}
	return set, nil
}

// newPoint checks a point as the engine does before it takes a batch.
func (c *collection) newPoint(id *pb.PointId, payload map[string]*pb.Value, vectors *pb.Vectors) (*point, error) {
	text, err := idText(id)
	out := &point{id: text, pid: id, payload: payload}
	for name, v := range vectors.GetVectors().GetVectors() {
		if err != nil {
			break
		}
		switch data := v.GetVector().(type) {
		case *pb.Vector_Dense:
			out.dense, err = c.unit(name, data.Dense.Data)
		case *pb.Vector_Sparse:
			out.sparse, err = c.weights(name, data.Sparse)
		default:
			err = invalid("the fake takes vectors as dense or sparse, got %T", data)
		}
	}
	return out, err
}

// unit returns what the engine stores for a dense vector: a unit vector.
func (c *collection) unit(name string, v []float32) ([]float32, error) {
	if name != c.denseName {
		return nil, invalid("Wrong input: Not existing vector name error: %s", name)
	}
	if len(v) != c.size {
		return nil, invalid("Wrong input: Vector dimension error: expected dim: %d, got %d", c.size, len(v))
	}
	length := float32(math.Sqrt(float64(dot(v, v))))
	out := slices.Clone(v)
	for i := range out {
		if length > math.SmallestNonzeroFloat32 {
			out[i] /= length
		}
	}
	return out, nil
}

// weights returns the weights of a sparse vector by index.
func (c *collection) weights(name string, v *pb.SparseVector) (map[uint32]float32, error) {
	weights := make(map[uint32]float32, len(v.Indices))
	switch {
	case name != c.sparse:
		return nil, invalid("Wrong input: Not existing vector name error: %s", name)
	case len(v.Indices) != len(v.Values):
		return nil, invalid("Validation error in body: [values: must be the same length as indices]")
	}
	for i, index := range v.Indices {
		weights[index] = v.Values[i]
	}
	if len(weights) != len(v.Indices) {
		return nil, invalid("Validation error in body: [indices: must be unique]")
	}
	return weights, nil
}

// chunkSize is how many points of a batch the engine applies before it lets
// readers in (UPDATE_OP_CHUNK_SIZE).
const chunkSize = 32

// apply calls fn with the items of a batch piece by piece, until it fails.
func apply[T any](c *collection, items []T, fn func(T) error) error {
	for piece := range slices.Chunk(items, chunkSize) {
		c.mu.Lock()
		for _, item := range piece {
			if err := fn(item); err != nil {
				c.mu.Unlock()
				return err
			}
		}
		c.mu.Unlock()
	}
	return nil
}

// Upsert implements pb.PointsServer. A batch is checked as a whole and applied
// piece by piece; searches see what is applied.
func (s *Server) Upsert(_ context.Context, r *pb.UpsertPoints) (*pb.PointsOperationResponse, error) {
	return s.write(r.CollectionName, r.Wait, func(c *collection) error {
		if len(r.Points) == 0 {
			return invalid("Validation error in body: [points: Empty update request]")
		}
		passes, err := c.matcher(r.UpdateFilter)
		if err != nil {
			return err
		}
		points := make([]*point, len(r.Points))
		for i, p := range r.Points {
			if points[i], err = c.newPoint(p.Id, p.Payload, p.Vectors); err != nil {
				return err
			}
		}
		return apply(c, points, func(p *point) error {
			if old := c.points[p.id]; old == nil || passes(old) {
				c.put(p)
			}
			return nil
		})
	})
}

// UpdateVectors implements pb.PointsServer: the named vectors of points take the
// place of those of the same name. The points have to exist.
func (s *Server) UpdateVectors(_ context.Context, r *pb.UpdatePointVectors) (*pb.PointsOperationResponse, error) {
	return s.write(r.CollectionName, r.Wait, func(c *collection) error {
		return apply(c, r.Points, func(update *pb.PointVectors) error {
			p, err := c.newPoint(update.Id, nil, update.Vectors)
			if err != nil {
				return err
			}
			old := c.points[p.id]
			if old == nil {
				return status.Errorf(codes.NotFound, "Not found: No point with id %s found", p.id)
			}
			if p.payload = old.payload; p.dense == nil {
				p.dense = old.dense
			}
			if p.sparse == nil {
				p.sparse = old.sparse
			}
			c.put(p)
			return nil
		})
	})
}

// Delete implements pb.PointsServer.
func (s pointsService) Delete(_ context.Context, r *pb.DeletePoints) (*pb.PointsOperationResponse, error) {
	return s.write(r.CollectionName, r.Wait, func(c *collection) error {
		selected := r.GetPoints().GetPoints()
		if selected == nil {
			return invalid("the fake deletes points by their ids")
		}
		ids, err := idTexts(selected.Ids)
		c.mu.Lock()
		defer c.mu.Unlock()
		maps.DeleteFunc(c.points, func(id string, _ *point) bool { return err == nil && ids[id] })
		return err
	})
}

// CreateFieldIndex implements pb.PointsServer.
func (s *Server) CreateFieldIndex(_ context.Context, r *pb.CreateFieldIndexCollection) (*pb.PointsOperationResponse, error) {
	return s.write(r.CollectionName, r.Wait, func(c *collection) error {
		if r.FieldName == "" || r.FieldType == nil {
			return invalid("field_name and field_type are required")
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.indexes[r.FieldName] = *r.FieldType
		return nil
	})
}

// Get implements pb.PointsServer.
func (s pointsService) Get(_ context.Context, r *pb.GetPoints) (*pb.GetResponse, error) {
	c, err := s.resolve(r.CollectionName)
	if err != nil {
		return nil, err
	}
	ids, err := idTexts(r.Ids)
	if err != nil {
		return nil, err
	}
	took := Measured.Call
	out := &pb.GetResponse{}
	c.mu.RLock()
	for id := range ids { // in no order, as the engine answers
		if p := c.points[id]; p != nil {
			out.Result = append(out.Result, c.retrieved(p, r.WithPayload, r.WithVectors))
			took += Measured.read(p, r.WithPayload)
		}
	}
	c.mu.RUnlock()
	s.spent.Add(int64(took))
	return out, nil
}

// found returns the points of a collection that pass a filter.
func (s *Server) found(name string, f *pb.Filter) (points []*point, c *collection, err error) {
	if c, err = s.resolve(name); err != nil {
		return nil, nil, err
	}
	passes, err := c.matcher(f)
	if err != nil {
		return nil, nil, err
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, p := range c.points {
		if passes(p) {
			points = append(points, p)
		}
	}
	return points, c, nil
}

// Count implements pb.PointsServer.
func (s *Server) Count(_ context.Context, r *pb.CountPoints) (*pb.CountResponse, error) {
	found, _, err := s.found(r.CollectionName, r.Filter)
	return &pb.CountResponse{Result: &pb.CountResult{Count: uint64(len(found))}}, err
}

// Scroll implements pb.PointsServer: points in the order of their ids.
func (s *Server) Scroll(_ context.Context, r *pb.ScrollPoints) (*pb.ScrollResponse, error) {
	found, c, err := s.found(r.CollectionName, r.Filter)
	if err == nil && r.Offset != nil {
		var from string
		from, err = idText(r.Offset)
		found = slices.DeleteFunc(found, func(p *point) bool { return p.id < from })
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b *point) int { return strings.Compare(a.id, b.id) })
	out := &pb.ScrollResponse{}
	for i, p := range found {
		if i == int(r.GetLimit()) {
			out.NextPageOffset = p.pid
			break
		}
		out.Result = append(out.Result, c.retrieved(p, r.WithPayload, r.WithVectors))
	}
	return out, nil
}

func (c *collection) retrieved(p *point, payload *pb.WithPayloadSelector, vectors *pb.WithVectorsSelector) *pb.RetrievedPoint {
	return &pb.RetrievedPoint{Id: p.pid, Payload: p.selected(payload), Vectors: c.vectors(p, vectors)}
}

// selected returns the selected part of the payload; none without a selector.
func (p *point) selected(sel *pb.WithPayloadSelector) map[string]*pb.Value {
	switch s := sel.GetSelectorOptions().(type) {
	case *pb.WithPayloadSelector_Enable:
		if s.Enable {
			return p.payload
		}
	case *pb.WithPayloadSelector_Include:
		out := map[string]*pb.Value{}
		for _, field := range s.Include.GetFields() {
			if v, ok := p.payload[field]; ok {
				out[field] = v
			}
		}
		return out
	}
	return nil
}

// vectors returns the selected vectors, nil if the point has none of them.
func (c *collection) vectors(p *point, sel *pb.WithVectorsSelector) *pb.VectorsOutput {
	named := map[string]*pb.VectorOutput{}
	for _, name := range sel.GetInclude().GetNames() {
		if name == c.denseName && p.dense != nil {
			named[name] = &pb.VectorOutput{Vector: &pb.VectorOutput_Dense{Dense: &pb.DenseVector{Data: p.dense}}}
		} else if name == c.sparse && p.sparse != nil {
			out := &pb.SparseVector{}
			for index, weight := range p.sparse {
				out.Indices, out.Values = append(out.Indices, index), append(out.Values, weight)
			}
			named[name] = &pb.VectorOutput{Vector: &pb.VectorOutput_Sparse{Sparse: out}}
		}
	}
	if len(named) == 0 {
		return nil
	}
	return &pb.VectorsOutput{VectorsOptions: &pb.VectorsOutput_Vectors{Vectors: &pb.NamedVectorsOutput{Vectors: named}}}
}
