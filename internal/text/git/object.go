package git

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
)

// The types of objects in a pack.
const (
	commitObject = 1
	treeObject   = 2
	blobObject   = 3
	tagObject    = 4
	offsetDelta  = 6
	hashDelta    = 7
)

var typeNames = map[string]int{"commit": commitObject, "tree": treeObject, "blob": blobObject, "tag": tagObject}

// object returns the content of an object of type want. The caller does not change it.
func (r *Repository) object(h Hash, want int) ([]byte, error) {
	typ, content, err := r.find(h)
	if err == nil && typ != want {
		err = errors.New("wrong type")
	}
	if err != nil {
		return nil, fmt.Errorf("git object %s: %w", h, err)
	}
	return content, nil
}

// find looks an object up in the packs, then among the loose objects.
func (r *Repository) find(h Hash) (typ int, content []byte, err error) {
	for _, p := range r.packs {
		if offset, ok := p.find(h); ok {
			return r.packed(place{p, offset})
		}
	}
	return r.loose(h)
}

// loose reads an object that has a file of its own.
func (r *Repository) loose(h Hash) (int, []byte, error) {
	name := h.String()
	f, _, err := openFile(r.top, "objects/"+name[:2]+"/"+name[2:])
	if err != nil {
		return 0, nil, err
	}
	defer f.Close()
	content, err := r.inflate(f, -1)
	if err != nil {
		return 0, nil, err
	}
	header, content, ok := bytes.Cut(content, []byte{0})
	typ, size, _ := bytes.Cut(header, []byte{' '})
	if n, err := strconv.Atoi(string(size)); !ok || err != nil || n != len(content) {
		return 0, nil, fs.ErrInvalid
	}
	return typeNames[string(typ)], content, nil
}

// inflate decompresses the start of in to size bytes; size -1 means all of in.
func (r *Repository) inflate(in io.Reader, size int64) ([]byte, error) {
	if size > maxObject {
		return nil, ErrLimit
	}
	r.buffer.Reset(in)
	var err error
	if r.zlib == nil {
		r.zlib, err = zlib.NewReader(&r.buffer)
	} else {
		err = r.zlib.(zlib.Resetter).Reset(&r.buffer, nil)
	}
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if size >= 0 {
		out.Grow(int(size) + bytes.MinRead)
	}
	n, err := out.ReadFrom(io.LimitReader(r.zlib, maxObject+1))
	// Even an empty object is some work, so that the number of objects has a limit.
	if r.work += n + 100; err == nil && (n > maxObject || r.work > maxWork) {
		err = ErrLimit
	}
	if err == nil && size >= 0 && n != size {
		err = fmt.Errorf("%d bytes instead of %d", n, size)
	}
	return out.Bytes(), err
}

// place is where a pack contains an object.
type place struct {
	pack   *pack
	offset int64
}

// cached is the content of an object.
type cached struct {
	typ     int
	content []byte
}

// cache holds the objects that other objects are often deltas of. It drops the older half
// when the newer one is full.
type cache struct {
	newer, older map[place]cached
	bytes        int
}

const maxCache = 16 << 20 // bytes of each half

func (c *cache) get(at place) (cached, bool) {
	if v, ok := c.newer[at]; ok {
		return v, true
	}
	v, ok := c.older[at]
	if ok {
		c.put(at, v)
	}
	return v, ok
}

func (c *cache) put(at place, v cached) {
	if c.newer == nil || c.bytes > maxCache {
		c.newer, c.older, c.bytes = map[place]cached{}, c.newer, 0
	}
	c.newer[at] = v
	c.bytes += len(v.content) + 100
}
