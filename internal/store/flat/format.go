package flat

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"cairn/internal/base/checksum"
	"cairn/internal/base/packed"
	"cairn/internal/store"
)

// The file, format 4. Numbers are little-endian, checksums CRC-32C; a string is
// its length as uvarint and its bytes, a list its length as uvarint and its
// elements.
//
//	magic     8 bytes "cairnvec"
//	version   uint32
//	dimension uint32
//	model     uint32 length, then the ID
//	checksum  uint32, of all above
//	records   to the end
//
// One Update or Put is one record:
//
//	header    64 bytes: magic uint32, entries uint32, vectors uint32, lengths of
//	          the names, codes and low bytes (3 x uint64), their checksums
//	          (3 x uint32), position (uint64, see store.Vectors), zeros, checksum of the
//	          60 bytes before (uint32)
//	names     1 if the record removes all earlier chunks, else 0 (1 byte)
//	          documents: path, found (1 byte), tags, priority, assignee, status
//	          stale ids
//	          per vector: its key (16 bytes, see store.Key), scale (float32),
//	          checksums of its code and its low bytes (2 x uint32)
//	          per entry: index into documents (uvarint), the number of bytes that its
//	          chunk id shares with the one before (uvarint), the rest of the id, number of
//	          its vector (uvarint), counted from the beginning of the file
//	codes     vectors x dimension bytes, see quantise
//	low bytes vectors x dimension bytes, see quantise
//
// A record of format 3 has another magic and whole ids. Open for writing raises the version
// of a file of format 3, which may then have records of both.
//
// Open applies the records in order: each removes its stale chunks, then adds or
// replaces its entries. Open reads the codes of blocks that are not sealed (see seal); a
// search reads the other bytes that it needs. Open compares the checksums of the whole
// last record, which a crash can have torn, and a reader those of a vector before it uses
// the vector.
//
// A writer appends a record and syncs the file before it returns, so only the last
// record can be torn; the next Open for writing truncates it. When more than a quarter
// of the entries is garbage, or more vectors are without a chunk than Options allows, a
// compaction writes the rest to a new file, which replaces the old one.
const (
	fileName      = "vectors.cairn"
	fileMagic     = "cairnvec"
	formatVersion = 4
	recordMagic   = 0x34636572 // "rec4"
	record3Magic  = 0x33636572 // "rec3"
	headerSize    = 64
	maxModel      = 4096         // bytes of a model ID
	keySize       = 16           // bytes of a key in the file
	vectorSize    = keySize + 12 // bytes of a vector among the names
)

func fileHeader(dim int, model string) []byte {
	b := append([]byte(nil), fileMagic...)
	b = binary.LittleEndian.AppendUint32(b, formatVersion)
	b = binary.LittleEndian.AppendUint32(b, uint32(dim))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(model)))
	b = append(b, model...)
	return binary.LittleEndian.AppendUint32(b, checksum.Of(b))
}

// log is an open file.
type log struct {
	file     *os.File
	end      int64  // of the last whole record
	position uint64 // of the last whole record
	// mapped holds the file up to end. It is nil if the file is not mapped.
	mapped *mapping
}

func (l *log) read(b []byte, at int64) error {
	if l.mapped != nil {
		l.mapped.copy(b, at)
		return nil
	}
	_, err := l.file.ReadAt(b, at)
	if errors.Is(err, os.ErrClosed) {
		return ErrClosed
	}
	if err != nil {
		return fmt.Errorf("reading vectors %s at %d: %w", l.file.Name(), at, err)
	}
	return nil
}

// readFileHeader checks the header of f and returns the offset of the first record and
// the version.
func readFileHeader(f *os.File, dim int, model string) (start int64, version uint32, err error) {
	corrupt := func(reason string) error { return &CorruptError{Path: f.Name(), Reason: reason} }
	fixed := make([]byte, 20)
	if n, err := f.ReadAt(fixed, 0); err != nil && !errors.Is(err, io.EOF) {
		return 0, 0, err
	} else if n < len(fixed) || string(fixed[:8]) != fileMagic {
		return 0, 0, corrupt("it does not begin as one")
	}
	if version = binary.LittleEndian.Uint32(fixed[8:]); version != formatVersion && version != 3 {
		return 0, 0, &FormatError{Have: version, Want: formatVersion}
	}
	have, length := binary.LittleEndian.Uint32(fixed[12:]), binary.LittleEndian.Uint32(fixed[16:])
	if length > maxModel {
		return 0, 0, corrupt("its header is damaged")
	}
	whole := make([]byte, len(fixed)+int(length)+4)
	if _, err := f.ReadAt(whole, 0); err != nil {
		return 0, 0, corrupt("its header is cut short")
	}
	body := whole[:len(whole)-4]
	switch {
	case binary.LittleEndian.Uint32(whole[len(body):]) != checksum.Of(body):
		return 0, 0, corrupt("its header is damaged")
	case string(body[20:]) != model:
		return 0, 0, &ModelError{Have: string(body[20:]), Want: model}
	case int(have) != dim:
		return 0, 0, &DimensionError{Have: int(have), Want: dim}
	}
	return int64(len(whole)), version, nil
}

