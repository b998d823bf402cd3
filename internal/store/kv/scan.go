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

// A scan reads a bbolt file page by page and checks every bound, because bbolt itself
// panics or loops on damaged pages. A scan records an unusable page as a problem and reads
// the others. Numbers are little-endian.
//
//	page      id uint64, flags uint16, count uint16, overflow uint32 (the number of
//	          pages that continue it), then the elements
//	headers   pages 0 and 1: magic, version, page size, flags (4 x uint32), root page,
//	          sequence, free list, pages in use, transaction (5 x uint64), FNV-1a of
//	          these 56 bytes (uint64); the header with the later transaction is valid
//	branch    per element: position and length of the key (2 x uint32), page uint64
//	leaf      per element: flags, position, lengths of key and value (4 x uint32); a
//	          position is relative to its element
//	bucket    a value in the root's leaves with flag 1: root page, sequence (2 x
//	          uint64); if the root page is 0, a leaf follows
const (
	pageHeader   = 16
	headerLength = 56
	boltMagic    = 0xED0CDAED
	branchFlag   = 1
	leafFlag     = 2
	freelistFlag = 16
	bucketFlag   = 1
	maxDepth     = 64
)

// header holds the fields of a file's header that a scan needs.
type header struct {
	pageSize                  int64
	root, freelist, pages, tx uint64
}

// readHeader returns the header of the last commit. If only one header is readable, it
// returns that one and an error, because the last commit may be lost.
func readHeader(r io.ReaderAt) (h header, err error) {
	first, ok := parseHeader(r, 0)
	size := first.pageSize
	if !ok {
		size = int64(os.Getpagesize())
	}
	second, alsoOK := parseHeader(r, size)
	if !ok && alsoOK || alsoOK && second.tx > first.tx {
		first = second
	}
	if !ok || !alsoOK {
		err = errors.New("a header is damaged")
	}
	return first, err
}

func parseHeader(r io.ReaderAt, at int64) (h header, ok bool) {
	b := make([]byte, pageHeader+headerLength+8)
	if _, err := r.ReadAt(b, at); err != nil {
		return h, false
	}
	b = b[pageHeader:]
	sum := fnv.New64a()
	sum.Write(b[:headerLength])
	u64 := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	size := binary.LittleEndian.Uint32(b[8:])
	if binary.LittleEndian.Uint32(b) != boltMagic || sum.Sum64() != u64(headerLength) || size < 512 || size > 1<<20 {
		return h, false
	}
	return header{pageSize: int64(size), root: u64(16), freelist: u64(32), pages: u64(40), tx: u64(48)}, true
}

// scan is the scan of one file at one commit.
type scan struct {
	r        io.ReaderAt
	size     int64 // bytes
	header   header
	plain    bool            // values have no checksums
	seen     map[uint64]bool // pages
	problems []string
	found    map[string]*digest // of the records read, by bucket
	digests  map[string]*digest // stored in the file, by bucket
	records  int
	visit    func(bucket string, key, value []byte) // may be nil
}

// maxProblems bounds the problems that a scan records.
const maxProblems = 20

func (s *scan) problem(format string, args ...any) {
	if len(s.problems) < maxProblems {
		s.problems = append(s.problems, fmt.Sprintf(format, args...))
	}
}

// scanFile reads all readable records of f, and calls visit, if it is not nil, with each.
func scanFile(f *os.File, plain bool, visit func(bucket string, key, value []byte)) *scan {
	info, err := f.Stat()
	if err != nil {
		return &scan{problems: []string{err.Error()}}
	}
	return scanPages(f, info.Size(), plain, visit)
}

func scanPages(r io.ReaderAt, size int64, plain bool, visit func(bucket string, key, value []byte)) *scan {
	s := &scan{r: r, size: size, plain: plain, seen: map[uint64]bool{}, found: map[string]*digest{}, digests: map[string]*digest{}, visit: visit}
	var err error
	if s.header, err = readHeader(r); err != nil {
		s.problem("%v", err)
	}
	if s.header.pageSize == 0 {
		return s
	}
	s.page(s.header.root, "", nil, nil, 0)
	s.checkFree()
	if plain {
		return s
	}
	for name, want := range s.digests {
		have := s.found[name]
		if have == nil {
			have = &digest{}
		}
		if !have.equal(want) {
			s.problem("the bucket %q has %d records and its digest counts %d, or records differ", name, have.count, want.count)
		}
		delete(s.found, name)
	}
	for name, d := range s.found {
		if d.count == 0 {
			continue
		}
		s.problem("the bucket %q has no digest", name)
	}
	return s
}

// read returns the content of a page and of the pages that continue it.
func (s *scan) read(id uint64) (flags, count int, content []byte, err error) {
	size := uint64(s.header.pageSize)
	if id < 2 || id >= s.header.pages || id > math.MaxInt64/size {
		return 0, 0, nil, errors.New("it is outside the file")
	}
	head := make([]byte, pageHeader)
	if _, err := s.r.ReadAt(head, int64(id*size)); err != nil {
		return 0, 0, nil, err
	}
	further := uint64(binary.LittleEndian.Uint32(head[12:]))
	if have := binary.LittleEndian.Uint64(head); have != id {
		return 0, 0, nil, fmt.Errorf("its number is %d", have)
	}
	if id+further >= s.header.pages || int64((id+further+1)*size) > s.size {
		return 0, 0, nil, errors.New("it goes beyond the end of the file")
	}
	for n := id; n <= id+further; n++ {
		if s.seen[n] {
			return 0, 0, nil, errors.New("it is used twice")
		}
		s.seen[n] = true
	}
	content = make([]byte, (further+1)*size)
	if _, err := s.r.ReadAt(content, int64(id*size)); err != nil {
		return 0, 0, nil, err
	}
	return int(binary.LittleEndian.Uint16(head[8:])), int(binary.LittleEndian.Uint16(head[10:])), content[pageHeader:], nil
}

