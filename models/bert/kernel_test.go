package bert

import (
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"unsafe"
)

// TestLayout checks that the arguments of assembly functions have the offsets that the
// generator uses: eight bytes per field, with two float32s in one case.
func TestLayout(t *testing.T) {
	for _, args := range []any{product8{}, product32{}, headArgs{}} {
		typ := reflect.TypeOf(args)
		for i := range typ.NumField() {
			if f := typ.Field(i); f.Offset != uintptr(8*i) {
				t.Errorf("%s.%s: offset %d, want %d", typ.Name(), f.Name, f.Offset, 8*i)
			}
		}
	}
	var a rowsArgs
	if unsafe.Offsetof(a.epsilon) != 64 || unsafe.Offsetof(a.inverse) != 68 || unsafe.Offsetof(a.q) != 72 || unsafe.Offsetof(a.min) != 96 || unsafe.Offsetof(a.inputBias) != 112 {
		t.Error("rowsArgs is not laid out as the assembly expects")
	}
}

// TestAVX2Registers: AVX2 has 16 vector registers and no mask registers; a
// generator that hands out more makes code that only runs where AVX-512 does.
func TestAVX2Registers(t *testing.T) {
	source, err := os.ReadFile("avx2_amd64.s")
	if err != nil {
		t.Fatal(err)
	}
	if found := regexp.MustCompile(`\b(Z\d+|[XY](1[6-9]|2\d|3[01])|K[0-7])\b`).Find(source); found != nil {
		t.Errorf("avx2_amd64.s uses %s", found)
	}
}

func randomFloats(rng *rand.Rand, n int) []float32 {
	v := aligned[float32](n)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}

func near(got, want float32, tolerance float64) bool {
	return math.Abs(float64(got)-float64(want)) <= tolerance*max(1, math.Abs(float64(want)))
}

// kernelOf is eachKernel with the kernel itself.
func kernelOf(t *testing.T, f func(t *testing.T, k *kernel, rng *rand.Rand)) {
	eachKernel(t, func(t *testing.T, name string) {
		k, err := chooseKernel(name)
		if err != nil {
			t.Fatal(err)
		}
		f(t, k, rand.New(rand.NewPCG(7, 8)))
	})
}

// activation is the number that product8 reads from a byte.
func activation(k *kernel, b byte) int {
	if k.signed {
		return int(int8(b))
	}
	return int(b)
}

// TestProduct8 compares with integer sums, at every number of rows, for
// random and for extreme bytes and weights: those must not overflow.
func TestProduct8(t *testing.T) {
	kernelOf(t, func(t *testing.T, k *kernel, rng *rand.Rand) {
		for rows := 1; rows <= min(2*k.rows+1, 70); rows++ {
			for _, depth := range []int{16, 32, 48, 384} {
				panels := 1
				if k.wide {
					panels = 1 + rows%3
				}
				width := panels * k.cols
				extreme := rows%2 == 0
				l := linear{in: depth, out: width, codes: make([]byte, depth*width), signed: true, zeros: []int32{0}, scales: []float32{0.01}, bias: randomFloats(rng, width)}
				for i := range l.codes {
					l.codes[i] = byte(int8(rng.IntN(256) - 128))
					if extreme {
						l.codes[i] = byte(int8([]int{-128, 127}[rng.IntN(2)]))
					}
				}
				p, err := pack(new(arena), k, columnsOf(nil, &l, 0, l.out, 1, k.cols), 1)
				if err != nil {
					t.Fatal(err)
				}
				a, scale, low := aligned[byte](rows*depth), randomFloats(rng, rows), randomFloats(rng, rows)
				for i := range a {
					if a[i] = byte(rng.Uint32()); extreme {
						a[i] = 255
						if k.signed {
							a[i] = 128
						}
					}
				}
				c := aligned[float32](rows * width)
				gelu := 0
				if k.wide {
					gelu = rows / 2 % 2
				}
				for i := 0; i < rows; {
					height, tiles := split(rows-i, k.rows)
					k.product8(&product8{
						a: &a[i*depth], lda: depth, scale: &scale[i], min: &low[i], w: &p.codes[0], depth: depth,
						wscale: &p.scale[0], wsum: &p.sums[0], bias: &p.bias[0], c: &c[i*width], ldc: 4 * width, rows: height, tiles: tiles, panels: panels, gelu: gelu,
					})
					i += height * tiles
				}
				for i := range rows {
					for j := range width {
						sum, panel := 0, p.codes[j/k.cols*k.cols*depth+4*(j%k.cols):]
						for d := range depth {
							sum += activation(k, a[i*depth+d]) * int(panel[d/4*4*k.cols+d%4])
						}
						want := scale[i]*p.scale[j]*float32(sum) + low[i]*p.sums[j] + p.bias[j]
						tolerance := 1e-4
						if gelu == 1 {
							tolerance = 2e-4 + 1e-6*math.Abs(float64(want))
							want *= float32(0.5 * (1 + math.Erf(float64(want)/math.Sqrt2)))
						}
						if !near(c[i*width+j], want, tolerance) {
							t.Fatalf("%d rows of %d, row %d column %d: got %v, want %v", rows, depth, i, j, c[i*width+j], want)
						}
					}
				}
			}
		}
	})
}

