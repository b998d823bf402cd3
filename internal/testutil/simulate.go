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

// Simulate runs a simulation with a virtual clock for each of 20 seeds, until one fails.
// CAIRN_SEEDS is how many seeds to run instead, from CAIRN_SEED or 1; CAIRN_SEED alone
// repeats one.
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

// Chance is what is random in a simulation. It is safe for concurrent use.
type Chance struct {
	Seed uint64

	mu    sync.Mutex
	calls map[string]uint64 // by what random depends on
}

// Of returns a source of random numbers for the nth time that something happens, so
// that it does not depend on the order in which goroutines run.
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
