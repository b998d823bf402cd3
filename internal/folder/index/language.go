package index

import (
	"fmt"
	"strings"
	"unicode"

	"cairn/internal/store/docs"
	"cairn/internal/text/markdown"
	"cairn/internal/text/query"
)

// englishModel is the name of the embedding model that was trained on English alone.
const englishModel = "all-MiniLM-L6-v2"

// In English prose every third word is a stop word, in references full of names every
// tenth. A text of fewer than minWords words is too short to judge.
const (
	minStopShare = 0.04
	minWords     = 50
	maxSample    = 4 << 10 // bytes read of a document
	samples      = 64      // documents read of a folder
)

// notEnglish estimates the percentage of the documents' bytes that are not English, from
// a sample of the documents that is evenly spaced by path.
func notEnglish(r *docs.Reader, paths []string) int {
	all, other := 0, 0
	for i := range min(samples, len(paths)) {
		path := paths[i*len(paths)/min(samples, len(paths))]
		src := r.Text(path)
		all += len(src)
		if !isEnglish(path, src[:min(len(src), maxSample)]) {
			other += len(src)
		}
	}
	return 100 * other / max(all, 1)
}

// isEnglish reports whether the text of a file may be English.
func isEnglish(path string, src []byte) bool {
	words, stops, foreign, letters := 0, 0, 0, 0
	for word := range strings.FieldsFuncSeq(markdown.Plain(path, "", src), func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' }) {
		words++
		if query.IsStopWord(strings.ToLower(word)) {
			stops++
		}
		for _, r := range word {
			letters++
			if !unicode.Is(unicode.Latin, r) && r != '\'' {
				foreign++
			}
		}
	}
	return foreign <= letters/2 && (words < minWords || float64(stops) >= minStopShare*float64(words))
}

// Language returns a warning if most of the text is not English and the model supports
// English only, and what the user can do. Both are "" if there is no warning.
func (s *Status) Language() (message, fix string) {
	if s.NotEnglish == 0 {
		return "", ""
	}
	return fmt.Sprintf("%d %% of the text is not English, and %s supports no other language: search by meaning finds little, search by words works", s.NotEnglish, englishModel),
		"install a multilingual encoder with `cairn model add`, or search with `--mode keyword`"
}
