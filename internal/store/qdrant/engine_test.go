package qdrant

import (
	"fmt"
	"strings"
	"testing"

	pb "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestEngine checks what the layout of chunks relies on. testdata/engine.py checks
// the same of Qdrant's engine.
func TestEngine(t *testing.T) {
	servers(t, func(t *testing.T, addr string) {
		c := dial(t, addr, nil)
		name := c.target.Collection + "-records" // removed at the end
		if err := c.create(background, name, shape{dim: 2}); err != nil {
			t.Fatal(err)
		}
		dense := func(x, y float32) *pb.Vector { return pb.NewVectorDense([]float32{x, y}) }
		words := func(indices []uint32, values ...float32) *pb.Vector { return pb.NewVectorSparse(indices, values) }
		point := func(id uint64, vectors map[string]*pb.Vector) *pb.PointStruct {
			return &pb.PointStruct{Id: pb.NewIDNum(id), Vectors: pb.NewVectorsMap(vectors)}
		}
		put := func(points ...*pb.PointStruct) {
			t.Helper()
			if err := (&collection{client: c, name: name}).update(background, points); err != nil {
				t.Fatal(err)
			}
		}
		want := func(what string, r *pb.QueryPoints, want string) {
			t.Helper()
			r.CollectionName = name
			if r.Limit == nil {
				r.Limit = pb.PtrOf(uint64(10))
			}
			found, err := c.query(background, r)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			var got []string
			for _, p := range found[0] {
				got = append(got, fmt.Sprintf("%d:%.4f", p.Id.GetNum(), p.Score))
			}
			if s := strings.Join(got, " "); s != want {
				t.Errorf("%s: %s, want %s", what, s, want)
			}
		}
		nearest := func() *pb.QueryPoints {
			return &pb.QueryPoints{Using: pb.PtrOf(denseVector), Query: pb.NewQueryDense([]float32{1, 0}), Params: exact()}
		}
		matching := func() *pb.QueryPoints {
			return &pb.QueryPoints{Using: pb.PtrOf(wordsVector), Query: pb.NewQuerySparse([]uint32{1, 2}, []float32{1, 1})}
		}
		put(
			point(1, map[string]*pb.Vector{denseVector: dense(1, 0), wordsVector: words([]uint32{1, 2}, .5, .5)}),
			point(2, map[string]*pb.Vector{denseVector: dense(0, 1), wordsVector: words([]uint32{1}, .9)}),
			point(3, map[string]*pb.Vector{wordsVector: words([]uint32{2}, .7)}),
			point(4, map[string]*pb.Vector{denseVector: dense(.6, .8)}),
			point(5, map[string]*pb.Vector{}),
		)
		want("nearest", nearest(), "1:1.0000 4:0.6000 2:0.0000")
		want("words", matching(), "1:0.4700 2:0.4230 3:0.3290")
		for _, n := range []uint64{2, 9} {
			r, m := nearest(), matching()
			r.Limit, r.Prefetch = pb.PtrOf(4*n), []*pb.PrefetchQuery{{Query: m.Query, Using: m.Using, Limit: &n}}
			want(fmt.Sprintf("cosines of %d by words", n), r, "1:1.0000 2:0.0000")
		}
		r, err := c.grpc.Points().Count(background, &pb.CountPoints{CollectionName: name, Exact: pb.PtrOf(true), Filter: &pb.Filter{Must: []*pb.Condition{pb.NewHasVector(denseVector)}}})
		if err != nil || r.GetResult().GetCount() != 3 {
			t.Errorf("points with a vector: %v, %v, want 3", r, err)
		}
		update := func(id uint64, values ...float32) error {
			_, err := c.grpc.Points().UpdateVectors(background, &pb.UpdatePointVectors{CollectionName: name, Wait: pb.PtrOf(true), Points: []*pb.PointVectors{
				{Id: pb.NewIDNum(id), Vectors: pb.NewVectorsMap(map[string]*pb.Vector{wordsVector: words([]uint32{1, 2}, values...)})},
			}})
			return err
		}
		if err := update(1, .1, .1); err != nil {
			t.Fatal(err)
		}
		want("other words", matching(), "2:0.4230 3:0.3290 1:0.0940")
		want("the same vectors", nearest(), "1:1.0000 4:0.6000 2:0.0000")
		put(point(1, map[string]*pb.Vector{wordsVector: words([]uint32{1}, .2)}))
		want("a point replaced", nearest(), "4:0.6000 2:0.0000")
		if err := update(77, 1, 1); status.Code(err) != codes.NotFound && !strings.Contains(fmt.Sprint(err), "No point with id 77") {
			t.Errorf("words of a point that does not exist: %v, want not found", err)
		}
	})
}
