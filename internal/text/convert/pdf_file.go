package convert

import (
	"bytes"
	"compress/zlib"
	"encoding/ascii85"
	"io"
	"iter"
	"slices"
	"strconv"

	"golang.org/x/image/tiff/lzw"
)

// pdfFile is an open PDF file. It finds objects by scanning the whole file for their
// headers. It ignores the cross-reference tables, which are wrong in broken files and can
// be endless in hostile ones. Of several objects with the same number the last one counts.
type pdfFile struct {
	w       *writer
	data    []byte
	at      map[int]place // by object number
	cache   map[int]any
	trailer dict
	lock    *pdfLock // nil for a file that is not encrypted
	left    int64    // bytes that may still be decoded
}

// place is the location of an object: an offset in the file or in an object stream.
type place struct {
	offset             int
	inside             []byte // the decoded stream; nil for the file
	number, generation int    // of an object in the file
}

// openPDF finds the objects of a file. It panics if it is not a PDF or needs a password.
func openPDF(w *writer, data []byte) *pdfFile {
	f := &pdfFile{w: w, data: data, at: map[int]place{}, cache: map[int]any{}, trailer: dict{}, left: maxUnpacked}
	if !bytes.Contains(data[:min(len(data), 1024)], []byte("%PDF-")) {
		panic(errBroken)
	}
	var numbers, offsets []int
	for i := range f.occurrences("obj") {
		if number, generation, ok := objectHead(data[:i]); ok {
			f.at[number] = place{i + len("obj"), nil, number, generation}
			numbers, offsets = append(numbers, number), append(offsets, i)
		}
	}
	for i := range f.occurrences("trailer") {
		if i += len("trailer"); bytes.HasPrefix(bytes.TrimLeft(data[i:min(len(data), i+32)], "\r\n\t "), []byte("<<")) {
			f.trail(f.parse(place{offset: i}))
		}
	}
	for _, kind := range []name{"XRef", "ObjStm"} {
		unpacked := map[int]bool{}
		for i := range f.occurrences("/" + string(kind)) {
			if at, _ := slices.BinarySearch(offsets, i); at > 0 && !unpacked[numbers[at-1]] {
				unpacked[numbers[at-1]] = true
				f.unpack(numbers[at-1], kind)
			}
		}
		if d := f.trailer["Encrypt"]; d != nil && f.lock == nil {
			f.lock = openLock(f, f.dict(d), as[string](f, append(as[array](f, f.trailer["ID"]), nil)[0]))
			clear(f.cache) // its strings are not decrypted
		}
	}
	return f
}

// occurrences yields the offsets of word in the file.
func (f *pdfFile) occurrences(word string) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := 0; ; i += len(word) {
			n := bytes.Index(f.data[i:], []byte(word))
			if n < 0 {
				return
			}
			f.w.step()
			if i += n; !yield(i) {
				return
			}
		}
	}
}

// objectHead returns the numbers of an object if data ends with its header, such as "12 0 ".
func objectHead(data []byte) (number, generation int, ok bool) {
	i := len(data)
	back := func(is func(byte) bool) []byte {
		end := i
		for i > 0 && end-i < 10 && is(data[i-1]) {
			i--
		}
		return data[i:end]
	}
	digit := func(c byte) bool { return '0' <= c && c <= '9' }
	if len(back(isSpace)) == 0 {
		return 0, 0, false
	}
	generation, err1 := strconv.Atoi(string(back(digit)))
	apart := len(back(isSpace)) > 0
	number, err2 := strconv.Atoi(string(back(digit)))
	return number, generation, apart && err1 == nil && err2 == nil
}

// trail adds the keys of a trailer. They replace those of earlier trailers.
func (f *pdfFile) trail(v any) {
	d, _ := v.(dict)
	for _, key := range []name{"Root", "Info", "Encrypt", "ID"} {
		if d[key] != nil {
			f.trailer[key] = d[key]
		}
	}
}

// unpack records the trailer of a cross-reference stream, or the locations of the objects in
// an object stream, if the object is of that kind.
func (f *pdfFile) unpack(number int, kind name) {
	s, _ := f.object(number).(*stream)
	switch {
	case s == nil, s.dict["Type"] != kind:
	case kind == "XRef":
		f.trail(s.dict)
	default:
		data := f.decode(s)
		first, count := int(as[float64](f, s.dict["First"])), int(as[float64](f, s.dict["N"]))
		p := objectParser{w: f.w, b: data}
		for range max(min(count, len(data)), 0) {
			n, ok1 := p.next().(float64)
			offset, ok2 := p.next().(float64)
			at := first + int(offset)
			if !ok1 || !ok2 || at < 0 || at > len(data) {
				break
			}
			// A later object in the file replaces this one.
			if old, ok := f.at[int(n)]; !ok || old.inside != nil || old.offset < s.offset {
				f.at[int(n)] = place{offset: at, inside: data}
			}
		}
	}
}

