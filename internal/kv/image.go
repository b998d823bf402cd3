package kv

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
)

// Image is what a file of buckets holds, as one value in memory that never
// changes. It goes where there is no file: Update returns a changed copy, and
// Bytes is what another process reads with ReadImage. The zero value is empty.
// It is safe for concurrent use.
type Image struct {
	buckets map[string]*memory
}

// memory is a bucket of an image.
type memory struct {
	values   map[string][]byte
	sequence uint64
	// order are the keys in order; nil when they have changed since.
	ordering sync.Mutex
	order    []string
}

// An image as bytes, format 1, is compressed by gzip, which sums it up:
//
//	magic   8 bytes "cairnbox"
//	byte    version
//	buckets to the end, by name: name, sequence, number of keys, and by key
//	        each key and its value; texts follow their length, and all
//	        numbers are unsigned varints
const (
	imageMagic   = "cairnbox"
	imageVersion = 1
	// maxImage bounds what ReadImage unpacks.
	maxImage = 1 << 30
)

var errImage = errors.New("what is stored is damaged or of another version of cairn")

// View calls fn with a transaction that reads.
func (im *Image) View(fn func(*Tx) error) error {
	return fn(&Tx{image: im})
}

// Update calls fn with a transaction that writes to a copy, and returns the copy.
func (im *Image) Update(fn func(*Tx) error) (*Image, error) {
	next := &Image{buckets: maps.Clone(im.buckets)}
	if next.buckets == nil {
		next.buckets = map[string]*memory{}
	}
	if err := fn(&Tx{image: next, changed: map[string]bool{}, write: true}); err != nil {
		return nil, err
	}
	return next, nil
}

// memory returns a bucket, nil when a View asks for one that is absent.
func (t *Tx) memory(name string) *memory {
	m := t.image.buckets[name]
	if t.write && !t.changed[name] {
		if m == nil {
			m = &memory{values: map[string][]byte{}}
		} else {
			m = &memory{values: maps.Clone(m.values), sequence: m.sequence}
		}
		t.image.buckets[name], t.changed[name] = m, true
	}
	return m
}

func (m *memory) put(key, value []byte) error {
	if len(key) == 0 || len(key) > MaxKey {
		return fmt.Errorf("a key of %d bytes, want 1 to %d", len(key), MaxKey)
	}
	m.values[string(key)] = append([]byte{}, value...)
	m.order = nil
	return nil
}

func (m *memory) remove(key []byte) {
	delete(m.values, string(key))
	m.order = nil
}

func (m *memory) keys() []string {
	m.ordering.Lock()
	defer m.ordering.Unlock()
	if m.order == nil {
		m.order = slices.Sorted(maps.Keys(m.values))
	}
	return m.order
}

func (m *memory) seek(start []byte, fn func(key, value []byte) bool) {
	keys := m.keys()
	at, _ := slices.BinarySearch(keys, string(start))
	for _, key := range keys[at:] {
		if !fn([]byte(key), m.values[key]) {
			return
		}
	}
}

// Bytes is the image as ReadImage takes it; equal images have equal bytes.
func (im *Image) Bytes() ([]byte, error) {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		return nil, err // unreachable: the level is one
	}
	b := append([]byte(imageMagic), imageVersion)
	text := func(s []byte) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	for _, name := range slices.Sorted(maps.Keys(im.buckets)) {
		m := im.buckets[name]
		text([]byte(name))
		b = binary.AppendUvarint(binary.AppendUvarint(b, m.sequence), uint64(len(m.values)))
		for _, key := range m.keys() {
			text([]byte(key))
			text(m.values[key])
			if len(b) >= 1<<20 {
				if _, err := w.Write(b); err != nil {
					return nil, err // unreachable: it is memory
				}
				b = b[:0]
			}
		}
	}
	if _, err := w.Write(b); err != nil {
		return nil, err // unreachable, as above
	}
	if err := w.Close(); err != nil {
		return nil, err // unreachable, as above
	}
	return packed.Bytes(), nil
}

// ReadImage reads what Bytes wrote.
func ReadImage(packed []byte) (*Image, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, errImage
	}
	b, err := io.ReadAll(io.LimitReader(r, maxImage+1))
	if err != nil || len(b) > maxImage || len(b) <= len(imageMagic) || string(b[:len(imageMagic)]) != imageMagic || b[len(imageMagic)] != imageVersion {
		return nil, errImage
	}
	b = b[len(imageMagic)+1:]
	bad := false
	number := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			bad, b = true, nil
			return 0
		}
		b = b[n:]
		return v
	}
	text := func() []byte {
		n := number()
		if n > uint64(len(b)) {
			bad, b = true, nil
			return nil
		}
		s := b[:n:n]
		b = b[n:]
		return s
	}
	im := &Image{buckets: map[string]*memory{}}
	for len(b) > 0 {
		m := &memory{values: map[string][]byte{}}
		name := string(text())
		m.sequence = number()
		for n := number(); n > 0 && !bad; n-- {
			key := string(text())
			m.values[key] = text()
		}
		im.buckets[name] = m
	}
	if bad {
		return nil, errImage
	}
	return im, nil
}
