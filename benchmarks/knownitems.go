package benchmarks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/store"
	"cairn/internal/text/git"
	"cairn/internal/text/markdown"
	"cairn/internal/text/outline"
)

// The kinds of questions that are derived from a folder. Each is what an author wrote about
// a text. The subject of a commit is about the files that it changed, the text of a link
// about the page or section that it leads to. Headings and sentences are about their
// sections.
const (
	kindCommit   = "commit"
	kindLink     = "link"
	kindHeading  = "heading"
	kindSentence = "sentence"
)

var kinds = []string{kindCommit, kindLink, kindHeading, kindSentence}

// defaultSample is the default number of questions of each kind. Of a small folder fewer are
// asked, so that at most one section in sectionsPerText loses text of a kind.
const (
	defaultSample   = 60
	sectionsPerText = 6
)

// maxCopies bounds the places with the text of a question, and the sections that answer it
// equally. Text with more, such as a notice on every page, is no question.
const maxCopies = 5

// maxAsked bounds the commits that are read, and maxChanged the files that one of them
// changes.
const (
	maxAsked   = 1000
	maxChanged = 5
)

// knownItem is a text that is removed from the index of the run and asked for.
type knownItem struct {
	kind    string
	page    *page
	section *store.Section // nil for the whole page
	text    string
	hidden  string // the text to remove, with the same words
	rarity  float64
	copies  []*knownItem // the sections that answer equally, the section itself first
	places  []place
}

// place is an occurrence of a text.
type place struct {
	page   *page
	extent [2]int
}

// knownItems derives questions from a folder, and removes their text from its pages.
func knownItems(ctx context.Context, pages []*page, root string, o *ProveOptions) ([]provedQuery, error) {
	w := countWords(pages)
	n := min(o.Sample, 1+w.sections/sectionsPerText)
	r := rand.New(rand.NewPCG(o.Seed, 1))
	asked, err := commits(ctx, pages, root)
	if err != nil {
		return nil, err
	}
	var candidates []*knownItem
	for _, items := range [][]*knownItem{asked, links(pages), headings(pages), w.sentences(pages)} {
		candidates = append(candidates, choose(items, 2*n, r)...)
	}
	findPlaces(pages, candidates)
	addCopies(pages, candidates)
	var queries []provedQuery
	for _, kind := range kinds {
		items := slices.DeleteFunc(slices.Clone(candidates), func(item *knownItem) bool {
			return item.kind != kind || len(item.places) > maxCopies || len(item.copies) > maxCopies
		})
		for _, item := range choose(items, n, r) {
			for _, at := range item.places {
				at.page.hidden = append(at.page.hidden, at.extent)
			}
			q := provedQuery{RunQuery: RunQuery{ID: fmt.Sprint(len(queries) + 1), Text: item.text, Relevant: Relevance{}}, kind: item.kind}
			for _, at := range item.copies {
				q.Relevant[at.page.path] = 1
				if at.section != nil {
					q.gold = append(q.gold, piece{document: at.page.path, from: at.section.StartLine, to: at.section.OwnEndLine})
				}
			}
			queries = append(queries, q)
		}
	}
	if len(queries) == 0 {
		return nil, errors.New("the folder has no commit, link, heading or sentence that is distinct enough for a question")
	}
	return queries, nil
}

// choose returns n random items in their order.
func choose(items []*knownItem, n int, r *rand.Rand) []*knownItem {
	if len(items) <= n {
		return items
	}
	chosen := r.Perm(len(items))[:n]
	slices.Sort(chosen)
	out := make([]*knownItem, n)
	for i, at := range chosen {
		out[i] = items[at]
	}
	return out
}

// isQuestion reports whether the text of a heading, a link or a commit has two to
// twelve words.
func isQuestion(text string) bool {
	words := len(strings.Fields(text))
	return words >= 2 && words <= 12 && len(text) <= 150
}

