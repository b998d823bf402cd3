package benchmarks

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"cairn/models/bpe"
	"cairn/models/minilm"
	"cairn/retriever"
)

// floors are what hybrid search reaches at least, with one configuration for
// all sets. They are what forty lines of Python reach with bm25s, the same
// vectors and a plain 70/30. See quality.md.
var floors = []struct {
	set, split        string
	ndcg, mrr, hit5   float64
	keyword, semantic float64 // nDCG@10 of the legs
}{
	{"scifact", "train", .735, 0, 0, .685, .65},
	{"cranfield", "test", .41, 0, 0, 0, 0},
	{"cacm", "test", .555, 0, 0, 0, 0},
	{"cisi", "test", .455, 0, 0, 0, 0},
	{"npl", "test", .49, 0, 0, 0, 0},
	{"anthropic-docs", "test", .79, .865, 0, 0, 0},
	{"k8s-docs", "kubefix", .82, 0, .93, 0, 0},
	{"k8s-docs", "realistic", .335, 0, .40, 0, 0},
	{"nl2bash-tldr", "dev", 0, 0, 0, 0, 0},
}

// TestDocsQuality is the gate of every change to ranking, chunking or the
// keyword index. It takes minutes, and seconds once CAIRN_CACHE names a folder
// that keeps the embeddings.
func TestDocsQuality(t *testing.T) {
	data := os.Getenv("CAIRN_DATA")
	if data == "" {
		t.Skip("CAIRN_DATA does not name the evaluation data")
	}
	e, err := minilm.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, f := range floors {
		t.Run(f.set+"/"+f.split, func(t *testing.T) {
			report, err := Docs(context.Background(), DocsOptions{
				Data: filepath.Join(data, "docs", f.set), Split: f.split, Embedder: e, Budget: &bpe.Counter{},
				Cache: os.Getenv("CAIRN_CACHE"), Work: t.TempDir(),
			})
			if err != nil {
				t.Fatal(err)
			}
			keyword, semantic, hybrid := report.Modes[retriever.Keyword], report.Modes[retriever.Semantic], report.Modes[retriever.Hybrid]
			t.Logf("nDCG@10 keyword %.4f, semantic %.4f, hybrid %.4f; hybrid MRR %.3f, hit@5 %.3f, recall@100 %.3f, p50 %.1f ms, p95 %.1f ms",
				keyword.NDCG10, semantic.NDCG10, hybrid.NDCG10, hybrid.MRR, hybrid.Hit5, hybrid.Recall100, hybrid.Latency.P50, hybrid.Latency.P95)
			for _, c := range []struct {
				what      string
				got, want float64
			}{
				{"hybrid against the better leg", hybrid.NDCG10, max(keyword.NDCG10, semantic.NDCG10) - .005},
				{"hybrid nDCG@10", hybrid.NDCG10, f.ndcg}, {"hybrid MRR", hybrid.MRR, f.mrr}, {"hybrid hit@5", hybrid.Hit5, f.hit5},
				{"keyword nDCG@10", keyword.NDCG10, f.keyword}, {"semantic nDCG@10", semantic.NDCG10, f.semantic},
			} {
				if c.got < c.want {
					t.Errorf("%s is %.4f, want at least %.4f", c.what, c.got, c.want)
				}
			}
		})
	}
}
