package query

import "strings"

// stopWords are Lucene's English stop words, which bm25s uses as well. They do not include
// what, when and how, which distinguish questions.
var stopWords = func() map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq(`a an and are as at be but by for if in into is it no not of on
		or such that the their then there these they this to was will with`) {
		m[w] = true
	}
	return m
}()

// IsStopWord reports whether a lower-case word carries no information about the topic of a
// text.
func IsStopWord(word string) bool { return stopWords[word] }

// StopWords returns all stop words. The caller must not change the map.
func StopWords() map[string]bool { return stopWords }