func TestSumBytes(t *testing.T) {
	for _, n := range []int{0, 1, 7, 8, 1023, 1024, 1032, 4099} {
		x := make([]byte, n)
		want := uint64(0)
		for i := range x {
			x[i] = byte(255 - i%3)
			want += uint64(x[i])
		}
		if got := sumBytes(x); got != want {
			t.Errorf("%d bytes: got %d, want %d", n, got, want)
		}
	}
}

func TestProduct32(t *testing.T) {
	kernelOf(t, func(t *testing.T, k *kernel, rng *rand.Rand) {
		var s scratch
		for rows := 1; rows <= 2*k.frows+1; rows++ {
			for _, depth := range []int{1, 3, 4, 7, 32, 65} {
				a, b := randomFloats(rng, rows*depth), randomFloats(rng, depth*k.fcols)
				c := aligned[float32](rows * k.fcols)
				k.multiply(&s, matrix{a, depth}, depth, matrix{b, k.fcols}, matrix{c, k.fcols}, rows)
				for i := range rows {
					for j := range k.fcols {
						want := 0.0
						for d := range depth {
							want += float64(a[i*depth+d]) * float64(b[d*k.fcols+j])
						}
						if !near(c[i*k.fcols+j], float32(want), 1e-5) {
							t.Fatalf("%d rows of %d, row %d column %d: got %v, want %v", rows, depth, i, j, c[i*k.fcols+j], want)
						}
					}
				}
			}
		}
	})
}

