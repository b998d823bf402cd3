package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"cairn"
	"cairn/internal/text/query"
	"cairn/models/bpe"
)

// The bounds of a simulated agent.
const (
	agentCalls  = 6   // at most, the first of which searches
	agentWindow = 40  // lines that an agent with ripgrep reads at a time
	agentLines  = 100 // matching lines that ripgrep lists at most
	agentProof  = 250 // letters of the symbol that must be in view
)

// agents counts what agents need to see the code that answers a question. Each makes at
// most agentCalls calls. Tokens are those of everything that the agent receives.
//
//   - One asks read_context with its defaults and reads the results in order with read_doc.
//   - The second searches for the three rarest words of the question with ripgrep, ignoring
//     case. It then reads windows of agentWindow lines around the matches, which do not
//     overlap. Those with most of the words come first, then those with most matching lines.
//   - The third reads whole files in this order.
type agents struct {
	tokens                bpe.Counter
	cairn, windows, files []attempt
}

// attempt is the success, the calls and the tokens of an agent for a question.
type attempt struct {
	found         bool
	calls, tokens int
}

// squeeze returns the letters and digits of a text.
func squeeze(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, text)
}

// ask lets both agents answer a question whose gold is a symbol of a file below dir.
func (a *agents) ask(ctx context.Context, folder *cairn.Folder, dir string, q question, gold symbol) error {
	src, err := os.ReadFile(filepath.Join(dir, q.path))
	if err != nil {
		return err
	}
	lines := strings.SplitAfter(string(src), "\n")
	proof := squeeze(strings.Join(lines[gold.decl-1:min(gold.end, len(lines))], ""))
	proof = proof[:min(len(proof), agentProof)]
	answer, err := folder.Search(ctx, cairn.Query{Text: q.text, AsText: true})
	if err != nil {
		return err
	}
	text := answer.Text()
	try := attempt{strings.Contains(squeeze(text), proof), 1, a.tokens.CountTokens(text)}
	for i := 0; i < len(answer.Results) && !try.found && try.calls < agentCalls; i++ {
		reading, err := folder.Read(ctx, answer.Results[i].Place())
		if err != nil {
			return fmt.Errorf("%s: %w", answer.Results[i].Place(), err)
		}
		text := reading.Text()
		try.found, try.calls, try.tokens = strings.Contains(squeeze(text), proof), try.calls+1, try.tokens+a.tokens.CountTokens(text)
	}
	a.cairn = append(a.cairn, try)
	if try, err = a.ripgrep(dir, q.text, proof, agentWindow); err != nil {
		return err
	}
	a.windows = append(a.windows, try)
	try, err = a.ripgrep(dir, q.text, proof, 1<<20)
	a.files = append(a.files, try)
	return err
}

// ripgrep is the attempt of the agent with ripgrep that reads windows of size lines.
func (a *agents) ripgrep(dir, text, proof string, size int) (attempt, error) {
	files := map[string][]string{}
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		src, err := os.ReadFile(name)
		files[name] = strings.SplitAfter(string(src), "\n")
		return err
	})
	if err != nil {
		return attempt{}, err
	}
	words := rarest(text, files)
	type window struct {
		file                 string
		middle, words, lines int
	}
	var windows []window
	var listed strings.Builder
	shown := 0
	for _, file := range slices.Sorted(maps.Keys(files)) {
		lines := files[file]
		has := make([][]string, len(lines)) // the words of each line
		for i, line := range lines {
			low := strings.ToLower(line)
			for _, w := range words {
				if strings.Contains(low, w) {
					has[i] = append(has[i], w)
				}
			}
			if len(has[i]) > 0 && shown < agentLines {
				shown++
				fmt.Fprintf(&listed, "%s:%d:%s", strings.TrimPrefix(file, dir+"/"), i+1, line)
			}
		}
		for i := range lines {
			if len(has[i]) == 0 {
				continue
			}
			w, seen := window{file: file, middle: i}, map[string]bool{}
			for _, line := range has[max(0, i-agentWindow/2):min(len(has), i+agentWindow/2)] {
				for _, word := range line {
					seen[word] = true
				}
				w.lines += min(1, len(line))
			}
			w.words = len(seen)
			windows = append(windows, w)
		}
	}
	slices.SortFunc(windows, func(a, b window) int {
		return cmp.Or(cmp.Compare(b.words, a.words), cmp.Compare(b.lines, a.lines), cmp.Compare(a.file, b.file), cmp.Compare(a.middle, b.middle))
	})
	try := attempt{strings.Contains(squeeze(listed.String()), proof), 1, a.tokens.CountTokens(listed.String())}
	var read []window
	for i := 0; i < len(windows) && !try.found && try.calls < agentCalls; i++ {
		w := windows[i]
		if slices.ContainsFunc(read, func(r window) bool {
			return r.file == w.file && max(r.middle-w.middle, w.middle-r.middle) < agentWindow
		}) {
			continue
		}
		read = append(read, w)
		lines := files[w.file]
		text := strings.Join(lines[max(0, w.middle-size/2):min(len(lines), w.middle+size/2)], "")
		try.found, try.calls, try.tokens = strings.Contains(squeeze(text), proof), try.calls+1, try.tokens+a.tokens.CountTokens(text)
	}
	return try, nil
}

// rarest returns the three words of a question that occur on the fewest lines of the files.
func rarest(text string, files map[string][]string) (words []string) {
	count := map[string]int{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(w) > 2 && !query.IsStopWord(w) {
			count[w] = 0
		}
	}
	for _, lines := range files {
		for _, line := range lines {
			line = strings.ToLower(line)
			for w := range count {
				if strings.Contains(line, w) {
					count[w]++
				}
			}
		}
	}
	for w, n := range count {
		if n > 0 {
			words = append(words, w)
		}
	}
	slices.SortFunc(words, func(a, b string) int { return cmp.Or(cmp.Compare(count[a], count[b]), cmp.Compare(a, b)) })
	return words[:min(3, len(words))]
}

// report returns a line for each agent.
func (a *agents) report() string {
	line := func(name string, tries []attempt) string {
		found, once, tokens := 0, 0, []int{}
		for _, t := range tries {
			if tokens = append(tokens, t.tokens); t.found {
				if found++; t.calls == 1 {
					once++
				}
			}
		}
		slices.Sort(tokens)
		sum := 0
		for _, n := range tokens {
			sum += n
		}
		n := max(1, len(tokens))
		return fmt.Sprintf("%-16s found %.3f, in one call %.3f, tokens: median %d, mean %d", name, float64(found)/float64(n), float64(once)/float64(n), tokens[len(tokens)/2], sum/n)
	}
	return line("cairn", a.cairn) + "\n" + line("ripgrep, windows", a.windows) + "\n" + line("ripgrep, files", a.files)
}
