//go:build unix

package kv

import (
	"errors"
	"path/filepath"
	"testing"
	"time"
)

// TestViewBesideAHaltedWriter: a writer that was stopped while it kept readers out
// does not keep them for ever.
func TestViewBesideAHaltedWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kv.db")
	put(t, open(t, path, nil), "a", "1")
	reader := open(t, path, &Options{ReadOnly: true})
	halted, err := holdTurnstile(path, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := enter(path, time.Millisecond); !errors.Is(err, errBusy) {
		t.Errorf("entering past a closed turnstile: %v, want errBusy", err)
	}
	if !testing.Short() {
		_, locked := errors.AsType[*LockedError](reader.View(func(*Tx) error { return nil }))
		if !locked {
			t.Error("View past a closed turnstile is not a *LockedError")
		}
	}
	halted.Close()
	if err := reader.View(func(*Tx) error { return nil }); err != nil {
		t.Errorf("View after the writer has gone: %v", err)
	}
}