func TestSoftmax(t *testing.T) {
	kernelOf(t, func(t *testing.T, k *kernel, rng *rand.Rand) {
		for n := 1; n <= 70; n++ {
			const rows = 3
			wide := roundUp(n, 16)
			x := randomFloats(rng, rows*wide)
			for i := range x {
				x[i] *= 20
			}
			x[n-1] = 300 // far above the rest, whose exponentials vanish
			y, words := append(aligned[float32](0), x...), aligned[byte](2*rows*wide)
			k.softmax(&rowsArgs{x: &x[0], ld: 4 * wide, n: n, rows: rows})
			tiles := roundUp(n, panelWidth)
			halves, scale := aligned[byte](2*rows*tiles+panelWidth), aligned[float32](rows)
			if k.softmaxBF16 != nil {
				for i := range halves {
					halves[i] = 0xff
				}
				k.softmaxBF16(&rowsArgs{x: &append([]float32(nil), y...)[0], ld: 4 * wide, n: n, rows: rows, q: &halves[0], ldq: 2 * tiles, scale: &scale[0]})
			}
			if k.softmax16 != nil {
				k.softmax16(&rowsArgs{x: &append([]float32(nil), y...)[0], ld: 4 * wide, n: n, rows: rows, q: &words[0], ldq: 2 * wide})
			}
			for i := range rows {
				row, sum := y[i*wide:i*wide+n], 0.0
				top := row[0]
				for _, v := range row {
					top = max(top, v)
				}
				for _, v := range row {
					sum += math.Exp(float64(v - top))
				}
				for j, v := range row {
					want := math.Exp(float64(v-top)) / sum
					if got := x[i*wide+j]; !near(got, float32(want), 1e-6) {
						t.Fatalf("%d scores, row %d, %d: got %v, want %v", n, i, j, got, want)
					}
					if k.softmaxBF16 != nil {
						if got := bfloat16(halves[2*(i*tiles+j):]) * scale[i]; math.Abs(float64(got)-want) > want/200+1e-30 {
							t.Fatalf("%d scores, row %d, %d: got bfloat16 %v, want %v", n, i, j, got, want)
						}
					}
					if k.softmax16 == nil {
						continue
					}
					at := 2 * (i*wide + j)
					got := float64(int16(uint16(words[at])|uint16(words[at+1])<<8)) / 32767
					if math.Abs(got-want) > 1.0/32767 {
						t.Fatalf("%d scores, row %d, %d: got word %v, want %v", n, i, j, got, want)
					}
				}
				for j := n; j < tiles && k.softmaxBF16 != nil; j++ {
					if got := bfloat16(halves[2*(i*tiles+j):]); got != 0 {
						t.Fatalf("%d scores, row %d: got %v at %d, want 0", n, i, got, j)
					}
				}
			}
		}
	})
}

// bfloat16 reads a bfloat16.
func bfloat16(b []byte) float32 {
	return math.Float32frombits(uint32(b[0])<<16 | uint32(b[1])<<24)
}

func TestTranspose(t *testing.T) {
	kernelOf(t, func(t *testing.T, k *kernel, rng *rand.Rand) {
		for rows := 1; rows <= 3*k.fcols+1; rows++ {
			for _, n := range []int{1, 16, 20} {
				x, size := randomFloats(rng, rows*(n+3)), roundUp(rows, k.fcols)*n
				got, want := randomFloats(rng, size), randomFloats(rng, size)
				k.transpose(&transposeArgs{x: &x[0], ld: 4 * (n + 3), n: n, rows: rows, out: &got[0], cols: k.fcols})
				transposeGo(&transposeArgs{x: &x[0], ld: 4 * (n + 3), n: n, rows: rows, out: &want[0], cols: k.fcols})
				if !slices.Equal(got, want) {
					t.Fatalf("%d rows of %d: got %v, want %v", rows, n, got, want)
				}
			}
		}
	})
}

func TestGelu(t *testing.T) {
	kernelOf(t, func(t *testing.T, k *kernel, rng *rand.Rand) {
		const n = 2048
		x := aligned[float32](n)
		for i := range x {
			x[i] = float32(i-n/2) / 100
		}
		y := append([]float32(nil), x...)
		k.gelu(&rowsArgs{x: &x[0], ld: 4 * n, n: n, rows: 1})
		for i, v := range y {
			want := float64(v) * 0.5 * (1 + math.Erf(float64(v)/math.Sqrt2))
			if math.Abs(float64(x[i])-want) > 3e-6 {
				t.Errorf("gelu(%v) = %v, want %v", v, x[i], want)
			}
		}
	})
}

