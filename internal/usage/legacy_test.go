package usage

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"cairn/graphrank"
)

// journalOf is a journal of format 2 with one record a change.
func journalOf(epoch uint64, changes ...timedChange) []byte {
	sum := func(b []byte) []byte {
		return binary.LittleEndian.AppendUint32(nil, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	}
	b := binary.LittleEndian.AppendUint64([]byte("cairnlog\x01\x00\x00\x00"), epoch)
	b = append(b, sum(b)...)
	for _, c := range changes {
		var r []byte
		text := func(s string) { r = append(binary.AppendUvarint(r, uint64(len(s))), s...) }
		r = binary.AppendUvarint(binary.AppendUvarint(r, unix(c.at)), uint64(len(c.Observations)))
		for _, s := range c.Observations {
			t := uint64(s.Type)
			if s.Weak {
				t += 8
			}
			r = binary.AppendUvarint(r, t)
			text(s.From)
			text(s.To)
		}
		r = binary.AppendUvarint(r, uint64(len(c.Intents)))
		for _, m := range c.Intents {
			m.Last, m.Count = c.at, 1
			text(string(appendIntent(nil, &m)))
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(len(r)))
		b = append(append(b, sum(r)...), r...)
	}
	return b
}

// TestImportJournal: what an earlier version has left in its journal is added once,
// up to the record that a killed process was writing.
func TestImportJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "usage.log")
	c := &clock{start.Add(90 * day)}
	observed := func(at time.Time, intent string) timedChange {
		return timedChange{Change{
			Observations: []Observation{{From: "a", To: "b", Type: graphrank.Dependency}, {From: "x", To: "y", Weak: true}},
			Intents:      []Intent{{Text: intent, Tools: []string{"a"}}},
		}, at}
	}
	journal := journalOf(1, observed(start, "one"), observed(start, "two"))
	for name, b := range map[string][]byte{
		"whole":       journal,
		"cut short":   append(slices.Clone(journal), journalOf(1, observed(start, "three"))[24:40]...),
		"other epoch": nil, // folded in a second time below
	} {
		db := openDB(t)
		s := open(t, db, &Options{Now: c.now})
		if err := s.ImportJournal(path); err != nil {
			t.Fatalf("without a journal: %v", err)
		}
		for range 2 {
			if b == nil {
				b = journal
			}
			for _, file := range []string{path, path + ".lock"} {
				if err := os.WriteFile(file, b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.ImportJournal(path); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if left, _ := filepath.Glob(path + "*"); len(left) > 0 {
				t.Errorf("%s: %v are left", name, left)
			}
		}
		for _, s := range []*Store{s, open(t, db, &Options{Now: c.now})} {
			if got, want := edges(t, s), []string{"a>b dependency inferred 1"}; !slices.Equal(got, want) {
				t.Errorf("%s: edges %v, want %v", name, got, want)
			}
			if got := intentsOf(t, s); len(got) != 2 || !got[0].Last.Equal(start) {
				t.Errorf("%s: intents %+v, want two of the time of the journal", name, got)
			}
		}
	}
	// One flipped bit in the first record loses this record, not those behind it.
	flipped := slices.Clone(journal)
	flipped[40] ^= 1
	if err := os.WriteFile(path, flipped, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, openDB(t), &Options{Now: c.now})
	if err := s.ImportJournal(path); err != nil {
		t.Fatal(err)
	}
	if got := intentsOf(t, s); len(got) != 1 || got[0].Text != "two" {
		t.Errorf("a flipped bit in the first record: intents %+v, want the second", got)
	}
	if _, err := os.Stat(path + ".damaged"); err != nil {
		t.Errorf("the damaged journal is not kept: %v", err)
	}
	if err := os.WriteFile(path, journalOf(1)[:20], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := open(t, openDB(t), nil).ImportJournal(path); err != nil {
		t.Errorf("a journal without a header: %v", err)
	}
}
