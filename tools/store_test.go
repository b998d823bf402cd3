package tools

import (
	"encoding/json"
	"net"
	"testing"

	"cairn/internal/base/testutil"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/internal/folder/mirror"
	"cairn/internal/folder/workspace"
	"cairn/models"
)

// TestStoreIsAway: a store that does not answer has its own code, since the same call
// may succeed later.
func TestStoreIsAway(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil { // the port is closed now
		t.Fatal(err)
	}
	e := &testutil.HashEmbedder{}
	o := workspace.Options{Settings: index.Settings{Description: e.Description(), Model: func() (models.Embedder, error) { return e, nil }}, Stateless: true}
	if o.Store, err = mirror.ParseStore("qdrant://"+addr+"/docs", func(string) string { return "" }); err != nil {
		t.Fatal(err)
	}
	w, err := workspace.Open(t.Context(), config.Selection{Root: t.TempDir()}, config.Default(), workspace.Reading, o)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	s := New(w.Folder, nil)
	for tool, args := range map[string]string{"read_context": `{"query":"otter"}`, "read_doc": `{"path":"a.md"}`} {
		if _, f := s.Call(t.Context(), tool, json.RawMessage(args)); f == nil || f.Code != CodeUnavailable || f.Data["suggestion"] == nil {
			t.Errorf("%s without the store: %+v, want %d and what to do", tool, f, CodeUnavailable)
		}
	}
}