func TestQuantize(t *testing.T) {
	kernelOf(t, func(t *testing.T, k *kernel, rng *rand.Rand) {
		const n, rows = 48, 5
		x := randomFloats(rng, n*rows)
		for j := range n {
			x[3*n+j] = 1.5 // a constant row
		}
		q, scale, low := aligned[byte](n*rows), aligned[float32](rows), aligned[float32](rows)
		k.quantize(&rowsArgs{x: &x[0], ld: 4 * n, n: n, rows: rows, q: &q[0], ldq: n, scale: &scale[0], min: &low[0]})
		for i, v := range x {
			got := scale[i/n]*float32(activation(k, q[i])) + low[i/n]
			if math.Abs(float64(got-v)) > 0.5001*float64(scale[i/n])+1e-6 {
				t.Errorf("row %d: %v became %v, a step is %v", i/n, v, got, scale[i/n])
			}
		}
	})
}

func TestNorm(t *testing.T) {
	kernelOf(t, func(t *testing.T, k *kernel, rng *rand.Rand) {
		const n, rows = 64, 3
		x, h := randomFloats(rng, n*rows), randomFloats(rng, n*rows)
		weight, bias := randomFloats(rng, n), randomFloats(rng, n)
		inputWeight, inputBias := randomFloats(rng, n), randomFloats(rng, n)
		sum := make([]float64, n*rows)
		for i := range sum {
			sum[i] = float64(x[i]) + float64(h[i])
		}
		k.norm(&rowsArgs{
			x: &x[0], ld: 4 * n, n: n, rows: rows, residual: &h[0], ldr: 4 * n, weight: &weight[0], bias: &bias[0], epsilon: 1e-5, inverse: 1.0 / n,
			inputWeight: &inputWeight[0], inputBias: &inputBias[0],
		})
		for i := range rows {
			mean, variance := 0.0, 0.0
			for _, v := range sum[i*n : (i+1)*n] {
				mean += v / n
			}
			for _, v := range sum[i*n : (i+1)*n] {
				variance += (v - mean) * (v - mean) / n
			}
			for j := range n {
				unit := (sum[i*n+j] - mean) / math.Sqrt(variance+1e-5)
				want := unit*float64(weight[j]) + float64(bias[j])
				if !near(h[i*n+j], float32(want), 1e-5) {
					t.Errorf("row %d, %d: got %v, want %v", i, j, h[i*n+j], want)
				}
				want = unit*float64(inputWeight[j]) + float64(inputBias[j])
				if !near(x[i*n+j], float32(want), 1e-5) {
					t.Errorf("row %d, input %d: got %v, want %v", i, j, x[i*n+j], want)
				}
			}
		}
	})
}

// TestIntegerAttention compares attention in integers with that in floats of
// the same kernel, for every length of a text and both widths of heads.
func TestIntegerAttention(t *testing.T) {
	kernelOf(t, func(t *testing.T, k *kernel, rng *rand.Rand) {
		if k.product16 == nil {
			t.Skip("the kernel attends in floats")
		}
		attend := attention(k, true)
		for _, size := range []int{20, 32, 64} {
			m := &model{kernel: k, hidden: size, hiddenPad: roundUp(size, 32), innerPad: 32, heads: 1, size: size, padded: roundUp(size, 32), eight: true}
			for n := 1; n <= 70; n++ {
				var s scratch
				m.grow(&s, n)
				for i := range n {
					for part := range 3 {
						own := s.heads[(3*i+part)*m.padded:][:size]
						for d := range own {
							own[d] = float32(rng.NormFloat64())
							if part == 0 { // as the query weights' scale does
								own[d] /= float32(math.Sqrt(float64(size)))
							}
						}
					}
				}
				m.attend(&s, 0, 0, n)
				want := append([]float32(nil), s.context...)
				attend(m, &s, 0, 0, n)
				for i := range n {
					for d := range size {
						at := i*m.contextPad() + d
						if math.Abs(float64(s.context[at]-want[at])) > 0.03 {
							t.Fatalf("size %d, %d tokens, row %d, %d: got %v, want %v", size, n, i, d, s.context[at], want[at])
						}
					}
				}
			}
		}
	})
}
