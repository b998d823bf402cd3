package benchmarks

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/internal/store"
	"cairn/internal/text/markdown"
	"cairn/models/bpe"
	"cairn/models/minilm"
	"cairn/retriever"
)

// sectionQuestion is a question with the places (path#anchor) that answer it.
type sectionQuestion struct {
	Question string   `json:"question"`
	Places   []string `json:"places"`
}

// sectionSets are the question files in testdata/sections and what their figures must
// not fall below: the share of questions of which the first result, and one of the
// first three, is a right section. See quality.md.
var sectionSets = []struct {
	name       string
	hit1, hit3 float64
}{{"rust-book", 0.66, 0.72}, {"cpp-docs", 0.50, 0.58}}

// TestSectionQuality measures whether a result shows the right section. CAIRN_MARKDOWN
// names the folder with the trees of the sets, CAIRN_WORK one for their indexes, which
// later runs continue.
func TestSectionQuality(t *testing.T) {
	trees := os.Getenv("CAIRN_MARKDOWN")
	if trees == "" {
		t.Skip("CAIRN_MARKDOWN does not name the trees of the sets")
	}
	for _, set := range sectionSets {
		t.Run(set.name, func(t *testing.T) {
			var questions []sectionQuestion
			err := readLines(filepath.Join("testdata", "sections", set.name+".jsonl"), func(line []byte) error {
				var q sectionQuestion
				err := json.Unmarshal(line, &q)
				questions = append(questions, q)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			r := openTree(t, filepath.Join(trees, set.name))
			var section1, section3, more3, document1, document3 float64
			for _, q := range questions {
				answer, err := r.Search(t.Context(), retriever.Query{Text: q.Question, Limit: 3})
				if err != nil {
					t.Fatal(err)
				}
				rank, also, document := q.ranks(answer)
				section1, section3 = section1+within(rank, 1), section3+within(rank, 3)
				more3 += within(also, 3)
				document1, document3 = document1+within(document, 1), document3+within(document, 3)
				if rank != 1 {
					t.Logf("%d, document %d: %s\n\twant %s\n\tgot  %s", rank, document, q.Question, strings.Join(q.Places, " "), strings.Join(shownPlaces(answer), " "))
				}
			}
			n := float64(len(questions))
			t.Logf("%d questions: section hit@1 %.3f, hit@3 %.3f, with further sections %.3f; document hit@1 %.3f, hit@3 %.3f", len(questions), section1/n, section3/n, more3/n, document1/n, document3/n)
			if section1/n < set.hit1 || section3/n < set.hit3 {
				t.Errorf("section hit@1 %.3f, hit@3 %.3f, want at least %.3f and %.3f", section1/n, section3/n, set.hit1, set.hit3)
			}
		})
	}
}

// ranks returns the rank of the first right section, of the first result that has one as
// its section or among its further ones, and of the first right document; 0 without one.
func (q sectionQuestion) ranks(a *retriever.Answer) (section, also, document int) {
	right := func(path, anchor string) bool { return slices.Contains(q.Places, path+"#"+anchor) }
	for i, r := range a.Results {
		shown := right(r.Path, r.Anchor)
		if shown && section == 0 {
			section = i + 1
		}
		if also == 0 && (shown || slices.ContainsFunc(r.More, func(s retriever.SectionRef) bool { return right(r.Path, s.Anchor) })) {
			also = i + 1
		}
		if document == 0 && slices.ContainsFunc(q.Places, func(p string) bool { return strings.HasPrefix(p, r.Path+"#") }) {
			document = i + 1
		}
	}
	return section, also, document
}

func within(rank, k int) float64 {
	if rank > 0 && rank <= k {
		return 1
	}
	return 0
}

func shownPlaces(a *retriever.Answer) (places []string) {
	for _, r := range a.Results {
		places = append(places, r.Path+"#"+r.Anchor)
	}
	return places
}

// TestTitlesFindContent asks for the titles of 100 pages that have a list of links, and
// counts the first results that show a list of links, or a text that three pages have.
func TestTitlesFindContent(t *testing.T) {
	trees := os.Getenv("CAIRN_MARKDOWN")
	if trees == "" {
		t.Skip("CAIRN_MARKDOWN does not name the trees of the sets")
	}
	folder := filepath.Join(trees, "cpp-docs")
	r := openTree(t, folder)
	pages := map[string]string{} // title -> path; "" if it has no list of links, or two pages have it
	texts := map[string]int{}
	own := func(src []byte, s *store.Section) []byte {
		_, body, _ := bytes.Cut(src[s.Start:s.OwnEnd], []byte("\n"))
		return bytes.TrimSpace(body)
	}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		doc := markdown.Parse(path, src)
		has := false
		for i := range doc.Sections {
			text := own(src, &doc.Sections[i])
			texts[string(text)]++
			has = has || markdown.LinkShare(path, text, 0) > 0.5
		}
		name, _ := filepath.Rel(folder, path)
		if _, twice := pages[doc.Title]; twice || !has {
			name = ""
		}
		pages[doc.Title] = filepath.ToSlash(name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	titles := slices.DeleteFunc(slices.Sorted(maps.Keys(pages)), func(title string) bool { return pages[title] == "" })
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(titles), func(i, j int) { titles[i], titles[j] = titles[j], titles[i] })
	titles = titles[:min(100, len(titles))]
	right, links, repeated, among := 0, 0, 0, 0
	for _, title := range titles {
		answer, err := r.Search(t.Context(), retriever.Query{Text: strings.TrimSpace(title), Limit: 3})
		if err != nil {
			t.Logf("%q: %v", title, err)
			continue
		}
		anyLinks := 0
		for i, result := range answer.Results {
			src, err := os.ReadFile(filepath.Join(folder, result.Path))
			if err != nil {
				t.Fatal(err)
			}
			doc := markdown.Parse(result.Path, src)
			n, _ := markdown.Resolve(doc, result.Anchor)
			text := own(src, &doc.Sections[n])
			if markdown.LinkShare(result.Path, text, 0) > 0.5 {
				anyLinks = 1
			}
			if i > 0 || result.Path != pages[title] {
				continue
			}
			right++
			links += anyLinks
			if texts[string(text)] > 2 && len(text) > 0 {
				repeated++
			}
			if anyLinks > 0 || texts[string(text)] > 2 && len(text) > 0 {
				t.Logf("%q: %s#%s", title, result.Path, result.Anchor)
			}
		}
		among += anyLinks
	}
	t.Logf("%d titles: the right page first %d, of which links %d, repeated %d; links among three %d", len(titles), right, links, repeated, among)
	if links > 0 {
		t.Errorf("%d first results show a list of links, want none", links)
	}
}

// openTree indexes a folder of Markdown.
func openTree(t *testing.T, folder string) *retriever.Retriever {
	t.Helper()
	e, err := minilm.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	work := os.Getenv("CAIRN_WORK")
	if work == "" {
		work = t.TempDir()
	}
	dir := filepath.Join(work, filepath.Base(folder))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	stores, err := index.Open(config.Selection{Root: folder}, dir, nil, e.Description(), true, nil, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stores.Close() })
	x := stores.Indexer(e, nil)
	if _, err := x.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	r, err := retriever.New(stores.Sources(e, &bpe.Counter{}), index.RetrieverOptions(config.Default(), log))
	if err != nil {
		t.Fatal(err)
	}
	return r
}
