package git

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sort"
	"strings"
)

// pack is a file of objects with its index, of version 2: the hashes in order, then their
// checksums, offsets and long offsets.
type pack struct {
	data                  *os.File
	size                  int64 // of data
	hashes, offsets, long []byte
}

var errPack = errors.New("damaged pack")

// openPacks opens the packs, the largest first. It leaves out a pack without a usable index.
func (r *Repository) openPacks() error {
	entries, err := fs.ReadDir(r.top.FS(), "objects/pack")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	left := int64(maxIndexes)
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".idx")
		if !ok {
			continue
		}
		index, err := readFile(r.top, "objects/pack/"+e.Name(), left)
		if left -= int64(len(index)); errors.Is(err, ErrLimit) || len(r.packs) == maxPacks {
			return ErrLimit
		}
		p := &pack{}
		if err != nil || !p.parse(index) {
			continue
		}
		var info fs.FileInfo
		if p.data, info, err = openFile(r.top, "objects/pack/"+name+".pack"); err == nil {
			p.size = info.Size()
			r.packs = append(r.packs, p)
		}
	}
	slices.SortFunc(r.packs, func(a, b *pack) int { return cmp.Compare(len(b.hashes), len(a.hashes)) })
	return nil
}

// parse divides an index into its parts.
func (p *pack) parse(index []byte) bool {
	const head = 8 + 4*256 // the version, and the number of objects by their first byte
	if len(index) < head || !bytes.HasPrefix(index, []byte("\377tOc\000\000\000\002")) {
		return false
	}
	n := int64(binary.BigEndian.Uint32(index[head-4:]))
	if int64(len(index)) < head+28*n {
		return false
	}
	p.hashes, p.offsets, p.long = index[head:head+20*n], index[head+24*n:head+28*n], index[head+28*n:]
	return true
}

// find returns the offset of an object in the pack.
func (p *pack) find(h Hash) (int64, bool) {
	i, ok := sort.Find(len(p.hashes)/len(h), func(i int) int { return bytes.Compare(h[:], p.hashes[i*len(h):][:len(h)]) })
	if !ok {
		return 0, false
	}
	offset := int64(binary.BigEndian.Uint32(p.offsets[4*i:]))
	if offset < 1<<31 {
		return offset, true
	}
	at := 8 * (offset - 1<<31)
	if at+8 > int64(len(p.long)) {
		return 0, false
	}
	offset = int64(binary.BigEndian.Uint64(p.long[at:]))
	return offset, offset >= 0
}

// entry is the header of an object in a pack.
type entry struct {
	typ  int
	size int64 // inflated
	data int64 // offset of the compressed data
	base place // of a delta
}

// entry reads the header of the object at an offset.
func (r *Repository) entry(p *pack, offset int64) (e entry, err error) {
	var b [64]byte
	n, err := p.data.ReadAt(b[:], offset)
	if err != nil && (err != io.EOF || n < 21) {
		return e, err
	}
	i := 1
	e.typ, e.size = int(b[0]>>4&7), int64(b[0]&15)
	for shift := 4; b[i-1] >= 0x80; shift += 7 {
		if shift > 32 {
			return e, errPack
		}
		e.size |= int64(b[i]&0x7f) << shift
		i++
	}
	switch e.typ {
	case offsetDelta:
		back, used := offsetOf(b[i:])
		if used == 0 || back <= 0 || back > offset {
			return e, errPack
		}
		i += used
		e.base = place{p, offset - back}
	case hashDelta:
		at, ok := p.find(Hash(b[i : i+20]))
		if !ok {
			return e, errPack
		}
		i += 20
		e.base = place{p, at}
	}
	e.data = offset + int64(i)
	return e, nil
}

// offsetOf decodes the number at the start of b, in git's encoding of offsets, and returns
// how many bytes it uses, 0 if it is too long.
func offsetOf(b []byte) (n int64, used int) {
	for i, c := range b[:min(len(b), 9)] {
		if i > 0 {
			n = (n + 1) << 7
		}
		n |= int64(c & 0x7f)
		if c < 0x80 {
			return n, i + 1
		}
	}
	return 0, 0
}

// packed returns the object at a place: a base and the deltas that change it.
func (r *Repository) packed(at place) (int, []byte, error) {
	var deltas [][]byte
	var places []place
	total := 0
	object, known := r.cache.get(at)
	for !known {
		e, err := r.entry(at.pack, at.offset)
		if err != nil {
			return 0, nil, err
		}
		content, err := r.inflate(io.NewSectionReader(at.pack.data, e.data, at.pack.size), e.size)
		if err != nil {
			return 0, nil, err
		}
		if e.base.pack == nil {
			object = cached{e.typ, content}
			r.cache.put(at, object)
			break
		}
		if total += len(content); total > maxChain || len(deltas) == maxDeltas {
			return 0, nil, ErrLimit
		}
		deltas, places = append(deltas, content), append(places, at)
		at = e.base
		object, known = r.cache.get(at)
	}
	for i, delta := range slices.Backward(deltas) {
		content, err := patch(object.content, delta)
		if err != nil {
			return 0, nil, err
		}
		if total += len(content); total > maxChain {
			return 0, nil, ErrLimit
		}
		r.work += int64(len(content))
		object.content = content
		if object.typ == treeObject {
			r.cache.put(places[i], object)
		}
	}
	return object.typ, object.content, nil
}

// patch applies a delta to its base.
func patch(base, delta []byte) ([]byte, error) {
	number := func() (n uint64) {
		v, used := binary.Uvarint(delta)
		delta = delta[max(used, 0):]
		return v
	}
	if size := number(); size != uint64(len(base)) {
		return nil, errPack
	}
	size := number()
	if size > maxObject {
		return nil, ErrLimit
	}
	out := make([]byte, 0, size)
	for len(delta) > 0 {
		op := delta[0]
		delta = delta[1:]
		var part []byte
		if op&0x80 == 0 { // insert the next op bytes
			if op == 0 || int(op) > len(delta) {
				return nil, errPack
			}
			part, delta = delta[:op], delta[op:]
		} else { // copy from the base
			var from, n uint32
			for i := range 7 {
				if op&(1<<i) == 0 {
					continue
				}
				if len(delta) == 0 {
					return nil, errPack
				}
				if i < 4 {
					from |= uint32(delta[0]) << (8 * i)
				} else {
					n |= uint32(delta[0]) << (8 * (i - 4))
				}
				delta = delta[1:]
			}
			n = cmp.Or(n, 0x10000)
			if uint64(from)+uint64(n) > uint64(len(base)) {
				return nil, errPack
			}
			part = base[from : from+n]
		}
		if uint64(len(out)+len(part)) > size {
			return nil, errPack
		}
		out = append(out, part...)
	}
	if uint64(len(out)) != size {
		return nil, fmt.Errorf("%w: %d bytes instead of %d", errPack, len(out), size)
	}
	return out, nil
}