// commits returns the newest commits that change at most maxChanged files. A folder that is
// not the root of a git repository has none.
func commits(ctx context.Context, pages []*page, root string) (items []*knownItem, err error) {
	repository, err := git.Open(root)
	if errors.Is(err, git.ErrNone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer repository.Close()
	head, err := repository.Head()
	if err != nil {
		return nil, nil // without a commit
	}
	byPath := pathsOf(pages)
	read := 0
	err = repository.Walk(ctx, []git.Hash{head}, func(git.Hash) bool { return false }, func(c *git.Commit) (bool, error) {
		read++
		if len(c.Parents) != 1 || !isQuestion(c.Subject) {
			return read < maxAsked, nil
		}
		changes, complete, err := repository.Changes(c)
		if err != nil || !complete || len(changes) > maxChanged {
			return read < maxAsked, err
		}
		item := &knownItem{kind: kindCommit, text: c.Subject, hidden: c.Subject}
		for _, change := range changes {
			if p := byPath[change.New]; p != nil {
				item.copies = append(item.copies, &knownItem{page: p})
			}
		}
		if len(item.copies) > 0 {
			items = append(items, item)
		}
		return read < maxAsked, nil
	})
	return items, err
}

func pathsOf(pages []*page) map[string]*page {
	byPath := map[string]*page{}
	for _, p := range pages {
		byPath[p.path] = p
	}
	return byPath
}

// links returns the links of Markdown pages to other pages, if their text is not the name
// of what they lead to.
func links(pages []*page) (items []*knownItem) {
	byPath, seen := pathsOf(pages), map[string]bool{}
	places := markdown.NewPlaces(maps.Keys(byPath))
	for _, p := range pages {
		if !markdown.FormatOf(p.path).IsMarkdown() {
			continue
		}
		for _, t := range markdown.Targets(p.path, []byte(p.text)) {
			file, _ := places.Find(p.path, t)
			to := byPath[file]
			text, _, ok := strings.Cut(p.text[t.Start:], "](")
			text = strings.Join(strings.Fields(markdown.PlainText([]byte(strings.TrimPrefix(text, "[")))), " ")
			if !ok || to == nil || to == p || !isQuestion(text) || seen[strings.ToLower(text)] {
				continue
			}
			seen[strings.ToLower(text)] = true
			item := &knownItem{kind: kindLink, page: to, text: text, hidden: text}
			name := to.parsed.Title
			if i, ok := markdown.Resolve(to.parsed, t.Anchor); ok && t.Anchor != "" {
				item.section = &to.parsed.Sections[i]
				name = item.section.Heading
			}
			if !slices.Equal(wordsOf(name), wordsOf(text)) {
				items = append(items, item)
			}
		}
	}
	return items
}

// headings returns the headings below titles that occur once and have their own text.
func headings(pages []*page) []*knownItem {
	count := map[string]int{}
	for _, p := range pages {
		for i := range p.parsed.Sections {
			count[strings.ToLower(p.parsed.Sections[i].Heading)]++
		}
	}
	var items []*knownItem
	for _, p := range pages {
		if outline.IsSource(p.path) {
			continue
		}
		for i := range p.parsed.Sections {
			s := &p.parsed.Sections[i]
			if !isQuestion(s.Heading) || count[strings.ToLower(s.Heading)] > 1 || s.Heading == p.parsed.Title {
				continue
			}
			if _, own, ok := strings.Cut(p.text[s.Start:s.OwnEnd], "\n"); ok && strings.TrimSpace(own) != "" {
				items = append(items, &knownItem{kind: kindHeading, page: p, section: s, text: s.Heading, hidden: s.Heading})
			}
		}
	}
	return items
}

// findPlaces finds the texts of items in all pages: the same words, whatever is between
// them.
func findPlaces(pages []*page, items []*knownItem) {
	words, first := map[*knownItem][]string{}, map[string][]*knownItem{}
	for _, item := range items {
		w := wordsOf(item.hidden)
		if words[item] = w; len(w) > 0 {
			first[w[0]] = append(first[w[0]], item)
		}
	}
	for _, p := range pages {
		at := wordPattern.FindAllStringIndex(p.text, -1)
		for i, e := range at {
			for _, item := range first[strings.ToLower(p.text[e[0]:e[1]])] {
				n := len(words[item])
				same := i+n <= len(at)
				for k := 1; same && k < n; k++ {
					same = strings.ToLower(p.text[at[i+k][0]:at[i+k][1]]) == words[item][k]
				}
				if same {
					item.places = append(item.places, place{p, [2]int{e[0], at[i+n-1][1]}})
				}
			}
		}
	}
}

// wordPattern matches a word of a text: see wordsOf.
var wordPattern = regexp.MustCompile(`[\p{L}\p{Nd}_]+`)

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

// wordCounts counts the sections of a folder in which a word occurs.
type wordCounts struct {
	in       map[string]int
	sections int
}

func countWords(pages []*page) *wordCounts {
	w := &wordCounts{in: map[string]int{}}
	for _, p := range pages {
		for i := range p.parsed.Sections {
			s := &p.parsed.Sections[i]
			w.sections++
			seen := map[string]bool{}
			for _, word := range wordsOf(p.text[s.Start:s.OwnEnd]) {
				if !seen[word] {
					seen[word] = true
					w.in[word]++
				}
			}
		}
	}
	return w
}

// wordsOf returns the words of a text in lower case.
func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !isWord(r) })
}

