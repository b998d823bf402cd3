//go:build unix

package kv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func lockJournal(t *testing.T, j *Journal, exclusive bool) (release func()) {
	t.Helper()
	release, err := j.Lock(exclusive)
	if err != nil {
		t.Fatal(err)
	}
	return release
}

// records reads all of an epoch.
func records(t *testing.T, j *Journal, epoch uint64) (list []string, end int64) {
	t.Helper()
	defer lockJournal(t, j, false)()
	end, err := j.Read(epoch, 0, func(p []byte) error { list = append(list, string(p)); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return list, end
}

func TestJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "later", "log")
	j := OpenJournal(path, func() error { return os.MkdirAll(filepath.Dir(path), 0o755) })
	other := OpenJournal(path, nil) // stands for another process
	t.Cleanup(func() { j.Close(); other.Close() })
	if got, end := records(t, j, 1); got != nil || end != 0 {
		t.Errorf("an absent journal holds %v", got)
	}
	if m, err := j.Mark(); m != (JournalMark{}) || err != nil {
		t.Errorf("mark %v, %v of no journal", m, err)
	}
	if _, err := os.Stat(filepath.Dir(path)); err == nil {
		t.Error("reading makes a folder")
	}
	release := lockJournal(t, j, true)
	end := int64(0)
	for i := range 3 {
		var err error
		if end, err = j.Append(1, end, fmt.Append(nil, "record ", i)); err != nil {
			t.Fatal(err)
		}
	}
	release()
	want := []string{"record 0", "record 1", "record 2"}
	for name, one := range map[string]*Journal{"writer": j, "other": other} {
		got, at := records(t, one, 1)
		if m, err := one.Mark(); !slices.Equal(got, want) || at != end || m != (JournalMark{1, end}) || err != nil {
			t.Errorf("%s: %v to %d, mark %v, %v, want %v to %d", name, got, at, m, err, want, end)
		}
	}
	if got, _ := records(t, other, 2); got != nil {
		t.Errorf("records of another epoch: %v", got)
	}
	release = lockJournal(t, other, true)
	if _, err := other.Append(1, end, make([]byte, MaxRecord+1)); err == nil {
		t.Error("a record beyond the limit is written")
	}
	if err := other.Reset(2); err != nil {
		t.Fatal(err)
	}
	release()
	if got, _ := records(t, j, 1); got != nil {
		t.Errorf("after Reset: %v", got)
	}
	release = lockJournal(t, j, true)
	if _, err := j.Append(2, 0, []byte("new")); err != nil {
		t.Fatal(err)
	}
	release()
	if got, _ := records(t, other, 2); !slices.Equal(got, []string{"new"}) {
		t.Errorf("in the second epoch: %v", got)
	}
	if err := errors.Join(j.Close(), j.Close()); err != nil {
		t.Error(err)
	}
	if _, err := j.Mark(); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestJournalTorn cuts and flips every byte of a journal: what Read returns is
// always a beginning of what was written, and the next record follows on it.
func TestJournalTorn(t *testing.T) {
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole")
	j := OpenJournal(whole, nil)
	release := lockJournal(t, j, true)
	want := []string{"a", strings.Repeat("b", 40), "", "d"}
	end := int64(0)
	for _, r := range want {
		var err error
		if end, err = j.Append(7, end, []byte(r)); err != nil {
			t.Fatal(err)
		}
	}
	release()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(whole)
	if err != nil || int64(len(text)) != end {
		t.Fatalf("%d bytes, %v, want %d", len(text), err, end)
	}
	for i := range text {
		for _, flip := range []bool{false, true} {
			path := filepath.Join(dir, fmt.Sprint(i, flip))
			damaged := slices.Clone(text[:i])
			if flip {
				damaged = slices.Clone(text)
				damaged[i] ^= 0x41
			}
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			j := OpenJournal(path, nil)
			got, at := records(t, j, 7)
			if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
				t.Fatalf("byte %d, flipped %v: %q", i, flip, got)
			}
			release := lockJournal(t, j, true)
			if _, err := j.Append(7, at, []byte("next")); err != nil {
				t.Fatal(err)
			}
			release()
			if again, _ := records(t, j, 7); !slices.Equal(again, append(slices.Clone(got), "next")) {
				t.Fatalf("byte %d, flipped %v: then %q after %q", i, flip, again, got)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
