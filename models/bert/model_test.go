package bert

import (
	"math"
	"math/rand/v2"
	"testing"

	"cairn/models"
)

// tinyEncoder generates a model and opens it.
func tinyEncoder(t testing.TB, spec tinySpec, desc models.Description, opts *Options) (*tiny, *Encoder) {
	y, file := spec.generate()
	tok, _ := tinyTokenizer(t)
	if desc.Name == "" {
		desc.Name = "tiny"
	}
	e, err := New(file, tok, desc, opts)
	if err != nil {
		t.Fatal(err)
	}
	return y, e
}

// TestGenerated compares every kernel with a float64 BERT, for the graphs
// that exporters and quantisers write.
func TestGenerated(t *testing.T) {
	for name, spec := range tinySpecs {
		t.Run(name, func(t *testing.T) {
			eachKernel(t, func(t *testing.T, kernel string) {
				y, e := tinyEncoder(t, spec, models.Description{}, &Options{Kernel: kernel})
				rng := rand.New(rand.NewPCG(3, 4))
				var s scratch
				for n := 1; n <= y.positions; n++ {
					ids := make([]int32, n)
					for i := range ids {
						ids[i] = rng.Int32N(int32(y.words))
					}
					for _, first := range []bool{false, true} {
						got := make([]float32, y.hidden)
						e.model.forward(&s, ids, []int{0, n})
						e.model.pool(&s, 0, n, first, got)
						want := y.embed(ids, first)
						worst, dot, squares := 0.0, 0.0, 0.0
						for j, w := range want {
							worst = max(worst, math.Abs(w-float64(got[j])))
							dot += w * float64(got[j])
							squares += float64(got[j]) * float64(got[j])
						}
						if math.Abs(squares-1) > 1e-5 {
							t.Fatalf("%d tokens, first %v: squared length %v, want 1", n, first, squares)
						}
						// Activations are rounded to 8 bits where weights are.
						if y.has("int8") && !(dot/math.Sqrt(squares) >= 0.9985) {
							t.Fatalf("%d tokens, first %v: cosine %.6f, want >= 0.9985", n, first, dot)
						}
						if !y.has("int8") && !(worst <= 5e-6) {
							t.Fatalf("%d tokens, first %v: a number is off by %g, want <= 5e-6", n, first, worst)
						}
					}
				}
			})
		})
	}
}

func TestNewRefuses(t *testing.T) {
	y, file := tinySpecs["8-bit"].generate()
	tok, _ := tinyTokenizer(t)
	for name, c := range map[string]struct {
		desc    models.Description
		weights []byte
		opts    Options
	}{
		"no name":         {models.Description{}, file, Options{}},
		"dimension":       {models.Description{Name: "x", Dimension: y.hidden + 1}, file, Options{}},
		"longest":         {models.Description{Name: "x", MaxTokens: y.positions + 1}, file, Options{}},
		"pooling":         {models.Description{Name: "x", Pooling: "max"}, file, Options{}},
		"similarity":      {models.Description{Name: "x", MinSimilarity: math.NaN()}, file, Options{}},
		"kernel":          {models.Description{Name: "x"}, file, Options{Kernel: "gpu"}},
		"empty":           {models.Description{Name: "x"}, nil, Options{}},
		"text":            {models.Description{Name: "x"}, []byte("no model at all, but some text"), Options{}},
		"truncated":       {models.Description{Name: "x"}, file[:len(file)/2], Options{}},
		"tiny heads":      {models.Description{Name: "x"}, second(tinySpec{37, 40, 32, 32, 8, 1, ""}.generate()), Options{}},
		"relative":        {models.Description{Name: "x"}, second(tinySpec{37, 40, 64, 96, 2, 1, "relative"}.generate()), Options{}},
		"small embedding": {models.Description{Name: "x"}, second(tinySpec{20, 40, 32, 32, 1, 1, ""}.generate()), Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(c.weights, tok, c.desc, &c.opts); err == nil {
				t.Error("got no error")
			}
		})
	}
}

