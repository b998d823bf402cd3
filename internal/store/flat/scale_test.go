package flat

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
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

	"cairn/internal/store"
)

// TestScale measures what benchmarks/scale.md publishes: the memory, the disk, the times and
// the recall of a store of $CAIRN_SCALE chunks. $CAIRN_SCALE_DIR keeps the store for the next
// run. The vectors are mixtures of those in the folders $CAIRN_SCALE_FROM, which a colon
// separates, with noise; the queries are vectors that were left out, with more of it.
func TestScale(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("CAIRN_SCALE"))
	if err != nil {
		t.Skip("CAIRN_SCALE is not set: how many chunks to measure with")
	}
	dir := os.Getenv("CAIRN_SCALE_DIR")
	if dir == "" {
		dir = t.TempDir()
	}
	from := newMixture(t, os.Getenv("CAIRN_SCALE_FROM"))
	writeScale(t, dir, n, from)
	debug.FreeOSMemory()
	before := resident(t)
	begun := time.Now()
	s := open(t, dir, 384, nil)
	snap := s.snap.Load()
	t.Logf("kernel %s, %d processors: opened in %.2f s; %d chunks, of them %d ordered; %d MB on disk", s.kernel.name, runtime.GOMAXPROCS(0),
		time.Since(begun).Seconds(), n, len(snap.partitions.of), onDisk(dir)>>20)
	snap.table.wait()
	t.Logf("names read in %.2f s", time.Since(begun).Seconds())
	measure := func(what string, f store.Filter, turns int) (found [][]store.Hit) {
		rng := rand.New(rand.NewPCG(3, 3))
		var took []time.Duration
		used := 0.0
		for i := range turns {
			q := from.query(rng, i)
			begun := time.Now()
			hits, err := s.Search(t.Context(), q, 300, f)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, hits)
			if i == 19 { // the first ones read the file
				used = processor()
			}
			if i >= 20 {
				took = append(took, time.Since(begun))
			}
		}
		used = processor() - used
		slices.Sort(took)
		t.Logf("%s: p50 %v, p95 %v of %d searches for 300 hits, %.1f ms of processor time each", what, took[len(took)/2], took[len(took)*95/100], len(took), used/float64(len(took)))
		return found
	}
	near := measure("no filter", store.Filter{}, 320)
	runtime.GC()
	debug.FreeOSMemory()
	t.Logf("%d MB resident more than empty, without mapped files", resident(t)-before)
	prefixes := []string{"reference/part-07/page-0000007", "reference/part-07/page-000", "reference/part-07/", "reference/part-0", "reference/"}
	var filtered [][][]store.Hit
	for _, prefix := range prefixes {
		filtered = append(filtered, measure("path prefix "+prefix, store.Filter{PathPrefix: prefix}, 60))
	}
	exact := *snap
	exact.partitions = unordered
	s.snap.Store(&exact)
	defer s.snap.Store(snap)
	want := measure("exact", store.Filter{}, 320)
	t.Logf("no filter: recall at 10 %.4f, at 300 %.4f against exact search", recall(near, want, 10), recall(near, want, 300))
	for i, prefix := range prefixes[:3] {
		want := measure("exact, path prefix "+prefix, store.Filter{PathPrefix: prefix}, 60)
		t.Logf("path prefix %s: %d hits, recall at 300 %.4f", prefix, len(want[0]), recall(filtered[i], want, 300))
	}
}

// recall returns the share of the best k hits of want that are among those of got.
func recall(got, want [][]store.Hit, k int) float64 {
	found, all := 0, 0
	for i := range want {
		best := map[string]bool{}
		for _, h := range got[i][:min(k, len(got[i]))] {
			best[h.Chunk] = true
		}
		for _, h := range want[i][:min(k, len(want[i]))] {
			all++
			if best[h.Chunk] {
				found++
			}
		}
	}
	return float64(found) / float64(all)
}

// mixture makes vectors that are distributed like those of real texts.
type mixture struct{ base, held, noise [][]float32 }

