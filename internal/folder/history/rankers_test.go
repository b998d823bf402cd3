package history

import "cairn/graphrank"

// recent returns the files that were changed most, weighted by age, relative to the first.
func (x *subjects) recent() []graphrank.Scored {
	weights := map[string]float64{}
	for _, c := range x.commits {
		for _, f := range c.files {
			weights[f] += c.weight
		}
	}
	return ranked(weights)
}
