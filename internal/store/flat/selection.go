package flat

import "math"

// selection keeps every candidate whose score is at most slack below the k-th best so
// far. It determines the k-th best only when it holds many more than k candidates, so
// that most vectors of a scan cost one comparison with floor.
type selection struct {
	k, limit int
	slack    float32
	// floor is a lower bound of the k-th best score less slack.
	floor float32
	items []candidate
}

func (s *selection) reset(k int, slack float32) {
	*s = selection{k: k, limit: 2*k + 1024, slack: slack, floor: float32(math.Inf(-1)), items: s.items[:0]}
}

// add adds a candidate whose score is at least floor.
func (s *selection) add(c candidate) {
	s.items = append(s.items, c)
	if len(s.items) < s.limit {
		return
	}
	s.cut()
	if len(s.items) > s.limit/2 { // many scores are alike
		s.limit = 2 * len(s.items)
	}
}

// cut removes the candidates that are more than slack below the k-th best.
func (s *selection) cut() {
	if len(s.items) <= s.k {
		return
	}
	s.floor = max(s.floor, nth(s.items, s.k-1)-s.slack)
	kept := s.items[:0]
	for _, c := range s.items {
		if c.score >= s.floor {
			kept = append(kept, c)
		}
	}
	s.items = kept
}

// nth returns the score at index n of items sorted best first, and reorders items. It is
// Hoare's selection ("Algorithm 65: Find", CACM 4(7), 1961) with the median of three as
// pivot.
func nth(items []candidate, n int) float32 {
	low, high := 0, len(items)-1
	for low < high {
		a, b, c := items[low].score, items[low+(high-low)/2].score, items[high].score
		pivot := max(min(a, b), min(max(a, b), c))
		i, j := low, high
		for i <= j {
			for items[i].score > pivot {
				i++
			}
			for items[j].score < pivot {
				j--
			}
			if i <= j {
				items[i], items[j] = items[j], items[i]
				i++
				j--
			}
		}
		switch {
		case n <= j:
			high = j
		case n >= i:
			low = i
		default:
			return items[n].score
		}
	}
	return items[n].score
}
