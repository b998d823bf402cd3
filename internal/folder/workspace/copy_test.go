package workspace

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"cairn/internal/base/job"
	"cairn/internal/base/testutil"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/internal/store/qdrant/qdranttest"
	"cairn/models"
)

// TestCopyThereAndBack moves an index to a store and into an empty folder, cuts
// the way there short twice, and compares answers. Nothing is embedded again.
func TestCopyThereAndBack(t *testing.T) {
	for name, fake := range map[string]*qdranttest.Options{"Quantised": nil, "Unquantised": {Unquantised: true}} {
		t.Run(name, func(t *testing.T) {
			addr := qdranttest.New(t, fake).Addr()
			sel := folder(t)
			if err := testutil.WriteFolder(filepath.Join(sel.Root, "many"), 150, 7); err != nil {
				t.Fatal(err)
			}
			e := &testutil.HashEmbedder{}
			o := clustered(t, addr, "docs")
			o.Model = func() (models.Embedder, error) { return e, nil }
			s := o.Store
			o.Store = nil
			if _, err := CopyOut(t.Context(), sel, config.Default(), s, o, nil); !errors.Is(err, index.ErrNoIndex) {
				t.Errorf("copying an index that is not there: %v, want %v", err, index.ErrNoIndex)
			}
			owner := open(t, sel, Owning, o)
			fill(t, owner, index.IndexRequest{})
			if _, err := CopyOut(t.Context(), sel, config.Default(), s, o, nil); err == nil {
				t.Error("a copy went past the owner of the folder")
			}
			if err := owner.Close(); err != nil {
				t.Fatal(err)
			}
			embedded := e.Embedded()
			for range 2 {
				ctx, cancel := context.WithCancel(t.Context())
				_, err := CopyOut(ctx, sel, config.Default(), s, o, func(p job.Progress) {
					if p.Phase == "copy" && p.Done > 0 {
						cancel()
					}
				})
				if !errors.Is(err, context.Canceled) {
					t.Fatalf("a copy that was cut short: %v", err)
				}
			}
			out, err := CopyOut(t.Context(), sel, config.Default(), s, o, nil)
			if err != nil {
				t.Fatal(err)
			}
			if out.Documents != 153 || out.Copied != out.Documents-2*64 || out.Probes != 100 || out.Overlap < .98 {
				t.Errorf("the rest of the way there: %+v", out)
			}
			if again, err := CopyOut(t.Context(), sel, config.Default(), s, o, nil); err != nil || again.Copied != 0 {
				t.Errorf("once more: %+v, %v, want nothing copied", again, err)
			}
			if _, err := CopyIn(t.Context(), sel, config.Default(), clustered(t, addr, "dosc").Store, o, nil); err == nil {
				t.Error("a store that does not exist was copied into the folder")
			}
			back := config.Selection{Root: t.TempDir(), Rule: config.RuleFlag}
			in, err := CopyIn(t.Context(), back, config.Default(), s, o, nil)
			if err != nil || in.Copied != in.Documents || in.Chunks != out.Chunks || in.Overlap < .98 {
				t.Fatalf("the way back: %+v, %v", in, err)
			}
			if n := e.Embedded(); n != embedded {
				t.Errorf("%d texts were embedded by copies", n-embedded)
			}
			withStore, flat := o, open(t, sel, Reading, o)
			withStore.Store = s
			reader, copied := server(t, withStore), open(t, back, Reading, o)
			for _, query := range []string{"login flow", "copy the folder"} {
				if got, want := first(t, reader, query), first(t, flat, query); got != want {
					t.Errorf("%q: the store gives %s first, the folder %s", query, got, want)
				}
				if got, want := first(t, copied, query), first(t, flat, query); got != want {
					t.Errorf("%q: the copy gives %s first, the folder %s", query, got, want)
				}
			}
		})
	}
}