// record is the content of one Update or Put.
type record struct {
	clear   bool
	docs    []payload
	stale   []string
	fresh   []fresh // the vectors in this record
	ids     []string
	doc     []uint32 // index into docs, per entry
	vectors []uint32 // number of the vector in the file, per entry

	at                int64 // of the header
	names, codes, low int64 // lengths in bytes
	checksums         [3]uint32
	position          uint64
	entries, added    int    // entries and vectors in this record
	header            []byte // as read
}

// fresh describes a vector that a record adds.
type fresh struct {
	key          contentKey
	scale        float32
	codeSum, sum uint32 // checksums of its code and its low bytes
}

func (r *record) codesAt() int64 { return r.at + headerSize + r.names }
func (r *record) lowAt() int64   { return r.codesAt() + r.codes }
func (r *record) end() int64     { return r.lowAt() + r.low }

// encode returns the bytes of r with these codes and low bytes, and sets its lengths and
// checksums.
func (r *record) encode(codes, low []byte) []byte {
	b := make([]byte, headerSize, headerSize+64*len(r.ids)+vectorSize*len(r.fresh)+len(codes)+len(low)+256)
	cleared := byte(0)
	if r.clear {
		cleared = 1
	}
	b = append(b, cleared)
	b = packed.AppendNumber(b, len(r.docs))
	for i := range r.docs {
		b = r.docs[i].append(b)
	}
	b = packed.AppendList(b, r.stale)
	for i := range r.fresh {
		v := &r.fresh[i]
		b = append(b, v.key[:]...)
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v.scale))
		b = binary.LittleEndian.AppendUint32(b, v.codeSum)
		b = binary.LittleEndian.AppendUint32(b, v.sum)
	}
	before := ""
	for i, id := range r.ids {
		n := shared(before, id)
		b = packed.AppendNumber(packed.AppendNumber(b, int(r.doc[i])), n)
		b = packed.AppendNumber(packed.AppendText(b, id[n:]), int(r.vectors[i]))
		before = id
	}
	r.entries, r.added = len(r.ids), len(r.fresh)
	r.names, r.codes, r.low = int64(len(b)-headerSize), int64(len(codes)), int64(len(low))
	r.checksums = [3]uint32{checksum.Of(b[headerSize:]), checksum.Of(codes), checksum.Of(low)}
	b = append(append(b, codes...), low...)
	h := b[:0:headerSize]
	h = binary.LittleEndian.AppendUint32(h, recordMagic)
	h = binary.LittleEndian.AppendUint32(h, uint32(r.entries))
	h = binary.LittleEndian.AppendUint32(h, uint32(r.added))
	for _, n := range []int64{r.names, r.codes, r.low} {
		h = binary.LittleEndian.AppendUint64(h, uint64(n))
	}
	for _, sum := range r.checksums {
		h = binary.LittleEndian.AppendUint32(h, sum)
	}
	binary.LittleEndian.PutUint64(b[48:], r.position)
	binary.LittleEndian.PutUint32(b[60:], checksum.Of(b[:60]))
	return b
}

// maxShared bounds shared, and so the memory of the ids of a record.
const maxShared = 255

// shared returns the length of the common prefix, at most maxShared.
func shared(a, b string) int {
	n := 0
	for n < min(len(a), len(b), maxShared) && a[n] == b[n] {
		n++
	}
	return n
}

