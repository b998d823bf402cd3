package benchmarks

import (
	"hash/maphash"
	"strings"

	"cairn/internal/store"
)

// phraseWords is the number of words of a phrase.
const phraseWords = 5

// sectionPhrases holds hashes of the phrases of every section of a folder. They find sections
// that answer equally, in editions of a book or in pages that were copied and changed.
type sectionPhrases struct {
	seed     maphash.Seed
	sections []phrased
}

type phrased struct {
	page    *page
	section *store.Section
	phrases map[uint64]bool
}

func phrasesOf(pages []*page) *sectionPhrases {
	f := &sectionPhrases{seed: maphash.MakeSeed()}
	for _, p := range pages {
		for i := range p.parsed.Sections {
			s := &p.parsed.Sections[i]
			f.sections = append(f.sections, phrased{p, s, f.phrases(p.text[s.Start:s.OwnEnd])})
		}
	}
	return f
}

func (f *sectionPhrases) phrases(text string) map[uint64]bool {
	words := wordsOf(text)
	out := make(map[uint64]bool, len(words))
	for i := 0; i+phraseWords <= len(words); i++ {
		out[maphash.String(f.seed, strings.Join(words[i:i+phraseWords], " "))] = true
	}
	return out
}

// copies returns the section of an item and the sections with at least half of its phrases.
func (f *sectionPhrases) copies(item *knownItem) []*knownItem {
	out := []*knownItem{item}
	of := f.phrases(item.page.text[item.section.Start:item.section.OwnEnd])
	for _, s := range f.sections {
		if s.section == item.section || len(of) == 0 {
			continue
		}
		shared := 0
		for phrase := range of {
			if s.phrases[phrase] {
				shared++
			}
		}
		if 2*shared >= len(of) {
			out = append(out, &knownItem{page: s.page, section: s.section})
		}
	}
	return out
}
