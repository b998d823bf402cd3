package cards

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"

	"cairn/internal/base/testutil"
)

// register is a read or a write of the assignee of one card.
type register struct {
	id    string
	write bool
	value string // written or read
}

// assignees is the sequential specification: a card has the assignee last written.
var assignees = porcupine.Model{
	Partition: testutil.PartitionBy(func(op register) string { return op.id }),
	Init:      func() any { return "" },
	Step: func(state, input, _ any) (bool, any) {
		if op := input.(register); op.write {
			return true, op.value
		} else {
			return op.value == state.(string), state
		}
	},
}

// TestCardsAreLinearizable: processes that write and read the same cards at the same
// time agree on one order.
func TestCardsAreLinearizable(t *testing.T) {
	for _, size := range []int{3, 520} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			files := map[string]string{}
			for i := range size {
				files[fmt.Sprintf("t%05d", i)] = card("A title", "")
			}
			_, dir := board(t, nil, files)
			var clock atomic.Int64
			var mu sync.Mutex
			var history []porcupine.Operation
			var processes sync.WaitGroup
			for p := range 4 {
				s := openStore(t, dir, nil)
				processes.Go(func() {
					r := rand.New(rand.NewPCG(uint64(size), uint64(p)))
					for n := range 60 {
						op := register{id: fmt.Sprintf("t%05d", r.IntN(2)), write: r.IntN(3) == 0, value: fmt.Sprintf("p%d-%d", p, n)}
						call := clock.Add(1)
						if op.write {
							text, _ := json.Marshal(op.value)
							if _, err := s.Update(t.Context(), update(op.id, `{"assignee":`+string(text)+`}`)); err != nil {
								t.Error(err)
								return
							}
						} else {
							b, err := s.Board()
							if err != nil {
								t.Error(err)
								return
							}
							c, ok := b.Card(op.id)
							if !ok {
								t.Errorf("card %s is missing", op.id)
								return
							}
							op.value = c.Assignee
						}
						mu.Lock()
						history = append(history, porcupine.Operation{ClientId: p, Input: op, Call: call, Output: op, Return: clock.Add(1)})
						mu.Unlock()
					}
				})
			}
			processes.Wait()
			if !porcupine.CheckOperations(assignees, history) {
				t.Errorf("the history of %d operations is not linearizable", len(history))
			}
		})
	}
}
