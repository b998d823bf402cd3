package benchmarks

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// fileReader reads the files of a set like an agent without a search index.
type fileReader struct {
	m     *measurement
	texts map[string]string  // texts of the files, by document ID
	lower []lowered          // in the order of the set
	in    map[string][]int32 // the documents with a word, ascending
	all   string             // the words, each after a line break
	sizes map[string]int     // tokens of the whole files, by document ID

	// found caches the pieces for query, because grep runs once for each budget.
	query string
	found []piece
}

type lowered struct{ id, text string }

func newFileReader(m *measurement) *fileReader {
	f := &fileReader{m: m, texts: map[string]string{}, in: map[string][]int32{}, sizes: map[string]int{}}
	for i := range m.set.documents {
		d := &m.set.documents[i]
		text := d.markdown()
		f.texts[d.ID] = text
		f.lower = append(f.lower, lowered{d.ID, strings.ToLower(text)})
		words := wordsOf(text)
		slices.Sort(words)
		for _, w := range slices.Compact(words) {
			f.in[w] = append(f.in[w], int32(i))
		}
	}
	f.all = "\n" + strings.Join(slices.Collect(maps.Keys(f.in)), "\n") + "\n"
	return f
}

// whole reads whole files in the order of the ranking. It truncates the last one to the
// budget.
func (f *fileReader) whole(_ context.Context, _ *RunQuery, ranking []string, budget int) ([]piece, error) {
	var pieces []piece
	for _, id := range ranking {
		if budget <= 0 {
			break
		}
		text := f.texts[id]
		size, ok := f.sizes[id]
		if !ok {
			size = f.m.o.Budget.CountTokens(text)
			f.sizes[id] = size
		}
		if size > budget {
			text = text[:len(text)*budget/size]
		}
		size = min(size, budget)
		pieces = append(pieces, piece{id, 1, 1 + strings.Count(text, "\n"), size, size})
		budget -= size
	}
	return pieces, nil
}

// grep reads the output of rg -i --heading -n -C 2 for the words of the query. Files with the
// most different words come first.
func (f *fileReader) grep(_ context.Context, q *RunQuery, _ []string, budget int) ([]piece, error) {
	if f.query != q.ID || f.found == nil {
		f.query, f.found = q.ID, f.matches(f.words(q.Text))
	}
	var pieces []piece
	for _, p := range f.found {
		if budget <= 0 {
			break
		}
		p.text, p.answer = min(p.text, budget), min(p.answer, budget)
		budget -= p.answer
		pieces = append(pieces, p)
	}
	return pieces, nil
}

// words returns the words that a person would search for: those of at least three letters
// that are in at most a fifth of the documents, or all words if there are none.
func (f *fileReader) words(text string) []string {
	all := wordsOf(text)
	slices.Sort(all)
	all = slices.Compact(all)
	rare := slices.DeleteFunc(slices.Clone(all), func(w string) bool { return len(w) < 3 || 5*len(f.in[w]) > len(f.lower) })
	if len(rare) == 0 {
		return all
	}
	return rare
}

// grepFiles bounds the files that are searched line by line. grepLines is the number of lines
// before and after a match.
const (
	grepFiles = 100
	grepLines = 2
)

// matchedFile is a file with words of a query.
type matchedFile struct {
	at, words int
	blocks    []piece
	lines     int
}

// files returns the files that contain at least one of the words, those with the most
// different ones first, at most grepFiles.
func (f *fileReader) files(words []string) (files []matchedFile) {
	count := make([]int, len(f.lower))
	for _, w := range words {
		in := map[int32]bool{}
		for at := 0; ; { // a word contains w
			n := strings.Index(f.all[at:], w)
			if n < 0 {
				break
			}
			from, to := strings.LastIndexByte(f.all[:at+n], '\n')+1, at+n+strings.IndexByte(f.all[at+n:], '\n')
			for _, d := range f.in[f.all[from:to]] {
				in[d] = true
			}
			at = to
		}
		for d := range in {
			count[d]++
		}
	}
	for at, n := range count {
		if n > 0 {
			files = append(files, matchedFile{at: at, words: n})
		}
	}
	slices.SortStableFunc(files, func(a, b matchedFile) int { return b.words - a.words })
	files = files[:min(grepFiles, len(files))]
	for i := range files {
		files[i].blocks, files[i].lines = f.blocks(files[i].at, words)
	}
	slices.SortStableFunc(files, func(a, b matchedFile) int {
		return cmp.Or(b.words-a.words, b.lines-a.lines)
	})
	return files
}

// matches returns the blocks of lines around matches in at most grepFiles files, up to the
// largest budget.
func (f *fileReader) matches(words []string) (pieces []piece) {
	left := slices.Max(f.m.o.Budgets)
	for _, file := range f.files(words) {
		for i, b := range file.blocks {
			if left <= 0 {
				return pieces
			}
			lines := strings.Split(f.texts[b.document], "\n") // as they are printed
			var text, printed strings.Builder
			if i == 0 {
				fmt.Fprintln(&printed, f.m.paths[b.document])
			} else {
				fmt.Fprintln(&printed, "--")
			}
			for n := b.from; n <= min(b.to, len(lines)); n++ {
				fmt.Fprintln(&text, lines[n-1])
				fmt.Fprintf(&printed, "%d:%s\n", n, lines[n-1])
			}
			b.text, b.answer = f.m.o.Budget.CountTokens(text.String()), f.m.o.Budget.CountTokens(printed.String())
			left -= b.answer
			pieces = append(pieces, b)
		}
	}
	return pieces
}

// blocks returns the matches of one file with the lines around them, and their number.
func (f *fileReader) blocks(at int, words []string) (blocks []piece, matched int) {
	id := f.lower[at].id
	lines, lower := strings.Split(f.texts[id], "\n"), strings.Split(f.lower[at].text, "\n")
	for i := range lower {
		if !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(lower[i], w) }) {
			continue
		}
		matched++
		from, to := max(1, i+1-grepLines), min(len(lines), i+1+grepLines)
		if n := len(blocks); n > 0 && from <= blocks[n-1].to+1 {
			blocks[n-1].to = to
		} else {
			blocks = append(blocks, piece{document: id, from: from, to: to})
		}
	}
	return blocks, matched
}
