package kv

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"os"
)

// The pages of a bbolt file are checked before bbolt reads all of them, because bbolt
// panics or recurses without end on damaged pages. Numbers are little-endian.
//
//	page      id uint64, flags uint16, count uint16, overflow uint32 (the number of
//	          pages that continue it), then the elements
//	headers   pages 0 and 1: magic, version, page size, flags (4 x uint32), root page,
//	          sequence, free list, pages in use, transaction (5 x uint64), FNV-1a of
//	          these 56 bytes (uint64); the header with the later transaction is valid
//	branch    per element: position and length of the key (2 x uint32), page uint64
//	leaf      per element: flags, position, lengths of key and value (4 x uint32); a
//	          position is relative to its element
//	bucket    a value with flag 1: root page, sequence (2 x uint64); if the root page is
//	          0, a leaf follows
const (
	pageHeader   = 16
	headerLength = 56
	boltMagic    = 0xED0CDAED
	branchFlag   = 1
	leafFlag     = 2
	freelistFlag = 16
	bucketFlag   = 1
)

func u16(b []byte) int    { return int(binary.LittleEndian.Uint16(b)) }
func u32(b []byte) int    { return int(binary.LittleEndian.Uint32(b)) }
func u64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// header holds the fields of a file's header that a check needs.
type header struct {
	pageSize                  int64
	root, freelist, pages, tx uint64
}

// readHeaders returns the headers of the last commit and of the commit before. It fails if
// one is damaged, because bbolt then silently uses the other.
func readHeaders(r io.ReaderAt) (last, before header, err error) {
	first, err := readHeader(r, 0)
	if err != nil {
		return last, before, err
	}
	second, err := readHeader(r, first.pageSize)
	if second.tx > first.tx {
		first, second = second, first
	}
	return first, second, err
}

func readHeader(r io.ReaderAt, at int64) (header, error) {
	b := make([]byte, pageHeader+headerLength+8)
	_, err := r.ReadAt(b, at)
	b = b[pageHeader:]
	sum := fnv.New64a()
	sum.Write(b[:headerLength])
	size := u32(b[8:])
	if err != nil || u32(b) != boltMagic || sum.Sum64() != u64(b[headerLength:]) || size < 512 || size > 1<<20 {
		return header{}, errors.New("a header is damaged")
	}
	return header{pageSize: int64(size), root: u64(b[16:]), freelist: u64(b[32:]), pages: u64(b[40:]), tx: u64(b[48:])}, nil
}

// CheckPages checks the structure of a bbolt file of another package. It fails with a
// *CorruptError for damage on which bbolt would panic or recurse without end.
func CheckPages(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	last, _, err := readHeaders(f)
	if err == nil {
		err = checkPages(f, last)
	}
	if err != nil {
		return &CorruptError{Path: path, Reason: err.Error()}
	}
	return nil
}

// pages is a check of the pages of one commit.
type pages struct {
	r io.ReaderAt
	header
	read map[uint64]bool
}

// checkPages checks the pages that a commit uses, and that none of them is in the list of
// free pages, from which the next write would take it.
func checkPages(r io.ReaderAt, h header) (err error) {
	defer func() {
		if v := recover(); v != nil { // every offset is used as it was read
			err = fmt.Errorf("an offset is outside its page: %v", v)
		}
	}()
	p := &pages{r, h, map[uint64]bool{}}
	if err := p.tree(h.root, nil, nil); err != nil || h.freelist == math.MaxUint64 {
		return err
	}
	list, err := p.page(h.freelist)
	if err != nil || u16(list[8:]) != freelistFlag {
		return fmt.Errorf("the list of free pages is damaged: %v", err)
	}
	free, count := list[pageHeader:], u16(list[10:])
	if count == math.MaxUint16 {
		free, count = free[8:], int(min(u64(free), uint64(len(free))))
	}
	for i := range count {
		if id := u64(free[8*i:]); id < 2 || id >= h.pages || p.read[id] {
			return fmt.Errorf("page %d is in the list of free pages", id)
		}
	}
	return nil
}

// page returns a page and the pages that continue it.
func (p *pages) page(id uint64) ([]byte, error) {
	fail := func(what string) ([]byte, error) { return nil, fmt.Errorf("page %d: %s", id, what) }
	if id < 2 || id >= p.pages {
		return fail("it is outside the file")
	}
	head := make([]byte, pageHeader)
	if _, err := p.r.ReadAt(head, int64(id)*p.pageSize); err != nil {
		return fail(err.Error())
	}
	if have := u64(head); have != id {
		return fail(fmt.Sprint("its number is ", have))
	}
	further := uint64(u32(head[12:]))
	if id+further >= p.pages {
		return fail("it goes beyond the end of the file")
	}
	for n := id; n <= id+further; n++ {
		if p.read[n] {
			return fail("it is used twice")
		}
		p.read[n] = true
	}
	content := make([]byte, int64(further+1)*p.pageSize)
	if _, err := p.r.ReadAt(content, int64(id)*p.pageSize); err != nil {
		return fail(err.Error())
	}
	return content, nil
}

// tree checks a page of a bucket and the pages below it. Their keys must be at least low
// and less than high; nil means no bound.
func (p *pages) tree(id uint64, low, high []byte) error {
	content, err := p.page(id)
	if err != nil {
		return err
	}
	count, elements := u16(content[10:]), content[pageHeader:]
	switch flags := u16(content[8:]); {
	case flags == leafFlag:
		return p.leaf(id, content, low, high)
	case flags != branchFlag || count == 0:
		return fmt.Errorf("page %d: its kind is unknown", id)
	}
	key := func(i int) []byte {
		e := elements[16*i:]
		return e[u32(e):][:u32(e[4:])]
	}
	for i := range count {
		to := high
		if i+1 < count {
			to = key(i + 1)
		}
		if i > 0 {
			low = key(i)
		}
		if to != nil && bytes.Compare(key(i), to) >= 0 {
			return fmt.Errorf("page %d: the key %.80q is out of order", id, key(i))
		}
		if err := p.tree(u64(elements[16*i+8:]), low, to); err != nil {
			return err
		}
	}
	return nil
}

// leaf checks a leaf in the page id, and the buckets in it.
func (p *pages) leaf(id uint64, content, low, high []byte) error {
	var last []byte
	for i := range u16(content[10:]) {
		e := content[pageHeader+16*i:]
		key := e[u32(e[4:]):][:u32(e[8:])]
		value := e[u32(e[4:])+u32(e[8:]):][:u32(e[12:])]
		if bytes.Compare(key, low) < 0 || high != nil && bytes.Compare(key, high) >= 0 || i > 0 && bytes.Compare(last, key) >= 0 {
			return fmt.Errorf("page %d: the key %.80q is out of order", id, key)
		}
		last = key
		if u32(e)&bucketFlag == 0 {
			continue
		}
		var err error
		if root := u64(value); root != 0 {
			err = p.tree(root, nil, nil)
		} else if inline := value[16:]; u16(inline[8:]) != leafFlag {
			err = fmt.Errorf("the bucket %q is damaged", key)
		} else {
			err = p.leaf(id, inline, nil, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