// TestCycle: a graph whose layer feeds itself ends in an error.
func TestCycle(t *testing.T) {
	_, file := tinySpecs["8-bit"].generate()
	g, err := parseONNX(file)
	if err != nil {
		t.Fatal(err)
	}
	m := &matcher{graph: g, steps: 1 << 20}
	output := g.outputs[0]
	_, sum, err := m.norm(output)
	if err != nil {
		t.Fatal(err)
	}
	_, input, err := m.layer(sum, &network{})
	if err != nil {
		t.Fatal(err)
	}
	g.producer[input] = &node{op: "Identity", inputs: []string{output}, outputs: []string{input}}
	if n, err := readNetwork(g, matchNetwork); err == nil {
		t.Errorf("got %d layers, want an error", len(n.layers))
	}
}

func second[A, B any](_ A, b B) B { return b }

func TestKernelVariable(t *testing.T) {
	_, file := tinySpecs["float"].generate()
	tok, _ := tinyTokenizer(t)
	t.Setenv(kernelVariable, "portable")
	e, err := New(file, tok, models.Description{Name: "x"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := e.Kernel(); got != "portable" {
		t.Errorf("kernel %q, want portable", got)
	}
	t.Setenv(kernelVariable, "sse")
	if _, err := New(file, tok, models.Description{Name: "x"}, nil); err == nil {
		t.Errorf("%s=sse: got no error", kernelVariable)
	}
}

// FuzzNew feeds damaged models: an error or an encoder whose vectors are unit
// vectors, never a panic.
func FuzzNew(f *testing.F) {
	tok, _ := tinyTokenizer(f)
	for _, spec := range []tinySpec{{37, 12, 32, 32, 1, 1, ""}, {37, 12, 32, 32, 1, 1, "int8"}, {37, 12, 32, 32, 2, 1, "int8 fused"}} {
		_, file := spec.generate()
		f.Add(file, uint(0), byte(0))
		f.Add(file, uint(len(file)/3), byte(7))
		f.Add(file, uint(len(file)-40), byte(255))
	}
	f.Fuzz(func(t *testing.T, file []byte, at uint, change byte) {
		file = append([]byte(nil), file...)
		if len(file) > 0 {
			file[at%uint(len(file))] ^= change
		}
		e, err := New(file, tok, models.Description{Name: "x"}, &Options{Kernel: "portable"})
		if err != nil {
			return
		}
		v, err := e.EmbedQuery(t.Context(), "w1 w2")
		if err != nil {
			t.Fatal(err)
		}
		var squares float64
		for _, x := range v {
			squares += float64(x) * float64(x)
		}
		if math.Abs(squares-1) > 1e-3 {
			t.Errorf("squared length %v, want 1", squares)
		}
	})
}

// TestDamaged flips bytes all over a model and cuts it at every length: what
// the fuzz test looks for, on every run.
func TestDamaged(t *testing.T) {
	_, file := tinySpec{37, 12, 32, 32, 1, 1, "int8"}.generate()
	tok, _ := tinyTokenizer(t)
	rng := rand.New(rand.NewPCG(5, 6))
	accepted, refused := 0, 0
	for i := range 1500 {
		damaged := append([]byte(nil), file...)
		if i%3 == 0 {
			damaged = damaged[:rng.IntN(len(damaged))]
		} else {
			for range 1 + i%4 {
				damaged[rng.IntN(len(damaged))] = byte(rng.Uint32())
			}
		}
		e, err := New(damaged, tok, models.Description{Name: "x"}, nil)
		if err != nil {
			refused++
			continue
		}
		accepted++
		if _, err := e.EmbedQuery(t.Context(), "w1 w2 w3"); err != nil {
			t.Fatal(err)
		}
	}
	if accepted == 0 || refused == 0 {
		t.Errorf("%d accepted, %d refused: the damage tests nothing", accepted, refused)
	}
}
