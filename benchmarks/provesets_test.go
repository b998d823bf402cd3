package benchmarks

import (
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cairn/internal/folder/config"
	"cairn/internal/text/markdown"
	"cairn/internal/text/outline"
	"cairn/models/bpe"
	"cairn/models/minilm"
)

// labelled is a folder with questions whose answers people have judged.
type labelled struct {
	name    string
	pages   []*page // with everything that authors wrote
	set     *beirSet
	queries []provedQuery
}

// readLabelled returns the first 300 questions, evenly spread, of a split.
func readLabelled(t *testing.T, dir, split string) labelled {
	t.Helper()
	set, err := readBEIR(dir, split)
	if err != nil {
		t.Fatal(err)
	}
	l := labelled{name: filepath.Base(dir) + "/" + split, set: set}
	taken := map[string]string{}
	for _, d := range set.documents {
		name := fileName(d.ID, taken)
		taken[name] = d.ID
		text := d.markdown()
		l.pages = append(l.pages, &page{path: name, text: text, parsed: markdown.Parse(name, []byte(text))})
	}
	for _, q := range spread(set.queries, 300) {
		l.queries = append(l.queries, provedQuery{RunQuery: q})
	}
	return l
}

var docstrings = regexp.MustCompile(`(?s)""".*?"""|/\*\*.*?\*/`)

// readCode returns questions.tsv for packages, see code.md. The labelled folder has no
// comments, because the questions are taken from them.
func readCode(t *testing.T, root string) labelled {
	t.Helper()
	l := labelled{name: "code", set: &beirSet{}}
	at := map[string]*page{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !outline.IsSource(file) {
			return err
		}
		data, err := os.ReadFile(file)
		name, _ := filepath.Rel(root, file)
		name = filepath.ToSlash(name)
		l.pages = append(l.pages, &page{path: name, text: string(data), parsed: markdown.Parse(name, data)})
		text := docstrings.ReplaceAllStringFunc(string(data), func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) })
		lines := strings.Split(text, "\n")
		for i := range lines {
			if s := strings.TrimSpace(lines[i]); strings.HasPrefix(s, "//") || strings.HasPrefix(s, "#") {
				lines[i] = ""
			}
		}
		text = strings.Join(lines, "\n")
		at[name] = &page{path: name, text: text, parsed: markdown.Parse(name, []byte(text))}
		l.set.documents = append(l.set.documents, beirDocument{ID: name, Text: text, path: name})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = readLines("code/questions.tsv", func(line []byte) error {
		f := strings.Split(string(line), "\t")
		if p := at[f[0]+"/"+f[2]]; p != nil {
			if i, ok := markdown.Resolve(p.parsed, f[3]); ok {
				q := provedQuery{RunQuery: RunQuery{ID: fmt.Sprint(len(l.queries)), Text: f[4], Relevant: Relevance{p.path: 1}}}
				q.gold = append(q.gold, piece{document: p.path, from: p.parsed.Sections[i].StartLine, to: p.parsed.Sections[i].OwnEndLine})
				l.queries = append(l.queries, q)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestProofAgrees compares which of two systems wins by people's judgements and by the
// questions of Prove, see prove.md. CAIRN_DATA is the folder of the public sets, CAIRN_CODE
// that of the packages, CAIRN_WORK one for embeddings, which later runs read.
func TestProofAgrees(t *testing.T) {
	data, code, work := os.Getenv("CAIRN_DATA"), os.Getenv("CAIRN_CODE"), os.Getenv("CAIRN_WORK")
	if data == "" || code == "" || work == "" {
		t.Skip("needs CAIRN_DATA, CAIRN_CODE and CAIRN_WORK")
	}
	e, err := minilm.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	docs := filepath.Join(data, "docs")
	agree, decided, wrong, gains := 0, 0, 0, 0
	for _, l := range []labelled{
		readLabelled(t, filepath.Join(docs, "anthropic-docs"), "test"), readLabelled(t, filepath.Join(docs, "k8s-docs"), "kubefix"),
		readLabelled(t, filepath.Join(docs, "k8s-docs"), "realistic"), readCode(t, code),
	} {
		o := ProveOptions{Seed: 1, Sample: defaultSample, Tokens: defaultProofTokens, DocsOptions: DocsOptions{Config: config.Default(), Embedder: e, Budget: &bpe.Counter{}, Cache: work, Work: t.TempDir()}}
		truth, err := prove(t.Context(), l.set, l.queries, &o)
		if err != nil {
			t.Fatal(err)
		}
		queries, err := knownItems(t.Context(), l.pages, t.TempDir(), &o)
		if err != nil {
			t.Fatal(err)
		}
		p, err := prove(t.Context(), &beirSet{documents: documentsOf(l.pages)}, queries, &o)
		if err != nil {
			t.Fatal(err)
		}
		truth.Folder, p.Folder = l.name+", judged", l.name+", derived"
		truth.Lost, p.Lost = nil, nil
		fmt.Printf("%s\n\n%s\n\n", truth, p)
		for i := range truth.names {
			for j := i + 1; j < len(truth.names); j++ {
				a, b := truth.between(i, j), p.between(i, j)
				fmt.Printf("%-16s %-12s %-12s judged %+6.0f (p %.4f) derived %+6.0f (p %.4f)\n", l.name, truth.names[i], truth.names[j], a.Saved, a.P, b.Saved, b.P)
				if a.P < .05 {
					if decided++; (a.Saved > 0) == (b.Saved > 0) {
						agree++
					} else if b.P < .05 {
						wrong++
					}
				}
			}
		}
		for seed := range uint64(100) {
			if p.shuffled(seed) {
				gains++
			}
		}
	}
	fmt.Printf("%d of %d agree, %d claim the contrary; %d gains with shuffled answers\n", agree, decided, wrong, gains)
	if math.Round(float64(agree)/float64(decided)*100) < 90 || gains > 0 {
		t.Errorf("want 90 in 100 and no gain")
	}
}

// between compares two systems.
func (p *Proof) between(i, j int) Duel {
	outcomes := make([][]outcome, 2)
	for k, system := range []int{i, j} {
		for n, pieces := range p.answers[system] {
			outcomes[k] = append(outcomes[k], p.queries[n].judge(pieces, p.Tokens))
		}
	}
	return duel(p.names[j], outcomes[0], outcomes[1], p.Tokens)
}

// shuffled reports whether the answers give a gain if every question is judged by the
// answer of another one.
func (p *Proof) shuffled(seed uint64) bool {
	other := &Proof{Tokens: p.Tokens, names: p.names, answers: p.answers, queries: slices.Clone(p.queries)}
	order := rand.New(rand.NewPCG(seed, 2)).Perm(len(p.queries))
	for i, at := range order {
		other.queries[i].Relevant, other.queries[i].gold = p.queries[at].Relevant, p.queries[at].gold
	}
	other.conclude()
	return strings.HasPrefix(other.Verdict, "gain")
}
