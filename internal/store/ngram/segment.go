package ngram

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"

	"cairn/internal/base/checksum"
	"cairn/internal/base/packed"
)

// segment is an open segment. Only files, dead and live change, under Index.mu.
type segment struct {
	path        string
	first, last uint64 // the segments that it replaces

	file   *os.File
	files  []File
	blocks []block
	end    int64    // of the blocks
	dead   []uint64 // a bit for each file whose record is obsolete
	live   int
}

type block struct {
	first uint32 // trigram
	at    int64
}

const (
	magic    = "cairn-n1"
	tailSize = 8 + 4 + len(magic)
)

// errRules is returned for a segment of other rules.
var errRules = errors.New("made by other rules")

// newSegment returns a segment that is not open, or nil if path is not that of one.
func newSegment(path string) *segment {
	s := &segment{path: path}
	name := filepath.Base(path)
	if n, err := fmt.Sscanf(name, "%08x-%08x", &s.first, &s.last); n != 2 || err != nil || name != segmentName(s.first, s.last) || s.last < s.first {
		return nil
	}
	return s
}

func segmentName(first, last uint64) string { return fmt.Sprintf("%08x-%08x", first, last) }

// open opens the file and reads its table.
func (s *segment) open(rules string) (err error) {
	if s.file, err = os.Open(s.path); err != nil {
		return err
	}
	damaged := func(what string) error { return fmt.Errorf("%s: %s", s.path, what) }
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	tail := make([]byte, tailSize)
	if size < int64(tailSize) {
		return damaged("it is cut off")
	}
	if _, err := s.file.ReadAt(tail, size-int64(tailSize)); err != nil {
		return err
	}
	s.end = int64(binary.LittleEndian.Uint64(tail))
	if string(tail[12:]) != magic || s.end < 0 || s.end > size-int64(tailSize) {
		return damaged("its end is not that of a segment")
	}
	table := make([]byte, size-int64(tailSize)-s.end)
	if _, err := s.file.ReadAt(table, s.end); err != nil {
		return err
	}
	if checksum.Of(table) != binary.LittleEndian.Uint32(tail[8:]) {
		return damaged("the checksum of its table is wrong")
	}
	r := &packed.Reader{Rest: string(table)}
	if r.Text() != rules {
		return errRules
	}
	s.files = make([]File, r.Length(6))
	before := ""
	for i := range s.files {
		f := &s.files[i]
		common := min(r.Number(), len(before))
		f.Path = before[:common] + r.Text()
		f.Size, f.ModTime, f.ChangeTime, f.Text = int64(r.Number()), int64(r.Number()), int64(r.Number()), r.Byte() == 1
		before = f.Path
	}
	s.blocks = make([]block, r.Length(2))
	for i := range s.blocks {
		s.blocks[i] = block{uint32(r.Number()), int64(r.Number())}
	}
	if !r.Done() {
		return damaged("its table is wrong")
	}
	s.dead, s.live = make([]uint64, len(s.files)/64+1), len(s.files)
	return nil
}

func (s *segment) close() {
	if s.file != nil {
		s.file.Close() // it was only read
	}
}

func (s *segment) lives(n int) bool { return s.dead[n>>6]>>(n&63)&1 == 0 }

// read returns the content of a block.
func (s *segment) read(i int) (string, error) {
	end := s.end
	if i+1 < len(s.blocks) {
		end = s.blocks[i+1].at
	}
	if end-s.blocks[i].at < 4 {
		return "", fmt.Errorf("%s: block %d is cut off", s.path, i)
	}
	b := make([]byte, end-s.blocks[i].at)
	if _, err := s.file.ReadAt(b, s.blocks[i].at); err != nil {
		return "", err
	}
	if checksum.Of(b[4:]) != binary.LittleEndian.Uint32(b) {
		return "", fmt.Errorf("%s: the checksum of block %d is wrong", s.path, i)
	}
	return string(b[4:]), nil
}

// list is the list of the files with a trigram.
type list struct {
	trigram uint32
	n       int
	encoded string
}

