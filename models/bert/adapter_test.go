package bert

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"cairn/models"
)

// adapter returns a file of random changes of y, and adds them to y.
func (y *tiny) adapter(rank int) []byte {
	rng := rand.New(rand.NewPCG(5, 6))
	file := binary.LittleEndian.AppendUint32(nil, uint32(rank))
	vector := func(n int) []float64 {
		const scale = 1.0 / 320
		file = binary.LittleEndian.AppendUint32(file, math.Float32bits(scale))
		v := make([]float64, n)
		for i := range v {
			code := int8(rng.IntN(127) - 63)
			file, v[i] = append(file, byte(code)), float64(code)*scale
		}
		return v
	}
	for l := range y.layers {
		for _, p := range []struct {
			name, input string
			in, out     int
		}{
			{"query", "attention in", y.hidden, y.hidden}, {"key", "attention in", y.hidden, y.hidden}, {"value", "attention in", y.hidden, y.hidden},
			{"out", "", y.hidden, y.hidden}, {"up", "up in", y.hidden, y.inner}, {"down", "", y.inner, y.hidden},
		} {
			at := fmt.Sprintf("%d.", l)
			shift, factor := y.params[at+p.input+".shift"], y.params[at+p.input+".factor"]
			weight, bias := y.params[at+p.name+".weight"], y.params[at+p.name+".bias"]
			for range rank {
				a, b := vector(p.in), vector(p.out)
				for i := range a {
					for j := range b {
						if shift == nil {
							weight[i*p.out+j] += a[i] * b[j]
							continue
						}
						weight[i*p.out+j] += a[i] * b[j] / factor[i]
						bias[j] -= shift[i] * a[i] * b[j]
					}
				}
			}
		}
	}
	return file
}

// TestAdapter compares changed weights with a float64 BERT that has the same changes.
func TestAdapter(t *testing.T) {
	for _, name := range []string{"8-bit", "8-bit odd", "8-bit smooth"} {
		t.Run(name, func(t *testing.T) {
			before, plain := tinyEncoder(t, tinySpecs[name], models.Description{}, nil)
			changed := &tiny{tinySpec: before.tinySpec, params: before.params}
			ids := []int32{3, 14, 15, 9, 26, 5}
			old := before.embed(ids, false)
			_, e := tinyEncoder(t, tinySpecs[name], models.Description{}, &Options{Adapter: changed.adapter(4)})
			if e.Description().ID == plain.Description().ID {
				t.Error("the changed model has the ID of the model")
			}
			got, want := make([]float32, before.hidden), changed.embed(ids, false)
			var s scratch
			e.model.forward(&s, ids, []int{0, len(ids)})
			e.model.pool(&s, 0, len(ids), false, got)
			with, without := 0.0, 0.0
			for j, v := range got {
				with += float64(v) * want[j]
				without += float64(v) * old[j]
			}
			if with < .998 || without > .99 {
				t.Errorf("cosine %.4f to the changed reference, %.4f to the other, want at least .998 and at most .99", with, without)
			}
		})
	}
}

// TestSymbols: the texts with the prefix have the vectors of an encoder with the same changes,
// in any order, and the others those of the model.
func TestSymbols(t *testing.T) {
	spec := tinySpecs["8-bit"]
	const prefix = "\x00symbol\x00"
	y, plain := tinyEncoder(t, spec, models.Description{}, nil)
	file := y.adapter(4)
	_, changed := tinyEncoder(t, spec, models.Description{}, &Options{Adapter: file})
	_, e := tinyEncoder(t, spec, models.Description{SymbolPrefix: prefix}, &Options{Symbols: file})
	if got, want := e.Description().ID, plain.Description().ID; got != want {
		t.Errorf("the ID is %q, want %q: documents keep their vectors", got, want)
	}
	texts := []string{"w1 w2 w3", prefix + "w1 w2 w3", prefix + "w4", "w5 w6 w7 w8 w9", prefix + "w3 w2 w1 w5 w6", ""}
	got, err := e.EmbedDocuments(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		own := plain
		text, symbol := strings.CutPrefix(text, prefix)
		if symbol {
			own = changed
		}
		want, err := own.EmbedDocuments(t.Context(), []string{text})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got[i], want[0]) {
			t.Errorf("text %d has another vector than alone", i)
		}
	}
	tok, _ := tinyTokenizer(t)
	_, weights := spec.generate()
	if _, err := New(weights, tok, models.Description{Name: "tiny"}, &Options{Symbols: file}); err == nil {
		t.Error("changes for symbols are accepted without a prefix")
	}
	_, without := tinyEncoder(t, spec, models.Description{SymbolPrefix: prefix}, nil)
	if p := without.Description().SymbolPrefix; p != "" {
		t.Errorf("without changes for symbols, the prefix is %q", p)
	}
	_, bad := tinyEncoder(t, spec, models.Description{SymbolPrefix: prefix}, &Options{Symbols: file[:9]})
	if _, err := bad.EmbedDocuments(t.Context(), texts); !errors.Is(err, errAdapter) {
		t.Errorf("damaged changes: %v, want %v", err, errAdapter)
	}
}

func TestAdapterIsRefused(t *testing.T) {
	y, file := tinySpecs["8-bit"].generate()
	tok, _ := tinyTokenizer(t)
	good := y.adapter(4)
	odd := append([]byte{1, 0, 0, 0}, good[4:]...)
	for name, adapter := range map[string][]byte{"empty": {}, "cut": good[:len(good)-1], "too long": append(good, 0), "odd rank": odd, "rank of two": y.adapter(2), "no changes": {0, 0, 0, 0, 0}} {
		if _, err := New(file, tok, models.Description{Name: "tiny"}, &Options{Adapter: adapter}); !errors.Is(err, errAdapter) {
			t.Errorf("%s: %v, want %v", name, err, errAdapter)
		}
	}
	floats := tinySpecs["float"]
	z, file := floats.generate()
	if _, err := New(file, tok, models.Description{Name: "tiny"}, &Options{Adapter: z.adapter(4)}); err == nil {
		t.Error("an adapter was added to weights of 32 bits")
	}
}
