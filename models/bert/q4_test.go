package bert

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// tinyPacked returns a packed file with one layer of 32 columns, and the values of its word
// embeddings and of its first linear layer after the attention.
func tinyPacked() (file []byte, words, up []float32) {
	rng := rand.New(rand.NewPCG(1, 2))
	u32 := func(values ...uint32) {
		for _, v := range values {
			file = binary.LittleEndian.AppendUint32(file, v)
		}
	}
	pieces := []string{"<s>", "<pad>", "</s>", "<unk>", "\u2581a", "\u2581b"}
	file = append(file, PackedMagic...)
	u32(1, 32, 1, 4, 32, uint32(len(pieces)), 16, 2, math.Float32bits(1e-12), 32)
	u32(uint32(len(pieces)), 0, 2, 1, 3)
	text, ends := "", []uint32{0}
	for _, p := range pieces {
		text += p
		ends = append(ends, uint32(len(text)))
	}
	file = binary.LittleEndian.AppendUint64(file, uint64(len(text)))
	u32(ends...)
	for i := range pieces {
		u32(math.Float32bits(-float32(i)))
	}
	file = append(file, text...)
	u32(1, 9, 'B') // one change: B becomes b
	file = append(file, 1)
	u32('b')

	var names []string
	var data [][]byte
	floats := func(name string, n int, base float32) {
		var b []byte
		for range n {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(base+rng.Float32()/8))
		}
		names, data = append(names, name), append(data, b)
	}
	blocks := func(name string, n int) (values []float32) {
		var b []byte
		for range n / q4Weights {
			b = binary.LittleEndian.AppendUint16(b, 0x2c00) // 1/16
			row := make([]float32, q4Weights)
			for i := range 16 {
				v := byte(rng.Uint32())
				b, row[i], row[i+16] = append(b, v), float32(int(v&15)-8)/16, float32(int(v>>4)-8)/16
			}
			values = append(values, row...)
		}
		names, data = append(names, name), append(data, b)
		return values
	}
	words = blocks("emb.word", len(pieces)*32)
	floats("emb.pos", 16*32, 0)
	floats("emb.type", 2*32, 0)
	for _, name := range []string{"emb.ln", "l0.aln", "l0.oln"} {
		floats(name+".w", 32, 1)
		floats(name+".b", 32, 0)
	}
	for _, name := range []string{"q", "k", "v", "ao", "fi", "fo"} {
		if values := blocks("l0."+name+".w", 32*32); name == "fi" {
			up = values
		}
		floats("l0."+name+".b", 32, 0)
	}
	u32(uint32(len(names)))
	at := len(file)
	for _, name := range names {
		at += 2 + len(name) + 5 + 16
	}
	for i, name := range names {
		file = append(binary.LittleEndian.AppendUint16(file, uint16(len(name))), name...)
		file = append(file, 0, 0, 0, 0, 0)
		file = binary.LittleEndian.AppendUint64(file, uint64(at))
		file = binary.LittleEndian.AppendUint64(file, uint64(len(data[i])))
		at += len(data[i])
	}
	for _, b := range data {
		file = append(file, b...)
	}
	return file, words, up
}

func TestPacked(t *testing.T) {
	file, words, up := tinyPacked()
	n, tok, err := readPacked(file)
	if err != nil {
		t.Fatal(err)
	}
	for row := range n.words.rows {
		got := make([]float32, 32)
		n.words.add(got, row)
		for i, v := range got {
			if want := words[row*32+i]; v != want {
				t.Fatalf("row %d, column %d is %g, want %g", row, i, v, want)
			}
		}
	}
	l := n.layers[0].up
	for i, want := range up {
		if got := l.at(i%32, i/32); math.Abs(float64(got-want)) > float64(l.scales[i/32])/2+1e-6 {
			t.Errorf("weight %d of output %d is %g, want %g", i%32, i/32, got, want)
		}
	}
	if got := tok.AppendIDs(nil, "a B c", 10); len(got) != 5 || got[1] != 4 || got[2] != 5 || got[3] != 3 {
		t.Errorf("ids %v, want a, b and an unknown piece", got)
	}

	dir := t.TempDir()
	for name, content := range map[string][]byte{PackedFile: file, "cairn.json": []byte(`{"pooling":"mean"}`)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := e.EmbedQuery(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	b, err := e.EmbedQuery(t.Context(), "a b")
	if err != nil || dot(a, a) < .999 || dot(a, b) > .9999 {
		t.Errorf("cosines %g and %g, %v", dot(a, a), dot(a, b), err)
	}
	if _, err := OpenReranker(dir, nil); err == nil {
		t.Error("OpenReranker took an encoder")
	}
}

func dot(a, b []float32) (sum float32) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// TestPackedDamaged changes and truncates a file: reading fails or gives numbers, and does
// not panic.
func TestPackedDamaged(t *testing.T) {
	file, _, _ := tinyPacked()
	for i := range file {
		if _, _, err := readPacked(file[:i]); err == nil {
			t.Fatalf("no error for the first %d of %d bytes", i, len(file))
		}
	}
	for i := range min(len(file), 1200) {
		damaged := append([]byte{}, file...)
		damaged[i] ^= 0xff
		if n, _, err := readPacked(damaged); err == nil {
			n.words.add(make([]float32, n.words.width), n.words.rows-1)
		}
	}
}