// readRecordHeader reads the header at offset at of a file of size bytes. It returns a
// nil record if there is no valid header, or the record is cut short.
func readRecordHeader(f io.ReaderAt, at, size int64, dim int) (*record, error) {
	if size-at < headerSize {
		return nil, nil
	}
	h := make([]byte, headerSize)
	if _, err := f.ReadAt(h, at); err != nil {
		return nil, err
	}
	if magic := binary.LittleEndian.Uint32(h); magic != recordMagic && magic != record3Magic || binary.LittleEndian.Uint32(h[60:]) != checksum.Of(h[:60]) {
		return nil, nil
	}
	r := &record{at: at, header: h, entries: int(binary.LittleEndian.Uint32(h[4:])), added: int(binary.LittleEndian.Uint32(h[8:]))}
	r.position = binary.LittleEndian.Uint64(h[48:])
	room := uint64(size - at - headerSize)
	for i, n := range []*int64{&r.names, &r.codes, &r.low} {
		length := binary.LittleEndian.Uint64(h[12+8*i:])
		if length > room {
			return nil, nil
		}
		room -= length
		*n = int64(length)
		r.checksums[i] = binary.LittleEndian.Uint32(h[36+4*i:])
	}
	if r.codes != int64(r.added)*int64(dim) || r.low != r.codes {
		return nil, nil
	}
	return r, nil
}

// nextRecord returns the first record at or after offset at that has a valid header, or
// nil if there is none.
func nextRecord(f io.ReaderAt, at, size int64, dim int) (*record, error) {
	magic := []byte("rec") // of all formats
	b := make([]byte, 1<<20)
	for at < size {
		n, err := f.ReadAt(b[:min(int64(len(b)), size-at)], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		for from := 0; ; from++ {
			i := bytes.Index(b[from:n], magic)
			if i < 0 {
				break
			}
			from += i
			if r, err := readRecordHeader(f, at+int64(from), size, dim); r != nil || err != nil {
				return r, err
			}
		}
		if n < len(magic) {
			break
		}
		at += int64(n - len(magic) + 1)
	}
	return nil, nil
}

// section reads n bytes at offset at. ok reports whether they match the checksum.
func section(f io.ReaderAt, at, n int64, want uint32) (b []byte, ok bool, err error) {
	b = make([]byte, n)
	if _, err := f.ReadAt(b, at); err != nil {
		return nil, false, err
	}
	return b, checksum.Of(b) == want, nil
}

// readNames reads the names of r. ok is false if they are damaged.
func (r *record) readNames(f io.ReaderAt) (ok bool, err error) {
	b, ok, err := section(f, r.at+headerSize, r.names, r.checksums[0])
	if err != nil || !ok {
		return false, err
	}
	d := &packed.Reader{Rest: string(b)}
	r.clear = d.Byte() == 1
	r.docs = make([]payload, d.Length(1))
	for i := range r.docs {
		r.docs[i] = readPayload(d)
	}
	r.stale = d.List()
	if r.entries > len(d.Rest) || vectorSize*r.added > len(d.Rest) {
		return false, nil
	}
	r.fresh = make([]fresh, r.added)
	for i := range r.fresh {
		v := &r.fresh[i]
		copy(v.key[:], d.Take(keySize))
		v.scale, v.codeSum, v.sum = math.Float32frombits(readUint32(d)), readUint32(d), readUint32(d)
	}
	r.ids, r.doc, r.vectors = make([]string, r.entries), make([]uint32, r.entries), make([]uint32, r.entries)
	whole := binary.LittleEndian.Uint32(r.header) == record3Magic
	before := ""
	for i := range r.ids {
		doc, n := d.Number(), 0
		if !whole {
			n = d.Number()
		}
		if doc >= len(r.docs) || n > min(len(before), maxShared) {
			return false, nil
		}
		r.doc[i], r.ids[i], r.vectors[i] = uint32(doc), before[:n]+d.Text(), uint32(d.Number())
		before = r.ids[i]
	}
	return d.Done(), nil
}

// check reads the names of r, and reports whether they, the codes and the low bytes match
// their checksums.
func (r *record) check(f io.ReaderAt) (ok bool, err error) {
	if ok, err = r.readNames(f); err != nil || !ok {
		return false, err
	}
	if _, ok, err = section(f, r.codesAt(), r.codes, r.checksums[1]); err != nil || !ok {
		return false, err
	}
	_, ok, err = section(f, r.lowAt(), r.low, r.checksums[2])
	return ok, err
}

func (p *payload) append(b []byte) []byte {
	return store.AppendLabels(packed.AppendText(b, p.path), &p.labels)
}

// readPayload reads what payload.append wrote.
func readPayload(r *packed.Reader) payload {
	return payload{path: r.Text(), labels: store.ReadLabels(r)}
}

// readUint32 reads a number of 4 bytes.
func readUint32(r *packed.Reader) uint32 {
	if b := []byte(r.Take(4)); len(b) == 4 {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}
