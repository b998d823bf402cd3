package retriever

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFolders checks that an answer describes each folder of its results once.
func TestFolders(t *testing.T) {
	files := map[string]string{
		"README.md":        "# All\n\nEverything about the otter farm.\n",
		"top.md":           "# Top\n\notter at the top\n",
		"api/README.md":    "[![badge](b.svg)](x)\n\n# API\n\nThe HTTP interface of the farm, e.g. for feeding. One page for each resource.\n",
		"api/a.md":         "# A\n\notter resource\n",
		"api/v2/deep/b.md": "# B\n\notter of version two\n",
		"ops/README.md":    "# Ops\n\nnever used, since the configuration describes it\n",
		"ops/c.md":         "# C\n\notter operations\n",
		"plain/d.md":       "# D\n\notter without a description\n",
		"long/readme.md":   "# Long\n\n" + strings.Repeat("word ", 100) + "\n",
		"long/e.md":        "# E\n\notter with a long one\n",
		"solo/README.md":   "# Solo\n\nThe otter is described in this very file.\n",
		"empty/README.md":  "# Empty\n\n- a\n- b\n",
		"empty/f.md":       "# F\n\notter of nothing\n",
	}
	f := open(t, files, &Options{Contexts: map[string]string{"ops": "How the farm\n\x1b[31mis run", ".": "The whole farm"}})
	a, err := f.Search(context.Background(), Query{Text: "otter", Mode: Keyword, Limit: 20})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, d := range a.Folders {
		if got[d.Path] != "" {
			t.Errorf("%s is described twice", d.Path)
		}
		got[d.Path] = d.Context
	}
	want := map[string]string{
		".":    "The whole farm",
		"api":  "The HTTP interface of the farm, e.g. for feeding.",
		"ops":  "How the farm [31mis run",
		"long": strings.TrimSpace(strings.Repeat("word ", 31)) + "…",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("folders (-want +got):\n%s", diff)
	}
	f = open(t, map[string]string{"README.md": files["README.md"], "top.md": files["top.md"], "plain/d.md": files["plain/d.md"]}, nil)
	if a, err = f.Search(context.Background(), Query{Text: "otter", Mode: Keyword}); err != nil || a.Folders != nil {
		t.Errorf("without descriptions: %+v, %v", a.Folders, err)
	}
}