// object returns the object with a number, nil if there is none. While object reads an
// object, its value is nil, so that it cannot contain itself.
func (f *pdfFile) object(number int) any {
	if v, ok := f.cache[number]; ok {
		return v
	}
	at, ok := f.at[number]
	if !ok {
		return nil
	}
	f.cache[number] = nil
	v := f.parse(at)
	f.cache[number] = v
	return v
}

// parse reads the object at a location.
func (f *pdfFile) parse(at place) any {
	p := objectParser{w: f.w, b: f.data, i: at.offset, spent: at.offset, at: at, lock: f.lock}
	if at.inside != nil {
		p.b, p.lock = at.inside, nil // the object stream was encrypted as a whole
	}
	v := p.next()
	d, ok := v.(dict)
	if !ok {
		return v
	}
	p.space()
	data, ok := bytes.CutPrefix(p.b[p.i:], []byte("stream"))
	if !ok {
		return v
	}
	data = bytes.TrimPrefix(bytes.TrimPrefix(data, []byte("\r")), []byte("\n"))
	at.offset = len(p.b) - len(data)
	return &stream{d, at}
}

// resolve follows references. It returns nil for a chain of more than eight.
func (f *pdfFile) resolve(v any) any {
	for range 8 {
		r, ok := v.(ref)
		if !ok {
			return v
		}
		v = f.object(int(r))
	}
	return nil
}

// dict returns a dictionary or the dictionary of a stream. It returns nil for any other
// object.
func (f *pdfFile) dict(v any) dict {
	switch v := f.resolve(v).(type) {
	case dict:
		return v
	case *stream:
		return v.dict
	}
	return nil
}

// as returns an object of type T, the zero value for any other object.
func as[T any](f *pdfFile, v any) T {
	t, _ := f.resolve(v).(T)
	return t
}

// decode returns the decoded data of a stream. It stops at broken data, and returns nil
// for a filter that is not used for text, such as an image filter.
func (f *pdfFile) decode(s *stream) []byte {
	data := f.data[min(s.offset, len(f.data)):]
	n := int(as[float64](f, s.dict["Length"]))
	if n <= 0 || n > len(data) || !bytes.Contains(data[n:min(len(data), n+20)], []byte("endstream")) {
		if n = bytes.Index(data, []byte("endstream")); n < 0 {
			n = len(data)
		}
		f.w.spend(n / 4)
	}
	data = data[:n]
	filters := as[array](f, s.dict["Filter"])
	if one := as[name](f, s.dict["Filter"]); one != "" {
		filters = array{one}
	}
	if f.lock != nil {
		crypt := f.lock.streams
		if len(filters) > 0 && as[name](f, filters[0]) == "Crypt" { // ISO 32000-1, 7.4.10
			parms := append(slices.Clone(as[array](f, s.dict["DecodeParms"])), s.dict["DecodeParms"])
			crypt, filters = as[name](f, f.dict(parms[0])["Name"]), filters[1:]
		}
		data = f.lock.open(crypt, s.place, data)
	}
	for _, filter := range filters[:min(len(filters), 4)] {
		f.w.spend(4 * len(data))
		switch as[name](f, filter) {
		case "FlateDecode", "Fl":
			r, err := zlib.NewReader(bytes.NewReader(data))
			if err != nil {
				return nil
			}
			data = f.readAll(r)
		case "ASCIIHexDecode", "AHx":
			digits, _, _ := bytes.Cut(data, []byte(">"))
			data = unhex(digits)
		case "ASCII85Decode", "A85":
			text, _, _ := bytes.Cut(bytes.TrimPrefix(bytes.TrimSpace(data), []byte("<~")), []byte("~>"))
			out := make([]byte, 4*len(text)+4)
			n, _, _ := ascii85.Decode(out, text, true)
			data = out[:n]
		case "LZWDecode", "LZW":
			data = f.readAll(lzw.NewReader(bytes.NewReader(data), lzw.MSB, 8)) // TIFF has the same variant
		default:
			return nil
		}
		if f.left -= int64(len(data)); f.left < 0 {
			panic(errUnpacked)
		}
	}
	f.w.spend(len(data))
	return data
}

// readAll reads decompressed data up to the first error.
func (f *pdfFile) readAll(r io.Reader) []byte {
	out, _ := io.ReadAll(io.LimitReader(r, f.left+1))
	f.w.spend(20_000 + 8*len(out)) // a decompressor allocates its tables
	return out
}
