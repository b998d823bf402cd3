// Package packed encodes and decodes the numbers, texts and lists of stored records.
//
// A number is an unsigned varint. A text is its length in bytes, as a number, followed by
// the bytes. A list is its length, as a number, followed by the texts.
package packed

import "encoding/binary"

// AppendNumber appends a number, which must not be negative.
func AppendNumber(b []byte, n int) []byte { return binary.AppendUvarint(b, uint64(n)) }

// AppendText appends a text.
func AppendText(b []byte, s string) []byte {
	return append(AppendNumber(b, len(s)), s...)
}

// AppendList appends a list.
func AppendList(b []byte, list []string) []byte {
	b = AppendNumber(b, len(list))
	for _, s := range list {
		b = AppendText(b, s)
	}
	return b
}

// Reader reads values from Rest. The texts that it returns share the memory of Rest. After
// a truncated value, Bad is true and all further values are zero.
type Reader struct {
	Rest string
	Bad  bool
}

func (r *Reader) fail() { r.Rest, r.Bad = "", true }

// Number reads a number.
func (r *Reader) Number() int {
	n := 0
	for i := 0; i < len(r.Rest) && i < 9; i++ {
		c := r.Rest[i]
		n |= int(c&0x7f) << (7 * i)
		if c < 0x80 {
			r.Rest = r.Rest[i+1:]
			return n
		}
	}
	r.fail()
	return 0
}

// Take reads n bytes.
func (r *Reader) Take(n int) string {
	if n > len(r.Rest) {
		r.fail()
		return ""
	}
	s := r.Rest[:n]
	r.Rest = r.Rest[n:]
	return s
}

// Byte reads one byte.
func (r *Reader) Byte() byte {
	if s := r.Take(1); s != "" {
		return s[0]
	}
	return 0
}

// Text reads a text.
func (r *Reader) Text() string { return r.Take(r.Number()) }

// Length reads the length of a list whose entries take at least size bytes each. It sets
// Bad if Rest is too short for the list, so that the caller does not allocate it.
func (r *Reader) Length(size int) int {
	n := r.Number()
	if n > len(r.Rest)/size {
		r.fail()
		return 0
	}
	return n
}

// List reads a list. It returns nil for an empty list.
func (r *Reader) List() []string {
	n := r.Length(1)
	if n == 0 {
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = r.Text()
	}
	return list
}

// Done reports whether the whole record was read without an error.
func (r *Reader) Done() bool { return !r.Bad && r.Rest == "" }