// lists calls fn with the lists of a block until it returns false.
func (s *segment) lists(i int, fn func(list) bool) error {
	content, err := s.read(i)
	if err != nil {
		return err
	}
	r := &packed.Reader{Rest: content}
	for g := s.blocks[i].first; r.Rest != ""; {
		g += uint32(r.Number())
		if l := (list{g, r.Number(), r.Text()}); r.Bad || l.n > len(s.files) {
			return fmt.Errorf("%s: block %d is wrong", s.path, i)
		} else if !fn(l) {
			return nil
		}
	}
	return nil
}

// find returns the list of a trigram; one that does not occur has no files.
func (s *segment) find(trigram uint32) (found list, err error) {
	i := sort.Search(len(s.blocks), func(i int) bool { return s.blocks[i].first > trigram }) - 1
	if i < 0 {
		return list{}, nil
	}
	err = s.lists(i, func(l list) bool {
		if l.trigram == trigram {
			found = l
		}
		return l.trigram < trigram
	})
	return found, err
}

// decode appends the files of a list to into.
func (s *segment) decode(l list, into []uint32) ([]uint32, error) {
	into, ok := decodeList([]byte(l.encoded), l.n, len(s.files), into)
	if !ok {
		return nil, fmt.Errorf("%s: the list of a trigram is wrong", s.path)
	}
	return into, nil
}

// verify reads the segment and returns its size.
func (s *segment) verify(ctx context.Context) (int64, error) {
	info, err := s.file.Stat()
	if err != nil {
		return 0, err
	}
	for i := range s.blocks {
		if err = ctx.Err(); err == nil {
			_, err = s.read(i)
		}
		if err != nil {
			break
		}
	}
	return info.Size(), err
}

// The bounds of a search. Past them it selects more files than necessary.
const (
	maxLists = 4096 // lists to read for one query
	fewFiles = 8    // reading them takes less time than another list
	// rareShare: a list that is that much longer than the files found so far is not read.
	rareShare = 200
)

// search evaluates a query in a segment.
type search struct {
	*segment
	left int // lists to read
}

// eval returns the files that fulfil q in order; everything reports that all can.
func (s *search) eval(q *Query) (files []uint32, everything bool, err error) {
	switch q.op {
	case literal:
		return s.literal(q.literal)
	case all:
		everything = true
		for _, sub := range q.of {
			found, unknown, err := s.eval(sub)
			switch {
			case err != nil:
				return nil, false, err
			case unknown:
			case everything:
				files, everything = found, false
			default:
				files = intersect(files, found)
			}
			if !everything && len(files) == 0 {
				break
			}
		}
		return files, everything, nil
	case any:
		for _, sub := range q.of {
			found, unknown, err := s.eval(sub)
			if err != nil || unknown {
				return nil, unknown, err
			}
			files = append(files, found...)
		}
		slices.Sort(files)
		return slices.Compact(files), false, nil
	}
	return nil, true, nil
}

// literal returns the files with all trigrams of a literal, the rarest first.
func (s *search) literal(text string) (files []uint32, everything bool, err error) {
	grams := trigramsOf(text)
	slices.Sort(grams)
	grams = slices.Compact(grams)
	if s.left -= len(grams); s.left < 0 {
		return nil, true, nil
	}
	lists := make([]list, len(grams))
	for i, g := range grams {
		if lists[i], err = s.find(g); err != nil || lists[i].n == 0 {
			return nil, false, err
		}
	}
	slices.SortFunc(lists, func(a, b list) int { return cmp.Compare(a.n, b.n) })
	var other []uint32
	for i, l := range lists {
		switch {
		case i == 0:
			files, err = s.decode(l, nil)
		case len(files) <= fewFiles || l.n/rareShare > len(files):
			return files, false, nil
		default:
			if other, err = s.decode(l, other[:0]); err == nil {
				files = intersect(files, other)
			}
		}
		if err != nil {
			return nil, false, err
		}
	}
	return files, false, nil
}

// intersect returns the numbers of a that are in b, in the memory of a.
func intersect(a, b []uint32) []uint32 {
	kept := a[:0]
	for _, n := range a {
		for len(b) > 0 && b[0] < n {
			b = b[1:]
		}
		if len(b) > 0 && b[0] == n {
			kept = append(kept, n)
		}
	}
	return kept
}
