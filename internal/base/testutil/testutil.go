package testutil

import (
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"cairn/internal/base/home"
)

// Main runs the tests of a package with their own CAIRN_HOME, for TestMain.
func Main(m *testing.M) { os.Exit(Homed{m}.Run()) }

// Homed is a testing.M whose tests have their own CAIRN_HOME. Processes that the tests start
// share it.
type Homed struct{ *testing.M }

// inherited is the variable that holds the CAIRN_HOME which a test gave to this process.
const inherited = "CAIRN_TEST_HOME"

// Run implements testscript.TestingM.
func (m Homed) Run() int {
	if dir := os.Getenv(home.Variable); dir != "" && dir == os.Getenv(inherited) {
		return m.M.Run()
	}
	dir, err := os.MkdirTemp("", "cairn-home")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	os.Setenv(home.Variable, dir)
	os.Setenv(inherited, dir)
	return m.M.Run()
}

// Place returns the private directories of a folder.
func Place(t testing.TB, root string) home.Place {
	t.Helper()
	p, err := home.Of(root)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Await calls problem until it returns "". Only the deadline of the test bounds it: a busy
// machine makes the test slow, and what never happens fails it shortly before the deadline,
// with the last problem.
func Await(t *testing.T, problem func() string) {
	t.Helper()
	for text := problem(); text != ""; text = problem() {
		if deadline, ok := t.Deadline(); ok && time.Until(deadline) < 10*time.Second {
			t.Fatalf("until the deadline of the test: %s", text)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Few returns n, how often a test repeats something, or a tenth of it in a short run.
func Few(n int) int {
	if testing.Short() {
		return max(1, n/10)
	}
	return n
}

// Kills returns how many processes a test kills at random moments: CAIRN_KILLS, or Few(n) if
// it is not set.
func Kills(t *testing.T, n int) int {
	t.Helper()
	text := os.Getenv("CAIRN_KILLS")
	if text == "" {
		return Few(n)
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Linear reports an error if work on eight times the input takes more than 40 times the
// processor time; quadratic work takes 64 times. prepare returns the work on n or on n/8
// units. The garbage collector and other tests only make work take longer, so Linear takes
// the least of several measurements, and stops when they show that the work is linear.
func Linear(t testing.TB, name string, n int, prepare func(n int) func()) {
	t.Helper()
	small, large := timed(prepare(n/8)), timed(prepare(n))
	if large <= 40*small {
		return
	}
	// The system counts the time of other threads at its next tick, so that a short measurement
	// can be too short: measure as much work on n/8 units as on n.
	small = math.MaxInt64
	for range 8 {
		var works [8]func()
		for i := range works {
			works[i] = prepare(n / 8)
		}
		together := timed(func() {
			for _, work := range works {
				work()
			}
		})
		if small, large = min(small, together/8), min(large, timed(prepare(n))); large <= 40*small {
			return
		}
	}
	t.Errorf("%s: %v for %d units and %v for %d, want at most 40 times as long", name, small, n/8, large, n)
}

func timed(work func()) time.Duration {
	start := ProcessorTime()
	work()
	return ProcessorTime() - start
}

// PartitionBy returns the partition of a porcupine model whose operations on different
// keys are independent. In is the type of the operations' input.
func PartitionBy[In any, K comparable](key func(In) K) func([]porcupine.Operation) [][]porcupine.Operation {
	return func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := map[K][]porcupine.Operation{}
		for _, op := range history {
			k := key(op.Input.(In))
			parts[k] = append(parts[k], op)
		}
		return slices.Collect(maps.Values(parts))
	}
}
