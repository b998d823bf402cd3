package flat

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestScale measures what benchmarks/scale.md publishes: the memory, the disk
// and the times of a store of $CAIRN_SCALE chunks.
func TestScale(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("CAIRN_SCALE"))
	if err != nil {
		t.Skip("CAIRN_SCALE is not set: how many chunks to measure with")
	}
	dir := t.TempDir()
	begun := time.Now()
	s := synthetic(t, dir, n)
	t.Logf("%d chunks written in %.1f s", n, time.Since(begun).Seconds())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	debug.FreeOSMemory()
	before := resident(t)
	begun = time.Now()
	s = open(t, dir, 384, nil)
	t.Logf("opened in %.2f s", time.Since(begun).Seconds())
	rng := rand.New(rand.NewPCG(3, 3))
	var took []time.Duration
	var used float64
	for i := range 300 {
		q := clustered(rng, i)
		begun := time.Now()
		if hits := search(t, s, q, 300); len(hits) != min(300, n) {
			t.Fatalf("%d hits", len(hits))
		}
		if i == 19 { // the first ones read the file
			used = processor()
		}
		if i >= 20 {
			took = append(took, time.Since(begun))
		}
	}
	used = processor() - used
	slices.Sort(took)
	runtime.GC()
	debug.FreeOSMemory()
	var disk int64
	for _, pattern := range []string{"*", "*/*"} {
		files, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, f := range files {
			if info, err := os.Stat(f); err == nil && info.Mode().IsRegular() {
				disk += info.Size()
			}
		}
	}
	t.Logf("kernel %s, %d processors: p50 %v, p95 %v of %d searches for 300 hits, %.1f ms of processor time each; %d MB resident more than empty, %d MB on disk",
		s.Kernel(), runtime.GOMAXPROCS(0), took[len(took)/2], took[len(took)*95/100], len(took), used/float64(len(took)), resident(t)-before, disk>>20)
}

// processor is the processor time of this process in milliseconds, to 10, 0 where /proc does
// not tell.
func processor() float64 {
	stat, _ := os.ReadFile("/proc/self/stat")
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // behind the name
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return 10 * float64(user+system)
}

// resident is the memory of this process that belongs to it alone, in MB: the
// pages of files that are only mapped are the system's to take back.
func resident(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("no /proc: memory cannot be measured")
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kb, _ := strconv.Atoi(strings.Fields(rest)[0])
			return kb >> 10
		}
	}
	return 0
}
