package toolbox

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"

	"cairn/graphrank"
	"cairn/internal/base/testutil"
	"cairn/internal/toolbox/usage"
)

// counted is an observation of one edge, or a read of its count.
type counted struct {
	edge  int
	adds  bool
	count float64 // read
}

// counts is the specification: the count of an edge is the number of observations.
var counts = porcupine.Model{
	Partition: testutil.PartitionBy(func(op counted) int { return op.edge }),
	Init:      func() any { return 0.0 },
	Step: func(state, input, _ any) (bool, any) {
		if op := input.(counted); !op.adds {
			return op.count == state.(float64), state
		}
		return true, state.(float64) + 1
	},
}

var edgesToCount = []usage.Observation{{From: "a", To: "b"}, {From: "b", To: "c"}}

// TestUsageIsLinearizable: processes that observe and read the same edges agree on the
// counts, each observation counts once, also while the owner of the records ends and
// another process takes over.
func TestUsageIsLinearizable(t *testing.T) {
	root := t.TempDir()
	var clock atomic.Int64
	var mu sync.Mutex
	var history []porcupine.Operation
	var processes sync.WaitGroup
	for p := range 4 {
		processes.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(p)))
			for range 12 { // lives of the process
				box, err := openBox(t.Context(), root, Options{HalfLife: -1})
				if err != nil {
					t.Error(err)
					return
				}
				var graph Graph
				for range 1 + r.IntN(12) {
					op := counted{edge: r.IntN(len(edgesToCount)), adds: r.IntN(2) == 0}
					edge := edgesToCount[op.edge]
					call := clock.Add(1)
					if op.adds {
						_, err = ObserveOp.Call(t.Context(), box.Folder, usage.Change{Observations: []usage.Observation{edge}}, nil)
					} else {
						err = graph.Read(t.Context(), box.Folder, func(g *graphrank.Graph) {
							e, _ := g.Edge(edge.From, edge.To)
							op.count = e.Count
						})
					}
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					history = append(history, porcupine.Operation{ClientId: p, Input: op, Call: call, Output: op, Return: clock.Add(1)})
					mu.Unlock()
				}
				if err := box.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	processes.Wait()
	if !porcupine.CheckOperations(counts, history) {
		t.Errorf("the history of %d operations is not linearizable", len(history))
	}
}
