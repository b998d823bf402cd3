package bert

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
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

func TestAdapterIsRefused(t *testing.T) {
	y, file := tinySpecs["8-bit"].generate()
	tok, _ := tinyTokenizer(t)
	good := y.adapter(2)
	odd := append([]byte{1, 0, 0, 0}, good[4:]...)
	for name, adapter := range map[string][]byte{"empty": {}, "cut": good[:len(good)-1], "too long": append(good, 0), "odd rank": odd, "no changes": {0, 0, 0, 0, 0}} {
		if _, err := New(file, tok, models.Description{Name: "tiny"}, &Options{Adapter: adapter}); !errors.Is(err, errAdapter) {
			t.Errorf("%s: %v, want %v", name, err, errAdapter)
		}
	}
	floats := tinySpecs["float"]
	z, file := floats.generate()
	if _, err := New(file, tok, models.Description{Name: "tiny"}, &Options{Adapter: z.adapter(2)}); err == nil {
		t.Error("an adapter was added to weights of 32 bits")
	}
}
