package workspace

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/base/testutil"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/models"
	"cairn/retriever"
)

// TestEmptyAnswersSayWhy checks that each reason for an empty or poor answer has its
// own message, with what to do, and without an operating system's error.
func TestEmptyAnswersSayWhy(t *testing.T) {
	type setup func(t *testing.T) (config.Selection, Options)
	usual := func(r *index.IndexRequest) setup {
		return func(t *testing.T) (config.Selection, Options) {
			sel := folder(t)
			if r != nil {
				w := open(t, sel, Owning, hashed())
				fill(t, w, *r)
				w.Close()
			}
			return sel, hashed()
		}
	}
	empty := func(r *index.IndexRequest) setup {
		return func(t *testing.T) (config.Selection, Options) {
			sel := config.Selection{Root: t.TempDir(), Rule: config.RuleCurrent}
			write(t, filepath.Join(sel.Root, "main.o"), "int main;")
			if r != nil {
				w := open(t, sel, Owning, hashed())
				fill(t, w, *r)
				w.Close()
			}
			return sel, hashed()
		}
	}
	noModel := func(t *testing.T) (config.Selection, Options) {
		sel, o := usual(&index.IndexRequest{})(t)
		o.Model = func() (models.Embedder, error) { return nil, errors.New("the weights are damaged") }
		return sel, o
	}
	interrupted := func(t *testing.T) (config.Selection, Options) {
		sel := folder(t)
		e := &testutil.HashEmbedder{Before: func([]string) error { return context.Canceled }}
		o := hashed()
		o.Model = func() (models.Embedder, error) { return e, nil }
		w := open(t, sel, Owning, o)
		if _, err := index.IndexOp.Call(t.Context(), w.Folder, index.IndexRequest{}, nil); err == nil {
			t.Fatal("the run was to be interrupted")
		}
		w.Close()
		return sel, hashed()
	}
	for _, c := range []struct {
		name, query             string
		mode                    retriever.Mode
		prepare                 setup
		state, reason, degraded string
		hint                    string
		results                 bool
	}{
		{"never indexed", "login", "", usual(nil), "missing", "not_indexed", "", "the tool index", false},
		{"the wrong folder, never indexed", "login", "", empty(nil), "missing", "not_indexed", "", "the tool index", false},
		{"the wrong folder, indexed", "login", "", empty(&index.IndexRequest{}), "ready", "empty_workspace", "", "tool status", false},
		{"the wrong folder, indexed without vectors", "login", "", empty(&index.IndexRequest{NoEmbed: true}), "ready", "empty_workspace", "", "tool status", false},
		{"half indexed, nothing found", "walrus", "", usual(&index.IndexRequest{NoEmbed: true}), "partial", "indexing", "vectors", "tool index", false},
		{"half indexed, found", "login", "", usual(&index.IndexRequest{NoEmbed: true}), "partial", "", "vectors", "", true},
		{"interrupted, found", "login", "", interrupted, "partial", "", "vectors", "", true},
		{"without its model", "login", "", noModel, "ready", "", "vectors", "", true},
		{"nothing matches", "zyzzyva", retriever.Keyword, usual(&index.IndexRequest{}), "ready", "no_match", "", "other or fewer words", false},
	} {
		for _, access := range []Access{Reading, Owning} {
			sel, o := c.prepare(t)
			a, err := index.SearchOp.Call(t.Context(), open(t, sel, access, o).Folder, retriever.Query{Text: c.query, Mode: c.mode}, nil)
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			if a.Index.State != c.state || a.Reason != c.reason || strings.Join(a.Degraded, ",") != c.degraded || len(a.Results) > 0 != c.results ||
				!strings.Contains(a.Hint, c.hint) {
				t.Errorf("%s, access %d: state %q, reason %q, degraded %v, hint %q, %d results; want %q, %q, %q, %q, %v",
					c.name, access, a.Index.State, a.Reason, a.Degraded, a.Hint, len(a.Results), c.state, c.reason, c.degraded, c.hint, c.results)
			}
		}
	}
}