// sentences returns the rarest sentence of each section, if it is at most a third of the
// section. In source code these are sentences of comments, without the name of the symbol.
func (w *wordCounts) sentences(pages []*page) []*knownItem {
	var items []*knownItem
	for _, p := range pages {
		code := outline.IsSource(p.path)
		for i := range p.parsed.Sections {
			s := &p.parsed.Sections[i]
			var best *knownItem
			for _, extent := range sentencesOf(p.text, s.Start, s.OwnEnd, code) {
				raw := p.text[extent[0]:extent[1]]
				text := strings.Join(strings.Fields(markdown.PlainText([]byte(raw))), " ")
				if code {
					name := wordsOf(s.Heading)
					text = strings.Join(slices.DeleteFunc(wordsOf(raw), func(word string) bool { return slices.Contains(name, word) }), " ")
				}
				words := wordsOf(text)
				if len(words) < 8 || len(words) > 30 || utf8.RuneCountInString(text) > 200 || 3*len(raw) > s.OwnEnd-s.Start {
					continue
				}
				item := &knownItem{kind: kindSentence, page: p, section: s, text: text, hidden: raw}
				for _, word := range words {
					item.rarity += math.Log(float64(w.sections+1)/float64(w.in[word]+1)) / float64(len(words))
				}
				if best == nil || item.rarity > best.rarity {
					best = item
				}
			}
			if best != nil {
				items = append(items, best)
			}
		}
	}
	return items
}

// sentencePattern matches a sentence, as its group, with the space after it.
var sentencePattern = regexp.MustCompile(`(?s)(.*?(?:[.?!]|$))(?:[ \n]+|$)`)

// sentencesOf returns the extents of the sentences in the paragraphs of text[from:to].
// Paragraphs are lines that begin with a letter, outside of fenced code, or in source code
// the lines of comments.
func sentencesOf(text string, from, to int, code bool) (extents [][2]int) {
	fenced, begin, at := false, -1, from
	flush := func() {
		if begin >= 0 {
			for _, m := range sentencePattern.FindAllStringSubmatchIndex(strings.TrimRight(text[begin:at], "\r\n "), -1) {
				extents = append(extents, [2]int{begin + m[2], begin + m[3]})
			}
		}
		begin = -1
	}
	for whole := range strings.Lines(text[from:to]) {
		line, next := strings.TrimSuffix(whole, "\n"), text[at+len(whole):]
		start := at
		if code {
			comment := strings.TrimLeft(line, " \t")
			start += len(line)
			line = strings.TrimLeft(comment, "/*#-;\"' \t!")
			if comment == "" || !strings.ContainsRune("/*#-;\"'", rune(comment[0])) {
				line = ""
			}
			start -= len(line)
		}
		first, _ := utf8.DecodeRuneInString(line)
		switch {
		case strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~"):
			flush()
			fenced = !fenced
		case fenced || !unicode.IsLetter(first) || strings.Contains(line, "://") || strings.HasPrefix(next, "==") || strings.HasPrefix(next, "--"):
			flush()
		case begin < 0:
			begin = start
		}
		at += len(whole)
	}
	flush()
	return extents
}
