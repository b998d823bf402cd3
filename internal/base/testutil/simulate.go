package testutil

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
)

// Simulate runs a simulation with a virtual clock for 20 seeds from 1 on, until one fails.
// CAIRN_SEEDS sets the number of seeds, CAIRN_SEED the first; CAIRN_SEED alone repeats one.
func Simulate(t *testing.T, run func(t *testing.T, c *Chance)) {
	t.Helper()
	first, seeds := uint64(1), uint64(20)
	if text := os.Getenv("CAIRN_SEED"); text != "" {
		first, _ = strconv.ParseUint(text, 10, 64)
		seeds = 1
	}
	if text := os.Getenv("CAIRN_SEEDS"); text != "" {
		seeds, _ = strconv.ParseUint(text, 10, 64)
	}
	for seed := first; seed < first+seeds; seed++ {
		synctest.Test(t, func(t *testing.T) { run(t, &Chance{Seed: seed, calls: map[string]uint64{}}) })
		if t.Failed() {
			t.Fatalf("repeat this with CAIRN_SEED=%d", seed)
		}
	}
	t.Logf("%d seeds from %d", seeds, first)
}

// Chance is the source of randomness of a simulation. It is safe for concurrent use.
type Chance struct {
	Seed uint64

	mu    sync.Mutex
	calls map[string]uint64 // number of calls of Of, by argument
}

// Of returns a source of random numbers that depends on what and on the number of earlier
// calls with it, but not on the order in which goroutines run.
func (c *Chance) Of(what ...any) *rand.Rand {
	key := fmt.Sprint(what...)
	c.mu.Lock()
	c.calls[key]++
	n := c.calls[key]
	c.mu.Unlock()
	h := fnv.New64a()
	h.Write([]byte(key))
	return rand.New(rand.NewPCG(c.Seed^h.Sum64(), n))
}
