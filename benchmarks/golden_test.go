package benchmarks

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/folder/config"
	"cairn/models/bpe"
	"cairn/models/minilm"
	"cairn/retriever"
)

var update = flag.Bool("update", false, "rewrite testdata/handbook*.golden and the figures in README.md and benchmarks/README.md")

// TestHandbookRanking compares the rankings of the bundled set and of its questions with
// those recorded, so that a review sees what a change of the ranking moves. Vectors differ
// in the last digits between kernels. That moves three ranks of the vector leg, which is
// not recorded, and with AVX2 one rank of both legs.
func TestHandbookRanking(t *testing.T) {
	e, err := minilm.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if e.Kernel() == "portable" {
		t.Skip("this processor has neither AVX-512 VNNI nor AVX2: the portable kernel takes minutes")
	}
	o := DocsOptions{Data: "../examples/handbook.bench", Split: "test", Config: config.Default(), Embedder: e, Budget: &bpe.Counter{}, Work: t.TempDir()}
	o.Modes = []retriever.Mode{retriever.Keyword, retriever.Hybrid}
	documents, err := Docs(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	o.Modes, o.Budgets = []retriever.Mode{retriever.Hybrid}, []int{500, 1000}
	sections, err := Self(t.Context(), SelfOptions{DocsOptions: o, Selection: config.Selection{Root: "../examples/handbook"}, Questions: "../examples/handbook.questions.tsv"})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-9s %8s %8s %8s %8s %8s\n", "", "ndcg@10", "mrr", "hit@1", "hit@5", "rec@100")
	for _, r := range documents.Runs {
		m := r.Metrics()
		fmt.Fprintf(&b, "%-9s %8.2f %8.2f %8.2f %8.2f %8.2f\n", r.System, m.NDCG10, m.MRR, m.Hit1, m.Hit5, m.Recall100)
	}
	s := sections.Main().sections()
	fmt.Fprintf(&b, "right section first %.2f, among three %.2f\n", s.Hit1, s.Hit3)
	for _, r := range sections.Budgets {
		fmt.Fprintf(&b, "%s, %d tokens: the right section for %.2f\n", r.System, r.Tokens, r.Recall)
	}
	b.WriteString("\nRank of the first right document (words, both) and section:\n")
	for i, q := range documents.Main().Queries {
		for _, r := range documents.Runs {
			fmt.Fprintf(&b, "%3s", rankText(math.Round(1/reciprocalRank(r.Queries[i].ids(), q.Relevant, runDepth))))
		}
		found := sections.Main().Queries[i]
		rank := math.Inf(1)
		for n := range found.Found {
			if found.sectionHit(n+1) > 0 {
				rank = float64(n + 1)
				break
			}
		}
		fmt.Fprintf(&b, "%3s  %s\n", rankText(rank), q.Text)
	}
	file := "testdata/handbook.golden"
	if e.Kernel() == "avx2" {
		file = "testdata/handbook-avx2.golden"
	}
	compareGolden(t, file, b.String())
}

func rankText(rank float64) string {
	if math.IsInf(rank, 1) {
		return "-"
	}
	return fmt.Sprint(rank)
}

// compareGolden compares text with a file, or writes it with -update.
func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s differs (-want +got): if the change is meant, run go generate ./benchmarks and commit it\n%s", file, d)
	}
}
