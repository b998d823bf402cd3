package flat

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

// TestKernels holds every kernel to the obvious loop, over strides, numbers of
// vectors around the group, and extreme codes and queries.
func TestKernels(t *testing.T) {
	for _, name := range []string{"avx512vnni", "avx2", "portable"} {
		if !slices.ContainsFunc(available(), func(k kernel) bool { return k.name == name }) {
			t.Logf("untested, this machine lacks it: %s", name)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, k := range available() {
		t.Run(k.name, func(t *testing.T) {
			for _, stride := range []int{64, 128, 384, 448, 1024} {
				for _, n := range []int{0, 1, 3, 4, 5, 8, 31, 130} {
					for _, fill := range []string{"random", "largest", "smallest"} {
						codes, q := randomCodes(rng, n*stride, stride, fill)
						want := obviousDots(n, codes, q, stride)
						got := make([]int32, n+1)
						got[n] = 42 // the kernel must not write past the end
						k.dots(got[:n:n], codes, q, stride)
						if !slices.Equal(got[:n], want) || got[n] != 42 {
							t.Fatalf("stride %d, %d vectors, %s: %v, want %v and 42", stride, n, fill, got, want)
						}
					}
				}
			}
		})
	}
}

// TestFineKernels holds every kernel to the obvious loop, with random and extreme numbers.
func TestFineKernels(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	for _, k := range available() {
		for _, dim := range []int{1, 2, 15, 16, 17, 384, 1023} {
			for _, fill := range []string{"random", "largest", "smallest"} {
				query, codes, low := make([]int16, dim), make([]byte, dim), make([]byte, dim)
				var want int64
				for i := range query {
					n := map[string]int{"random": rng.IntN(2*maxNumber+1) - maxNumber, "largest": maxNumber, "smallest": -maxNumber}[fill]
					query[i] = int16(map[string]int{"random": rng.IntN(2*maxNumber+1) - maxNumber, "largest": maxNumber, "smallest": maxNumber}[fill])
					codes[i], low[i] = byte((n+128)>>8+codeZero), byte(n)
					want += int64(query[i]) * int64(n)
				}
				if got := k.fine(query, codes, low); got != want {
					t.Errorf("%s, dimension %d, %s: %d, want %d", k.name, dim, fill, got, want)
				}
			}
		}
	}
}

// processors sets GOMAXPROCS until the end of a test.
func processors(tb testing.TB, n int) {
	before := runtime.GOMAXPROCS(n)
	tb.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

func randomCodes(rng *rand.Rand, n, stride int, fill string) ([]byte, *query) {
	codes := make([]byte, n)
	q := &query{int8: make([]int8, stride), int16: make([]int16, stride)}
	for i := range codes {
		codes[i] = map[string]byte{"random": byte(rng.IntN(256)), "largest": 255, "smallest": 1}[fill]
	}
	for i := range q.int8 {
		q.int8[i] = map[string]int8{"random": int8(rng.IntN(255) - 127), "largest": 127, "smallest": -127}[fill]
		q.int16[i] = int16(q.int8[i])
	}
	return codes, q
}

func obviousDots(n int, codes []byte, q *query, stride int) []int32 {
	dots := make([]int32, n)
	for i := range dots {
		for j := range stride {
			dots[i] += int32(codes[i*stride+j]) * int32(q.int8[j])
		}
	}
	return dots
}

func TestChooseKernel(t *testing.T) {
	for _, k := range available() {
		t.Setenv(kernelVariable, k.name)
		if s := Memory(3); s.kernel.name != k.name {
			t.Errorf("%s=%s gives %s", kernelVariable, k.name, s.kernel.name)
		}
	}
	for _, name := range []string{"amx", "neon"} { // of the encoder
		t.Setenv(kernelVariable, name)
		if s, want := Memory(3), available()[0].name; s.kernel.name != want {
			t.Errorf("%s=%s gives %s, want %s", kernelVariable, name, s.kernel.name, want)
		}
	}
	t.Setenv(kernelVariable, "fast")
	if _, err := Open(t.TempDir(), 3, "m", nil); err == nil {
		t.Errorf("%s=fast: Open accepted it", kernelVariable)
	}
}

// BenchmarkKernel scans one block that fits the second-level cache.
func BenchmarkKernel(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	codes, q := randomCodes(rng, blockLen*384, 384, "random")
	dots := make([]int32, blockLen)
	for _, k := range available() {
		b.Run(k.name, func(b *testing.B) {
			b.SetBytes(int64(len(codes)))
			for b.Loop() {
				k.dots(dots, codes, q, 384)
			}
		})
	}
}

// BenchmarkSearch finds the best k of n synthetic vectors of 384 numbers on
// disk, with one goroutine and with two.
func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 126_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			if n == 1_000_000 && testing.Short() {
				b.Skip("a million vectors take 2 GB of disk")
			}
			s := synthetic(b, b.TempDir(), n)
			sketched(s)
			rng := rand.New(rand.NewPCG(9, 9))
			for _, k := range available() {
				for _, threads := range []int{1, 2} {
					for _, hits := range []int{10, 100} {
						if k.name != available()[0].name && hits != 100 {
							continue
						}
						b.Run(fmt.Sprintf("%s/threads=%d/k=%d", k.name, threads, hits), func(b *testing.B) {
							s.kernel = k
							processors(b, threads)
							queries := make([][]float32, 64)
							for i := range queries {
								queries[i] = clustered(rng, i)
							}
							for i := 0; b.Loop(); i++ {
								search(b, s, queries[i%len(queries)], hits)
							}
						})
					}
				}
			}
		})
	}
}
