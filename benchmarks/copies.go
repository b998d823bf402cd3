package benchmarks

import (
	"hash/maphash"
	"strings"
)

// phraseWords is the number of words of a phrase.
const phraseWords = 5

// addCopies sets the copies of items: the sections with at least half of the phrases of the
// item's section, as in editions of a book or in pages that were copied and changed.
func addCopies(pages []*page, items []*knownItem) {
	seed := maphash.MakeSeed()
	phrases := func(text string) map[uint64]bool {
		words := wordsOf(text)
		out := make(map[uint64]bool, len(words))
		for i := 0; i+phraseWords <= len(words); i++ {
			out[maphash.String(seed, strings.Join(words[i:i+phraseWords], " "))] = true
		}
		return out
	}
	in, size := map[uint64][]*knownItem{}, map[*knownItem]int{}
	for _, item := range items {
		if item.copies == nil {
			item.copies = []*knownItem{item}
		}
		if item.section == nil {
			continue
		}
		of := phrases(item.page.text[item.section.Start:item.section.OwnEnd])
		size[item] = len(of)
		for phrase := range of {
			in[phrase] = append(in[phrase], item)
		}
	}
	for _, p := range pages {
		for i := range p.parsed.Sections {
			s := &p.parsed.Sections[i]
			shared := map[*knownItem]int{}
			for phrase := range phrases(p.text[s.Start:s.OwnEnd]) {
				for _, item := range in[phrase] {
					shared[item]++
				}
			}
			for item, n := range shared {
				if s != item.section && 2*n >= size[item] {
					item.copies = append(item.copies, &knownItem{page: p, section: s})
				}
			}
		}
	}
}
