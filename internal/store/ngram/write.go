package ngram

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"slices"

	"cairn/internal/base/atomicfile"
	"cairn/internal/base/checksum"
	"cairn/internal/base/packed"
)

const (
	// maxPairs bounds the trigrams of recent files, which take 4 bytes each in memory and
	// 16 more while a segment is made of them.
	maxPairs = 4 << 20
	// blockSize is the least size of a block but the last in bytes.
	blockSize = 8 << 10
	// mergeAt is the number of segments of about the same size that are merged.
	mergeAt = 4
)

// flush writes the recent files to a segment, and merges segments. After an error the recent
// files are unknown. The caller holds x.writing.
func (x *Index) flush() error {
	if x.dir == "" || x.options.ReadOnly || len(x.recent) == 0 {
		return nil
	}
	files, pairs := x.recentPairs()
	s, err := x.write(files, x.next, x.next, func(add func(uint32, []uint32)) error {
		var numbers []uint32
		for len(pairs) > 0 {
			g := uint32(pairs[0] >> 32)
			numbers = numbers[:0]
			for len(pairs) > 0 && uint32(pairs[0]>>32) == g {
				numbers, pairs = append(numbers, uint32(pairs[0])), pairs[1:]
			}
			add(g, numbers)
		}
		return nil
	})
	x.mu.Lock()
	clear(x.recent)
	x.unsorted, x.pairs = nil, 0
	if err == nil {
		x.next++
		x.add(s)
	} else {
		x.complete = false
	}
	x.mu.Unlock()
	if err != nil {
		return err
	}
	return x.merge()
}

// recentPairs returns the recent files in the order of their paths, and their trigrams in
// order, each with the number of its file in the lower half.
func (x *Index) recentPairs() (files []File, pairs []uint64) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, r := range x.recent {
		files = append(files, r.File)
	}
	slices.SortFunc(files, byPath)
	pairs = make([]uint64, 0, x.pairs)
	for n, f := range files {
		for _, g := range x.recent[f.Path].trigrams {
			pairs = append(pairs, uint64(g)<<32|uint64(n))
		}
	}
	sortPairs(pairs)
	return files, pairs
}

// sortPairs sorts pairs by their upper halves, of 24 bits. It keeps the order of equal ones.
func sortPairs(pairs []uint64) {
	const digit = 12
	other := make([]uint64, len(pairs))
	for shift := 32; shift < 56; shift += digit {
		var starts [1<<digit + 1]int
		for _, p := range pairs {
			starts[p>>shift&(1<<digit-1)+1]++
		}
		for i := range starts[1:] {
			starts[i+1] += starts[i]
		}
		for _, p := range pairs {
			at := &starts[p>>shift&(1<<digit-1)]
			other[*at] = p
			*at++
		}
		pairs, other = other, pairs
	}
}

