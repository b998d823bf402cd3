package keyword

import "strings"

// stopWords are Lucene's English stop words, which bm25s uses as well. What, when
// and how are none: they tell questions apart.
var stopWords = func() map[string]bool {
	m := make(map[string]bool)
	for _, w := range strings.Fields(`a an and are as at be but by for if in into is it no not of on
		or such that the their then there these they this to was will with`) {
		m[w] = true
	}
	return m
}()
