package retriever

import (
	"encoding/json"
	"fmt"
)

// renderJSON renders v as a client receives it in structured content.
func renderJSON(v any) []string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("marshalling %T: %v", v, err)) // unreachable: answers hold nothing that does not marshal
	}
	return []string{string(b)}
}

// cost is the tokens of the largest rendering of v.
func (r *Retriever) cost(v any) int {
	most := 0
	for _, text := range r.options.Render(v) {
		most = max(most, r.sources.Budget.CountTokens(text))
	}
	return most
}

// omittedCost is the tokens of one entry in the list of omitted hits, with its
// comma.
func (r *Retriever) omittedCost(o Omitted) int { return r.cost(&o) + 1 }

// fit spends the budget in rank order: each hit gets its whole own text if that
// fits into the rest of the budget, else its best chunk, else it is omitted and
// only named. Hits after an omitted one may still fit. The final rendering of
// the answer is what keeps to the budget.
func (s *search) fit(a *Answer) {
	r := s.Retriever
	results := a.Results
	a.Results = []Result{}
	left := s.MaxTokens - r.cost(a)
	for i := range results {
		result := results[i]
		whole, part := result.whole, result.part
		result.whole, result.part = "", ""
		// Keep room to name every later hit that may have to be omitted.
		reserve := 0
		for j := i + 1; j < len(results); j++ {
			reserve += r.omittedCost(Omitted{place(results[j].Path, results[j].Anchor), 99_999})
		}
		reserve = min(reserve, left/2)
		fits := false
		for _, content := range []string{whole, part} {
			if content == "" || len(content) > 64*left {
				continue
			}
			result.Content = content
			if cost := r.cost(&result) + 2; cost <= left-reserve {
				left -= cost
				fits = true
				s.trace.fitted(&result, content == whole, cost)
				break
			}
		}
		if fits {
			a.Results = append(a.Results, result)
			continue
		}
		omitted := Omitted{Path: place(result.Path, result.Anchor), Tokens: r.sources.Budget.CountTokens(whole)}
		if cost := r.omittedCost(omitted); cost <= left {
			left -= cost
			a.Omitted = append(a.Omitted, omitted)
		}
	}
	if len(a.Results) == 0 && len(results) > 0 && a.Hint == "" {
		a.Hint = fmt.Sprintf("no hit fits into %d tokens: read the omitted ones with read_doc, or allow more", s.MaxTokens)
	}
	// The rendering of the whole may cost more than the sum of its parts.
	for r.cost(a) > s.MaxTokens {
		switch {
		case len(a.Omitted) > 0 && (len(a.Results) == 0 || len(a.Omitted) > len(a.Results)):
			a.Omitted = a.Omitted[:len(a.Omitted)-1]
		case len(a.Results) > 0:
			last := a.Results[len(a.Results)-1]
			a.Results = a.Results[:len(a.Results)-1]
			a.Omitted = append(a.Omitted, Omitted{Path: place(last.Path, last.Anchor), Tokens: r.sources.Budget.CountTokens(last.Content)})
		case a.Hint != "":
			a.Hint = ""
		default:
			return
		}
	}
}
