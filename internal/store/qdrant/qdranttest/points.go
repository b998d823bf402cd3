package qdranttest

import (
	"context"
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
	dense   map[string][]float32
	sparse  map[string]map[uint32]float32
	codes   map[string]*code
}

// collection is one collection with a single shard.
type collection struct {
	server  *Server
	created *pb.CreateCollection
	dense   map[string]*pb.VectorParams
	sparse  map[string]*pb.SparseVectorParams

	mu       sync.RWMutex
	points   map[string]*point
	indexes  map[string]pb.FieldType
	postings map[string]map[uint32]map[string]float32 // vector name, index, point
	sparsely map[string]int                           // points that have a sparse vector, by its name
	quantiser
}

func newCollection(r *pb.CreateCollection) (*collection, error) {
	c := &collection{
		created: proto.Clone(r).(*pb.CreateCollection), dense: map[string]*pb.VectorParams{}, sparse: map[string]*pb.SparseVectorParams{},
		points: map[string]*point{}, indexes: map[string]pb.FieldType{}, postings: map[string]map[uint32]map[string]float32{}, sparsely: map[string]int{},
	}
	if p := r.VectorsConfig.GetParams(); p != nil {
		c.dense[""] = p
	}
	for name, p := range r.VectorsConfig.GetParamsMap().GetMap() {
		c.dense[name] = p
	}
	for name, p := range r.SparseVectorsConfig.GetMap() {
		if _, ok := c.dense[name]; ok {
			return nil, invalid("Wrong input: Dense and sparse vector names must be unique - duplicate found with '%s'", name)
		}
		c.sparse[name] = p
		c.postings[name] = map[uint32]map[string]float32{}
	}
	for name, p := range c.dense {
		if p.Size < 1 || p.Size > 65536 {
			return nil, invalid("Validation error in body: [vectors.size: value %d invalid, must be from 1 to 65536]", p.Size)
		}
		if p.Distance != pb.Distance_Cosine && p.Distance != pb.Distance_Dot {
			return nil, invalid("the fake knows Cosine and Dot, not %s of %q", p.Distance, name)
		}
	}
	if q := r.QuantizationConfig.GetScalar(); q != nil && q.Quantile != nil && (*q.Quantile < 0.5 || *q.Quantile > 1) {
		return nil, invalid("Validation error in body: [quantization_config.scalar.quantile: value %v invalid, must be from 0.5 to 1.0]", *q.Quantile)
	}
	for _, n := range []*uint32{r.ShardNumber, r.ReplicationFactor, r.WriteConsistencyFactor} {
		if n != nil && *n < 1 {
			return nil, invalid("Validation error in body: [value 0 invalid, must be 1 or larger]")
		}
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
func (c *collection) newPoint(p *pb.PointStruct) (*point, error) {
	id, err := idText(p.Id)
	if err != nil {
		return nil, err
	}
	out := &point{id: id, pid: p.Id, payload: p.Payload, dense: map[string][]float32{}, sparse: map[string]map[uint32]float32{}, codes: map[string]*code{}}
	named := map[string]*pb.Vector{}
	switch v := p.GetVectors().GetVectorsOptions().(type) {
	case *pb.Vectors_Vector:
		named[""] = v.Vector
	case *pb.Vectors_Vectors:
		named = v.Vectors.GetVectors()
	case nil:
		return nil, invalid("Expected some vectors")
	}
	for name, v := range named {
		switch data := v.GetVector().(type) {
		case *pb.Vector_Dense:
			params, ok := c.dense[name]
			if !ok {
				return nil, invalid("Wrong input: Not existing vector name error: %s", name)
			}
			if len(data.Dense.Data) != int(params.Size) {
				return nil, invalid("Wrong input: Vector dimension error: expected dim: %d, got %d", params.Size, len(data.Dense.Data))
			}
			out.dense[name] = normalised(data.Dense.Data, params.Distance)
		case *pb.Vector_Sparse:
			if _, ok := c.sparse[name]; !ok {
				return nil, invalid("Wrong input: Not existing vector name error: %s", name)
			}
			if out.sparse[name], err = sparseVector(data.Sparse.Indices, data.Sparse.Values); err != nil {
				return nil, err
			}
		default:
			return nil, invalid("the fake takes vectors as dense or sparse, got %T", data)
		}
	}
	for key, v := range p.Payload {
		if v == nil || v.Kind == nil {
			return nil, invalid("Malformed payload value of %q", key)
		}
	}
	return out, nil
}

func sparseVector(indices []uint32, values []float32) (map[uint32]float32, error) {
	if len(indices) != len(values) {
		return nil, invalid("Validation error in body: [values: must be the same length as indices]")
	}
	v := make(map[uint32]float32, len(indices))
	for i, index := range indices {
		if _, ok := v[index]; ok {
			return nil, invalid("Validation error in body: [indices: must be unique]")
		}
		v[index] = values[i]
	}
	return v, nil
}

// normalised returns what the engine stores: unit vectors for cosine.
func normalised(v []float32, d pb.Distance) []float32 {
	out := slices.Clone(v)
	if d != pb.Distance_Cosine {
		return out
	}
	sum := float32(0)
	for _, x := range v {
		sum += x * x
	}
	if length := float32(math.Sqrt(float64(sum))); length > math.SmallestNonzeroFloat32 {
		for i := range out {
			out[i] /= length
		}
	}
	return out
}

// chunkSize is how many points of a batch the engine applies before it lets
// readers in (UPDATE_OP_CHUNK_SIZE).
const chunkSize = 32

// Upsert implements pb.PointsServer. A batch is checked as a whole and applied
// piece by piece; searches see what is applied.
func (s *Server) Upsert(_ context.Context, r *pb.UpsertPoints) (*pb.PointsOperationResponse, error) {
	c, err := s.resolve(r.CollectionName)
	if err != nil {
		return nil, err
	}
	if len(r.Points) == 0 && r.UpdateFilter == nil {
		return nil, invalid("Validation error in body: [points: Empty update request]")
	}
	if err := c.checkFilter(r.UpdateFilter); err != nil {
		return nil, err
	}
	return write(r.Wait, func() error {
		points := make([]*point, len(r.Points))
		for i, p := range r.Points {
			var err error
			if points[i], err = c.newPoint(p); err != nil {
				return err
			}
		}
		passes := matcher(r.UpdateFilter)
		for piece := range slices.Chunk(points, chunkSize) {
			c.mu.Lock()
			for _, p := range piece {
				if old := c.points[p.id]; old == nil || passes(old) {
					c.put(p)
				}
			}
			c.mu.Unlock()
		}
		return nil
	})
}

// UpdateVectors implements pb.PointsServer: the named vectors of points take the
// place of those of the same name. The points have to exist.
func (s *Server) UpdateVectors(_ context.Context, r *pb.UpdatePointVectors) (*pb.PointsOperationResponse, error) {
	c, err := s.resolve(r.CollectionName)
	if err != nil {
		return nil, err
	}
	return write(r.Wait, func() error {
		for piece := range slices.Chunk(r.Points, chunkSize) {
			c.mu.Lock()
			for _, update := range piece {
				p, err := c.newPoint(&pb.PointStruct{Id: update.Id, Vectors: update.Vectors})
				if err == nil && c.points[p.id] == nil {
					err = status.Errorf(codes.NotFound, "Not found: No point with id %s found", p.id)
				}
				if err != nil {
					c.mu.Unlock()
					return err
				}
				old := c.points[p.id]
				p.payload = old.payload
				for name, v := range old.dense {
					if _, ok := p.dense[name]; !ok {
						p.dense[name] = v
					}
				}
				for name, v := range old.sparse {
					if _, ok := p.sparse[name]; !ok {
						p.sparse[name] = v
					}
				}
				c.put(p)
			}
			c.mu.Unlock()
		}
		return nil
	})
}

// put replaces a point. c.mu is held.
func (c *collection) put(p *point) {
	c.drop(p.id)
	c.points[p.id] = p
	for name, v := range p.sparse {
		c.sparsely[name]++
		for index, weight := range v {
			list := c.postings[name][index]
			if list == nil {
				list = map[string]float32{}
				c.postings[name][index] = list
			}
			list[p.id] = weight
		}
	}
	c.encode(p)
}

// drop removes a point. c.mu is held.
func (c *collection) drop(id string) {
	p := c.points[id]
	if p == nil {
		return
	}
	delete(c.points, id)
	for name, v := range p.sparse {
		c.sparsely[name]--
		for index := range v {
			delete(c.postings[name][index], id)
		}
	}
}

func (s *Server) deletePoints(r *pb.DeletePoints) (*pb.PointsOperationResponse, error) {
	c, err := s.resolve(r.CollectionName)
	if err != nil {
		return nil, err
	}
	var ids map[string]bool
	var filter *pb.Filter
	switch sel := r.GetPoints().GetPointsSelectorOneOf().(type) {
	case *pb.PointsSelector_Points:
		if ids, err = idTexts(sel.Points.GetIds()); err != nil {
			return nil, err
		}
	case *pb.PointsSelector_Filter:
		if filter = sel.Filter; filter == nil {
			return nil, invalid("PointsSelector is missing")
		}
		if err := c.checkFilter(filter); err != nil {
			return nil, err
		}
	default:
		return nil, invalid("PointsSelector is missing")
	}
	return write(r.Wait, func() error {
		passes := matcher(filter)
		c.mu.Lock()
		defer c.mu.Unlock()
		for id, p := range c.points {
			if ids[id] || filter != nil && passes(p) {
				c.drop(id)
			}
		}
		return nil
	})
}

// CreateFieldIndex implements pb.PointsServer.
func (s *Server) CreateFieldIndex(_ context.Context, r *pb.CreateFieldIndexCollection) (*pb.PointsOperationResponse, error) {
	c, err := s.resolve(r.CollectionName)
	if err != nil {
		return nil, err
	}
	if r.FieldName == "" || r.FieldType == nil {
		return nil, invalid("field_name and field_type are required")
	}
	return write(r.Wait, func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.indexes[r.FieldName] = *r.FieldType
		return nil
	})
}

func (s *Server) getPoints(r *pb.GetPoints) (*pb.GetResponse, error) {
	c, err := s.resolve(r.CollectionName)
	if err != nil {
		return nil, err
	}
	ids, err := idTexts(r.Ids)
	if err != nil {
		return nil, err
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	out := &pb.GetResponse{}
	for id := range ids { // in no order, as the engine answers
		if p := c.points[id]; p != nil {
			out.Result = append(out.Result, p.retrieved(r.WithPayload, r.WithVectors))
		}
	}
	return out, nil
}

// Count implements pb.PointsServer. A count that is not exact is an estimate.
func (s *Server) Count(_ context.Context, r *pb.CountPoints) (*pb.CountResponse, error) {
	c, err := s.resolve(r.CollectionName)
	if err != nil {
		return nil, err
	}
	if err := c.checkFilter(r.Filter); err != nil {
		return nil, err
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	n, passes := uint64(0), matcher(r.Filter)
	for _, p := range c.points {
		if passes(p) {
			n++
		}
	}
	if r.Exact != nil && !*r.Exact && r.Filter != nil {
		n += n/10 + 1
	}
	return &pb.CountResponse{Result: &pb.CountResult{Count: n}}, nil
}

// Scroll implements pb.PointsServer: points in the order of their ids, numbers first.
func (s *Server) Scroll(_ context.Context, r *pb.ScrollPoints) (*pb.ScrollResponse, error) {
	c, err := s.resolve(r.CollectionName)
	if err != nil {
		return nil, err
	}
	if err := c.checkFilter(r.Filter); err != nil {
		return nil, err
	}
	limit := 10
	if r.Limit != nil {
		if limit = int(*r.Limit); limit < 1 {
			return nil, invalid("Validation error in body: [limit: value 0 invalid, must be 1 or larger]")
		}
	}
	if r.OrderBy != nil {
		return nil, invalid("the fake scrolls by id alone")
	}
	from := ""
	if r.Offset != nil {
		if from, err = idText(r.Offset); err != nil {
			return nil, err
		}
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	var found []*point
	passes := matcher(r.Filter)
	for _, p := range c.points {
		if (from == "" || compareIDs(p.id, from) >= 0) && passes(p) {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b *point) int { return compareIDs(a.id, b.id) })
	out := &pb.ScrollResponse{}
	for i, p := range found {
		if i == limit {
			out.NextPageOffset = p.pid
			break
		}
		out.Result = append(out.Result, p.retrieved(r.WithPayload, r.WithVectors))
	}
	return out, nil
}

func compareIDs(a, b string) int {
	x, errA := strconv.ParseUint(a, 10, 64)
	y, errB := strconv.ParseUint(b, 10, 64)
	switch {
	case errA == nil && errB == nil && x != y:
		if x < y {
			return -1
		}
		return 1
	case errA == nil && errB != nil:
		return -1
	case errA != nil && errB == nil:
		return 1
	}
	return strings.Compare(a, b)
}

func (p *point) retrieved(payload *pb.WithPayloadSelector, vectors *pb.WithVectorsSelector) *pb.RetrievedPoint {
	return &pb.RetrievedPoint{Id: p.pid, Payload: p.selected(payload), Vectors: p.vectors(vectors)}
}

// selected returns the payload asked for: none unless it is.
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

func (p *point) vectors(sel *pb.WithVectorsSelector) *pb.VectorsOutput {
	enable := sel.GetEnable()
	include := sel.GetInclude().GetNames()
	if !enable && len(include) == 0 {
		return nil
	}
	named := map[string]*pb.VectorOutput{}
	for name, v := range p.dense {
		if enable || slices.Contains(include, name) {
			named[name] = &pb.VectorOutput{Vector: &pb.VectorOutput_Dense{Dense: &pb.DenseVector{Data: v}}}
		}
	}
	for name, v := range p.sparse {
		if enable || slices.Contains(include, name) {
			out := &pb.SparseVector{}
			for index, weight := range v {
				out.Indices, out.Values = append(out.Indices, index), append(out.Values, weight)
			}
			named[name] = &pb.VectorOutput{Vector: &pb.VectorOutput_Sparse{Sparse: out}}
		}
	}
	if v, ok := named[""]; ok && len(named) == 1 {
		return &pb.VectorsOutput{VectorsOptions: &pb.VectorsOutput_Vector{Vector: v}}
	}
	return &pb.VectorsOutput{VectorsOptions: &pb.VectorsOutput_Vectors{Vectors: &pb.NamedVectorsOutput{Vectors: named}}}
}
