package bpe

import (
	"slices"
	"strings"
)

// short is the longest piece whose pairs are searched one by one. Nearly every
// piece is shorter; beyond it a heap is faster.
const short = 64

// count returns the number of tokens of one piece: byte pair encoding merges
// the neighbours whose union has the lowest rank, leftmost first, until no
// union is a token (Sennrich et al. 2016, algorithm 1).
func (r *ranks) count(piece string) int {
	switch {
	case len(piece) < 2 || r.of(piece) != noRank:
		return 1
	case len(piece) <= short:
		return r.countShort(piece)
	case strings.Count(piece, piece[:1]) == len(piece):
		return r.countRun(piece)
	}
	return r.countLong(piece)
}

// stretch is tokens of equal size side by side, in a run of one byte.
type stretch struct{ size, count int }

// mostStretches is what countRun keeps at most; a run takes a handful.
const mostStretches = 64

// countRun counts a run of one byte, such as the indentation of a list that is
// nested without end, or a rule of dashes. Only the sizes of its tokens matter,
// so that equal neighbours are merged at a stroke: with a heap, megabytes of
// blanks take seconds.
func (r *ranks) countRun(piece string) int {
	union := func(size int) uint32 {
		if size > len(piece) {
			return noRank
		}
		return r.of(piece[:size])
	}
	run := []stretch{{1, len(piece)}}
	for len(run) <= mostStretches {
		// The lowest rank, and of equal ones the leftmost.
		least, at, within := uint32(noRank), 0, false
		for i, s := range run {
			if s.count > 1 {
				if rank := union(2 * s.size); rank < least {
					least, at, within = rank, i, true
				}
			}
			if i+1 < len(run) {
				if rank := union(s.size + run[i+1].size); rank < least {
					least, at, within = rank, i, false
				}
			}
		}
		if least == noRank {
			n := 0
			for _, s := range run {
				n += s.count
			}
			return n
		}
		s := run[at]
		var merged []stretch
		switch {
		case !within: // the last of this stretch with the first of the next
			next := run[at+1]
			merged = []stretch{{s.size, s.count - 1}, {s.size + next.size, 1}, {next.size, next.count - 1}}
			run = join(run[:at], merged, run[at+2:])
			continue
		case union(3*s.size) > least && union(4*s.size) > least && (at == 0 || union(run[at-1].size+2*s.size) > least):
			// No union that arises on the way goes before those that are left.
			merged = []stretch{{2 * s.size, s.count / 2}, {s.size, s.count % 2}}
		default:
			merged = []stretch{{2 * s.size, 1}, {s.size, s.count - 2}}
		}
		run = join(run[:at], merged, run[at+1:])
	}
	return r.countLong(piece)
}

// join puts stretches after one another, those of equal size into one.
func join(parts ...[]stretch) []stretch {
	var run []stretch
	for _, s := range slices.Concat(parts...) {
		switch n := len(run); {
		case s.count == 0:
		case n > 0 && run[n-1].size == s.size:
			run[n-1].count += s.count
		default:
			run = append(run, s)
		}
	}
	return run
}

// countShort keeps the tokens in an array and scans it for each merge.
func (r *ranks) countShort(piece string) int {
	// Token i is piece[start[i]:start[i+1]]; pair[i] is the rank of its union
	// with the next.
	var start [short + 1]uint8
	var pair [short]uint32
	n := len(piece)
	for i := range n + 1 {
		start[i] = uint8(i)
	}
	union := func(i int) uint32 {
		if i+2 > n {
			return noRank
		}
		return r.of(piece[start[i]:start[i+2]])
	}
	for i := range n {
		pair[i] = union(i)
	}
	for {
		best := 0
		for i := 1; i < n; i++ {
			if pair[i] < pair[best] {
				best = i
			}
		}
		if pair[best] == noRank {
			return n
		}
		copy(start[best+1:n], start[best+2:n+1])
		copy(pair[best+1:n-1], pair[best+2:n])
		n--
		pair[best] = union(best)
		if best > 0 {
			pair[best-1] = union(best - 1)
		}
	}
}

// countLong links the tokens and takes the next merge off a heap, so that a
// word of a megabyte takes a fraction of a second: scanning it for each merge
// would be 2^40 steps.
func (r *ranks) countLong(piece string) int {
	// A token is named by the byte it begins at. end is the byte after it, 0
	// for a byte inside another token; previous is the token before it.
	size := len(piece)
	end := make([]uint32, size)
	previous := make([]uint32, size)
	pair := make([]uint32, size)
	var h heap
	look := func(token uint32) {
		pair[token] = noRank
		if next := end[token]; next < uint32(size) {
			pair[token] = r.of(piece[token:end[next]])
			if pair[token] != noRank {
				h.push(uint64(pair[token])<<32 | uint64(token))
			}
		}
	}
	for i := range end {
		end[i] = uint32(i + 1)
		previous[i] = uint32(max(i-1, 0))
	}
	for i := range end {
		look(uint32(i))
	}
	n := size
	for len(h) > 0 {
		least := h.pop()
		token := uint32(least)
		if end[token] == 0 || pair[token] != uint32(least>>32) {
			continue // merged since it was pushed
		}
		next := end[token]
		end[token], end[next] = end[next], 0
		if after := end[token]; after < uint32(size) {
			previous[after] = token
		}
		n--
		look(token)
		if token > 0 {
			look(previous[token])
		}
	}
	return n
}

// heap is a binary min-heap of rank<<32 | position: the lowest rank first, and
// of equal ranks the leftmost.
type heap []uint64

func (h *heap) push(v uint64) {
	s := append(*h, v)
	i := len(s) - 1
	for i > 0 && s[(i-1)/2] > v {
		s[i] = s[(i-1)/2]
		i = (i - 1) / 2
	}
	s[i] = v
	*h = s
}

func (h *heap) pop() uint64 {
	s := *h
	least, v := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	i := 0
	for {
		child := 2*i + 1
		if child >= len(s) {
			break
		}
		if child+1 < len(s) && s[child+1] < s[child] {
			child++
		}
		if v <= s[child] {
			break
		}
		s[i] = s[child]
		i = child
	}
	if len(s) > 0 {
		s[i] = v
	}
	return least
}
