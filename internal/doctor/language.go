package doctor

import (
	"fmt"
	"strings"
	"unicode"

	"cairn/internal/markdown"
	"cairn/internal/query"
)

// englishModel is the embedding model that was trained on English alone.
const englishModel = "all-MiniLM-L6-v2"

// Of English prose every third word is a stop word, of references full of names every
// tenth. A text of fewer than minWords words says nothing about its language.
const (
	minStopShare = 0.04
	minWords     = 50
	maxSample    = 16 << 10 // bytes of a document that are looked at
)

// languages counts the bytes of documents, and those of documents that are not English.
type languages struct{ all, other int }

func (l *languages) add(path string, src []byte) {
	text := markdown.Plain(path, src[:min(len(src), maxSample)])
	words, stops, foreign, letters := 0, 0, 0, 0
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' }) {
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
	l.all += len(src)
	if foreign > letters/2 || words >= minWords && float64(stops) < minStopShare*float64(words) {
		l.other += len(src)
	}
}

// report warns when most of a folder is in another language than the model's.
func (l *languages) report(r *Report, model string) {
	if l.other*2 <= l.all || !strings.HasPrefix(model, englishModel+"@") {
		return
	}
	r.add(Finding{Check: "index", Kind: "language",
		Message: fmt.Sprintf("%d %% of the text is not English, and %s knows no other language: only the words are matched well", 100*l.other/l.all, englishModel),
		Fix:     "index with `--model DIR`, the folder of a multilingual ONNX encoder, or search with `--mode keyword`"})
}
