package retriever

import "testing"

func TestEmbeddingText(t *testing.T) {
	for _, c := range []struct{ query, want string }{
		{"why can't I resize my volume claim", "resize my volume claim"},
		{"Why can\u2019t my pod reach the API", "pod reach the API"},
		{"can't access the dashboard from outside", "access the dashboard from outside"},
		{"I cannot log in as root", "log in as root"},
		{"we could not find a node", "find a node"},
		{"why am I unable to attach a disk", "attach a disk"},
		{"I'm not able to delete the namespace", "delete the namespace"},
		{"unable to pull an image", "pull an image"},
		// No frame, or not at the front.
		{"how do I resize a volume", "how do I resize a volume"},
		{"pods can't reach the API", "pods can't reach the API"},
		{"cantilever beams under load", "cantilever beams under load"},
		{"why is the sky blue", "why is the sky blue"},
		{"do not restart pods", "do not restart pods"},
		// Too little would be left.
		{"can't connect", "can't connect"},
		{"why can't I", "why can't I"},
		{"cannot", "cannot"},
		{"", ""},
	} {
		if got := embeddingText(c.query); got != c.want {
			t.Errorf("embeddingText(%q) = %q, want %q", c.query, got, c.want)
		}
	}
}

// TestFailureFrame: the vector leg looks for the rest of the query, the keyword
// leg for all words, and an explanation has the embedded text.
func TestFailureFrame(t *testing.T) {
	f := open(t, map[string]string{
		"volume.md": "# Volumes\n\nresize my volume claim\n",
		"why.md":    "# Questions\n\nwhy can't I\n",
	}, nil)
	const asked = "why can't I resize my volume claim"
	plain := f.search(Query{Text: "resize my volume claim", Mode: Semantic, Explain: true})
	got := f.search(Query{Text: asked, Mode: Semantic, Explain: true})
	if len(plain.Results) != 2 || len(got.Results) != 2 {
		t.Fatalf("%d and %d results, want 2", len(plain.Results), len(got.Results))
	}
	for i, r := range got.Results {
		if p := plain.Results[i]; r.Path != p.Path || r.Score != p.Score {
			t.Errorf("result %d is %s with %g, want %s with %g as without the frame", i, r.Path, r.Score, p.Path, p.Score)
		}
		if r.Explain.Embedded != "resize my volume claim" || plain.Results[i].Explain.Embedded != "" {
			t.Errorf("explained as embedding %q, and %q where all is embedded", r.Explain.Embedded, plain.Results[i].Explain.Embedded)
		}
	}
	if a := f.search(Query{Text: asked, Mode: Keyword, Explain: true}); len(a.Results) != 2 || a.Results[0].Explain.Embedded != "" {
		t.Errorf("a keyword search finds %v, want both pages, explained without a vector", paths(a))
	}
}
