package workspace

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/base/home"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
)

// TestChangedConfiguration: a process that owns a folder takes over the configuration that
// another process has changed.
func TestChangedConfiguration(t *testing.T) {
	sel := folder(t)
	write(t, filepath.Join(sel.Root, "a.animals"), "An aardvark.\n")
	server := start(t, "serve", sel)
	if got := server.line(t); got != "owning" {
		t.Fatal(got)
	}
	client := open(t, sel, Reading, hashed())
	fill(t, client, index.IndexRequest{Join: true})
	finds(t, client, nil, byKeyword("aardvark"))
	// An open client finds the document without a run of its own.
	write(t, filepath.Join(sel.Root, ".cairn/config.toml"), "[parser]\nextensions = [\".animals\"]\n")
	finds(t, client, nil, byKeyword("aardvark"), "a.animals")
	// A new client, such as cairn index, gets an owner with the new configuration at once.
	write(t, filepath.Join(sel.Root, ".cairn/config.toml"), "[parser]\nextensions = []\n# changed\n")
	again := open(t, sel, Reading, hashed())
	fill(t, again, index.IndexRequest{Join: true})
	finds(t, again, nil, byKeyword("aardvark"))
	server.stop()
}

// TestTrustTakesEffect: the owner applies guarded settings as soon as the user trusts the
// folder, and no longer when the user stops trusting it.
func TestTrustTakesEffect(t *testing.T) {
	sel := folder(t)
	write(t, filepath.Join(sel.Root, ".cairn/config.toml"), "[dag]\nmax_ready_tasks_limit = 999\n")
	w := open(t, sel, Owning, hashed())
	standard := config.Default()
	for _, step := range []struct {
		change func() error
		want   int
	}{
		{func() error { return nil }, standard.DAG.MaxReady},
		{func() error { _, err := config.Trust(sel.Root); return err }, 999},
		{func() error { return home.Distrust(sel.Root) }, standard.DAG.MaxReady},
	} {
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		fill(t, w, index.IndexRequest{})
		if got := w.Config().DAG.MaxReady; got != step.want {
			t.Errorf("the limit is %d, want %d", got, step.want)
		}
	}
}

// TestInvalidConfiguration: the owner keeps its configuration if the changed one is not valid.
func TestInvalidConfiguration(t *testing.T) {
	sel := folder(t)
	write(t, filepath.Join(sel.Root, "a.animals"), "An aardvark.\n")
	var log bytes.Buffer
	o := hashed()
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	w := open(t, sel, Owning, o)
	write(t, filepath.Join(sel.Root, ".cairn/config.toml"), "[parser]\nextensions = [\".animals\"]\n")
	fill(t, w, index.IndexRequest{})
	finds(t, w, nil, byKeyword("aardvark"), "a.animals")
	write(t, filepath.Join(sel.Root, ".cairn/config.toml"), "[parser\n")
	fill(t, w, index.IndexRequest{})
	finds(t, w, nil, byKeyword("aardvark"), "a.animals")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if cfg := w.Config(); !slices.Equal(cfg.Parser.Extensions, []string{".animals"}) || !strings.Contains(log.String(), "the changed configuration is not valid") {
		t.Errorf("extensions %v, log %s", cfg.Parser.Extensions, log.String())
	}
}