// newMixture reads the vectors of stores; without any, it makes clusters.
func newMixture(t *testing.T, folders string) *mixture {
	m, rng := new(mixture), rand.New(rand.NewPCG(5, 5))
	for range 4096 {
		m.noise = append(m.noise, normal(rng, 384, nil))
	}
	for _, dir := range filepath.SplitList(folders) {
		b, err := os.ReadFile(filepath.Join(dir, fileName))
		if err != nil || len(b) < 20 {
			t.Fatal(err)
		}
		s, err := Open(dir, 384, string(b[20:20+binary.LittleEndian.Uint32(b[16:])]), &Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		snap := s.snap.Load()
		for n := range snap.vectors.n {
			code, low := make([]byte, 384), make([]byte, 384)
			if err := snap.readCode(code, uint32(n)); err != nil {
				t.Fatal(err)
			}
			_, at := snap.vectors.extent(uint32(n)).offsets(uint32(n), 384)
			v := snap.vectors.at(uint32(n))
			if err := snap.log.readChecked(low, at, v.sum); err != nil {
				t.Fatal(err)
			}
			m.base = append(m.base, normalise(restore(code, low, v.scale)))
		}
		s.Close()
	}
	for i := range 20_000 {
		if len(folders) == 0 {
			m.base = append(m.base, clustered(rng, i/100))
		}
	}
	for range 400 {
		i := rng.IntN(len(m.base))
		m.held, m.base = append(m.held, m.base[i]), slices.Delete(m.base, i, i+1)
	}
	return m
}

// vector returns a mixture of two vectors that are near each other in their store.
func (m *mixture) vector(rng *rand.Rand) []float32 {
	i := rng.IntN(len(m.base))
	j := min(max(i+rng.IntN(41)-20, 0), len(m.base)-1)
	return m.mix(rng, m.base[i], m.base[j], .5+rng.Float32()/2, .45)
}

// query returns a vector whose cosine with that of a text which was left out is about .74.
func (m *mixture) query(rng *rand.Rand, i int) []float32 {
	v := m.held[i%len(m.held)]
	return m.mix(rng, v, v, 1, .9)
}

func (m *mixture) mix(rng *rand.Rand, a, b []float32, share, noise float32) []float32 {
	v, e := make([]float32, len(a)), m.noise[rng.IntN(len(m.noise))]
	for i := range v {
		v[i] = share*a[i] + (1-share)*b[i]
	}
	v = normalise(v)
	shift := rng.IntN(len(v))
	for i := range v {
		v[i] += noise * e[(i+shift)%len(v)]
	}
	return normalise(v)
}

// writeScale writes a store of n chunks, ten to a document, unless dir has one. It continues a
// smaller one.
func writeScale(t *testing.T, dir string, n int, from *mixture) {
	begun := time.Now()
	s := open(t, dir, 384, &Options{partitionedFrom: math.MaxInt})
	const batch = 8192
	have, _ := s.Count()
	if have == n {
		s.Close()
		return
	}
	entries := make([]store.VectorEntry, batch)
	for first := have; first < n; first += batch {
		some := entries[:min(batch, n-first)]
		_ = share(runtime.GOMAXPROCS(0), len(some), func(_, k int) error {
			i := first + k
			path := fmt.Sprintf("reference/part-%02d/page-%07d.md", i/10%50, i/10)
			some[k] = store.VectorEntry{
				Chunk: store.ChunkID(path, fmt.Sprintf("some-heading-%d", i%10), 0), Path: path, Vector: from.vector(rand.New(rand.NewPCG(9, uint64(i)))),
				Labels: store.Labels{Found: true, Tags: []string{fmt.Sprint(i / 10 % 7)}},
			}
			return nil
		})
		if err := s.Update(t.Context(), some, nil); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d chunks written in %.1f s", n-have, time.Since(begun).Seconds())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(s.imagePath()); err != nil { // else the next start does not order the slots
		t.Fatal(err)
	}
	begun = time.Now()
	if err := open(t, dir, 384, nil).Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("read and ordered in %.1f s", time.Since(begun).Seconds())
}

// onDisk returns the size of the files in dir.
func onDisk(dir string) (size int64) {
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		if info, err := f.Info(); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
	}
	return size
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
