// Package ngram makes a filter of the n-grams in the lines of a file, so that a search for a
// string or a regular expression reads only the files that can match. It decides nothing
// else: the caller reads every candidate and looks for the pattern.
package ngram
