package convert

import (
	"fmt"
	"testing"
)

// encodeLZW compresses data as PDF writers do: the width of the codes grows one code early.
func encodeLZW(data string) []byte {
	var out []byte
	bits, have := 0, 0
	put := func(code, width int) {
		bits, have = bits<<width|code, have+width
		for ; have >= 8; have -= 8 {
			out = append(out, byte(bits>>(have-8)))
			bits &= 1<<(have-8) - 1
		}
	}
	table := map[string]int{}
	reset := func() {
		clear(table)
		for i := range 256 {
			table[string([]byte{byte(i)})] = i
		}
		table["clear"], table["end"] = 256, 257
	}
	width := 9
	reset()
	put(256, width)
	last := ""
	for i := range len(data) {
		next := last + data[i:i+1]
		if _, ok := table[next]; ok {
			last = next
			continue
		}
		put(table[last], width)
		table[next] = len(table)
		for width = 9; width < 12 && len(table)+1 > 1<<width; width++ {
		}
		if len(table) == 4094 {
			put(256, 12)
			reset()
			width = 9
		}
		last = data[i : i+1]
	}
	put(table[last], width)
	put(257, width)
	put(0, 7)
	return out
}

func TestLZW(t *testing.T) {
	text := ""
	for i := range 9000 {
		text += fmt.Sprint(i, " (word) Tj ")
	}
	for what, c := range map[string]struct {
		data []byte
		want string
	}{
		"the example of ISO 32000-1, 7.4.4.2": {[]byte{0x80, 0x0b, 0x60, 0x50, 0x22, 0x0c, 0x0c, 0x85, 0x01}, "-----A---B"},
		"codes of all widths":                 {encodeLZW(text), text},
		"cut":                                 {[]byte{0x80, 0x0b, 0x60, 0x50}, "---"},
		"nothing":                             {nil, ""},
	} {
		const filter = name("LZWDecode")
		f := pdfFile{w: &writer{}, left: maxUnpacked, data: append(c.data, "\nendstream"...)}
		got := f.decode(&stream{dict: dict{"Length": float64(len(c.data)), "Filter": filter}})
		if string(got) != c.want {
			t.Errorf("%s: got %d bytes %.80q, want %d bytes %.80q", what, len(got), got, len(c.want), c.want)
		}
	}
}