// write writes a segment. The files are in the order of their paths. lists adds the list of
// each trigram in order.
func (x *Index) write(files []File, first, last uint64, lists func(add func(uint32, []uint32)) error) (*segment, error) {
	if err := x.held(); err != nil {
		return nil, err
	}
	// The parent is missing if the index was removed.
	if err := os.Mkdir(x.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	path := filepath.Join(x.dir, segmentName(first, last))
	f, err := atomicfile.Create(path, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Discard()
	w := blockWriter{out: bufio.NewWriterSize(f, 1<<16)}
	if err := lists(w.add); err != nil {
		return nil, err
	}
	w.flush()
	table := packed.AppendText(nil, x.options.Rules)
	table = packed.AppendNumber(table, len(files))
	before := ""
	for _, f := range files {
		common := 0
		for common < min(len(before), len(f.Path)) && before[common] == f.Path[common] {
			common++
		}
		table = packed.AppendText(packed.AppendNumber(table, common), f.Path[common:])
		for _, n := range []int64{f.Size, f.ModTime, f.ChangeTime} {
			table = packed.AppendNumber(table, int(n))
		}
		isText := byte(0)
		if f.Text {
			isText = 1
		}
		table = append(table, isText)
		before = f.Path
	}
	table = packed.AppendNumber(table, len(w.blocks))
	for _, b := range w.blocks {
		table = packed.AppendNumber(packed.AppendNumber(table, int(b.first)), int(b.at))
	}
	tail := binary.LittleEndian.AppendUint64(nil, uint64(w.at))
	tail = append(binary.LittleEndian.AppendUint32(tail, checksum.Of(table)), magic...)
	_, _ = w.out.Write(table) // Flush returns the error
	_, _ = w.out.Write(tail)
	if err := w.out.Flush(); err != nil {
		return nil, err
	}
	if err := f.Commit(); err != nil {
		return nil, err
	}
	s := newSegment(path)
	if err := s.open(x.options.Rules); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// blockWriter writes the lists of a segment. Its writer keeps the first error.
type blockWriter struct {
	out           *bufio.Writer
	at            int64
	blocks        []block
	content, list []byte
	first, before uint32
}

func (w *blockWriter) add(trigram uint32, numbers []uint32) {
	if len(w.content) == 0 {
		w.first, w.before = trigram, trigram
	}
	w.list = appendList(w.list[:0], numbers)
	w.content = packed.AppendNumber(packed.AppendNumber(w.content, int(trigram-w.before)), len(numbers))
	w.content = append(packed.AppendNumber(w.content, len(w.list)), w.list...)
	if w.before = trigram; len(w.content) >= blockSize {
		w.flush()
	}
}

func (w *blockWriter) flush() {
	if len(w.content) == 0 {
		return
	}
	w.blocks = append(w.blocks, block{w.first, w.at})
	_, _ = w.out.Write(binary.LittleEndian.AppendUint32(nil, checksum.Of(w.content)))
	_, _ = w.out.Write(w.content)
	w.at += 4 + int64(len(w.content))
	w.content = w.content[:0]
}

// merge merges the newest segments while there are mergeAt of about the same size, and those
// that follow one that is mostly obsolete. The caller holds x.writing.
func (x *Index) merge() error {
	for {
		x.mu.RLock()
		old := slices.Clone(mergeable(x.segments))
		x.mu.RUnlock()
		if old == nil {
			return nil
		}
		if err := x.replace(old); err != nil {
			return err
		}
	}
}

// mergeable returns the segments to merge, nil for none.
func mergeable(segments []*segment) []*segment {
	size := func(s *segment) int { return bits.Len(uint(s.live)) / 2 } // the logarithm to base 4
	from := len(segments)
	for from > 0 && size(segments[from-1]) <= size(segments[len(segments)-1]) {
		from--
	}
	if len(segments)-from >= mergeAt {
		return segments[from:]
	}
	if from = slices.IndexFunc(segments, func(s *segment) bool { return 2*s.live < len(s.files) }); from >= 0 {
		return segments[from:]
	}
	return nil
}

// replace replaces the newest segments by one.
func (x *Index) replace(old []*segment) error {
	var files []File
	for _, s := range old {
		for n, f := range s.files {
			if s.lives(n) {
				files = append(files, f)
			}
		}
	}
	slices.SortFunc(files, byPath)
	numbers := make(map[string]uint32, len(files))
	for n, f := range files {
		numbers[f.Path] = uint32(n)
	}
	inputs := make([]*input, len(old))
	for i, s := range old {
		inputs[i] = &input{segment: s, to: make([]uint32, len(s.files))}
		for n, f := range s.files {
			if inputs[i].to[n] = removed; s.lives(n) {
				inputs[i].to[n] = numbers[f.Path]
			}
		}
	}
	s, err := x.write(files, old[0].first, old[len(old)-1].last, func(add func(uint32, []uint32)) error { return mergeLists(inputs, add) })
	if bad := slices.IndexFunc(inputs, func(i *input) bool { return i.err != nil }); bad >= 0 {
		x.drop(old[bad], inputs[bad].err)
		return nil
	}
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.segments = slices.DeleteFunc(x.segments, func(s *segment) bool { return slices.Contains(old, s) })
	x.add(s)
	for _, o := range old {
		x.remove(o)
	}
	return nil
}

// removed is the number of a file that is not in the merged segment.
const removed = 1<<32 - 1

// input reads the lists of a segment that is merged.
type input struct {
	*segment
	to    []uint32 // the numbers of the files in the merged segment
	block int
	ahead []list // of the block before
	err   error
}

// peek returns the next list, ok false at the end.
func (i *input) peek() (l list, ok bool) {
	for len(i.ahead) == 0 {
		if i.err != nil || i.block == len(i.blocks) {
			return l, false
		}
		i.err = i.lists(i.block, func(l list) bool { i.ahead = append(i.ahead, l); return true })
		i.block++
	}
	return i.ahead[0], true
}

// mergeLists calls add with the lists of all inputs. If it fails, an input has the error.
func mergeLists(inputs []*input, add func(uint32, []uint32)) error {
	var numbers, part []uint32
	for {
		least, found := uint32(1<<24), false
		for _, i := range inputs {
			l, ok := i.peek()
			if i.err != nil {
				return i.err
			}
			if ok {
				least, found = min(least, l.trigram), true
			}
		}
		if !found {
			return nil
		}
		numbers = numbers[:0]
		for _, i := range inputs {
			l, ok := i.peek()
			if !ok || l.trigram != least {
				continue
			}
			i.ahead = i.ahead[1:]
			if part, i.err = i.decode(l, part[:0]); i.err != nil {
				return i.err
			}
			for _, n := range part {
				if i.to[n] != removed {
					numbers = append(numbers, i.to[n])
				}
			}
		}
		if slices.Sort(numbers); len(numbers) > 0 {
			add(least, numbers)
		}
	}
}