// page reads a page of a bucket, "" for the root, and the pages below it. Its keys must be
// at least low and less than high; nil means no bound.
func (s *scan) page(id uint64, bucket string, low, high []byte, depth int) {
	if depth > maxDepth {
		s.problem("page %d: it is too deep", id)
		return
	}
	flags, count, content, err := s.read(id)
	switch {
	case err != nil:
		s.problem("page %d: %v", id, err)
	case flags == leafFlag:
		s.leaf(fmt.Sprintf("page %d", id), bucket, count, content, low, high)
	case flags != branchFlag || count == 0:
		s.problem("page %d: its kind is unknown", id)
	default:
		s.branch(id, bucket, count, content, low, high, depth)
	}
}

// element returns length bytes of content, at a position relative to the element at from.
// It returns nil if they are out of range.
func element(content []byte, from, position, length uint32) []byte {
	start := uint64(from) + uint64(position)
	if start+uint64(length) > uint64(len(content)) {
		return nil
	}
	return content[start : start+uint64(length) : start+uint64(length)]
}

func (s *scan) branch(id uint64, bucket string, count int, content []byte, low, high []byte, depth int) {
	keys, pages := make([][]byte, count), make([]uint64, count)
	for i := range count {
		at := uint32(16 * i)
		e := element(content, at, 0, 16)
		if e == nil {
			s.problem("page %d: it is truncated", id)
			count = i
			break
		}
		keys[i] = element(content, at, binary.LittleEndian.Uint32(e), binary.LittleEndian.Uint32(e[4:]))
		pages[i] = binary.LittleEndian.Uint64(e[8:])
		if keys[i] == nil || i > 0 && bytes.Compare(keys[i-1], keys[i]) >= 0 {
			s.problem("page %d: its keys are damaged", id)
		}
	}
	for i := range count {
		from, to := low, high
		if i > 0 {
			from = keys[i]
		}
		if i+1 < count {
			to = keys[i+1]
		}
		s.page(pages[i], bucket, from, to, depth+1)
	}
}

func (s *scan) leaf(what, bucket string, count int, content []byte, low, high []byte) {
	var last []byte
	for i := range count {
		at := uint32(16 * i)
		e := element(content, at, 0, 16)
		if e == nil {
			s.problem("%s: it is truncated", what)
			return
		}
		u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(e[at:]) }
		key := element(content, at, u32(4), u32(8))
		value := element(content, at, u32(4)+u32(8), u32(12))
		if key == nil || value == nil {
			s.problem("%s: a record is outside the page", what)
			continue
		}
		if bytes.Compare(key, low) < 0 || high != nil && bytes.Compare(key, high) >= 0 || last != nil && bytes.Compare(last, key) >= 0 {
			s.problem("%s: the key %.80q is out of order", what, key)
		}
		last = key
		switch isBucket := u32(0)&bucketFlag != 0; {
		case isBucket && bucket == "" && len(value) >= 16:
			s.bucket(string(key), value)
		case isBucket && s.plain && len(value) >= 16: // a nested bucket of another package
			s.bucket(bucket+"/"+string(key), value)
		case isBucket || bucket == "":
			s.problem("%s: the kind of a record is unknown", what)
		default:
			s.record(bucket, key, value)
		}
	}
}

// bucket reads the bucket that a value of the root describes.
func (s *scan) bucket(name string, value []byte) {
	if s.found[name] == nil && name != sumsBucket {
		s.found[name] = &digest{}
	}
	if root := binary.LittleEndian.Uint64(value); root != 0 {
		s.page(root, name, nil, nil, 0)
		return
	}
	inline := value[16:]
	if len(inline) < pageHeader || binary.LittleEndian.Uint16(inline[8:]) != leafFlag {
		s.problem("the bucket %q is damaged", name)
		return
	}
	s.leaf(fmt.Sprintf("bucket %q", name), name, int(binary.LittleEndian.Uint16(inline[10:])), inline[pageHeader:], nil, nil)
}

func (s *scan) record(bucket string, key, stored []byte) {
	value := stored
	if !s.plain {
		v, sum, ok := unseal(seed(bucket), key, stored)
		if !ok {
			s.problem("the record %.80q of the bucket %q is damaged", key, bucket)
			return
		}
		value = v
		if bucket == sumsBucket {
			s.digests[string(key)] = decodeDigest(value)
			return
		}
		s.found[bucket].add(sum)
	}
	s.records++
	if s.visit != nil {
		s.visit(bucket, key, value)
	}
}

// checkFree checks that no page is both in use and in the list of free pages, from which
// the next write would take it.
func (s *scan) checkFree() {
	if s.header.freelist == math.MaxUint64 {
		return
	}
	flags, count, content, err := s.read(s.header.freelist)
	if err != nil || flags != freelistFlag {
		s.problem("the list of free pages is damaged: %v", err)
		return
	}
	if count == math.MaxUint16 && len(content) >= 8 {
		count = int(min(binary.LittleEndian.Uint64(content), uint64(len(content)/8-1)))
		content = content[8:]
	}
	for i := range count {
		if 8*i+8 > len(content) {
			s.problem("the list of free pages is truncated")
			return
		}
		if id := binary.LittleEndian.Uint64(content[8*i:]); id < 2 || id >= s.header.pages || s.seen[id] {
			s.problem("page %d is in the list of free pages", id)
			return
		}
	}
}
