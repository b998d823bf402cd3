package usage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"cairn/graphrank"
	"cairn/internal/checksum"
)

// ImportJournal adds the journal of format 2 at path to the records, then removes
// the file. A missing file is not an error. When the records cannot be written,
// the journal remains and only the graph in memory includes it.
func (s *Store) ImportJournal(path string) error {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	s.commit.Lock()
	defer s.commit.Unlock()
	epoch, changes, damaged, err := readJournal(b)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	add := func(d *delta, _ time.Time) {
		if epoch != s.meta[epochKey]+1 {
			return // already imported, or never written
		}
		for _, c := range changes {
			s.add(d, c.Change, c.at)
		}
		d.meta[epochKey] = epoch
	}
	if err := s.update(add); err != nil {
		now, d := s.o.Now(), newDelta()
		s.mu.Lock()
		defer s.mu.Unlock()
		add(&d, now)
		s.install(d, s.generation, now)
		return nil
	}
	if damaged {
		s.o.Logger.Warn("records of the usage journal are damaged; the others are imported", "kept", path+".damaged")
		return os.Rename(path, path+".damaged")
	}
	err = os.Remove(path + ".lock")
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(os.Remove(path), err)
}

// timedChange is a change and the time it was made.
type timedChange struct {
	Change
	at time.Time
}

// readJournal reads a journal. It has the magic "cairnlog", version 1 (uint32), an
// epoch (uint64) and the CRC-32C of these 20 bytes, then records: length (uint32),
// CRC-32C (uint32) and payload, see readChange. All numbers are little-endian. The
// last record may be torn, since a killed process was writing it; damaged reports
// whether an earlier one is, which is left out. Without a header the epoch is 0.
func readJournal(b []byte) (epoch uint64, changes []timedChange, damaged bool, err error) {
	skipped := false
	u32 := binary.LittleEndian.Uint32
	if len(b) < 24 || !bytes.HasPrefix(b, []byte("cairnlog\x01\x00\x00\x00")) || u32(b[20:]) != checksum.Of(b[:20]) {
		return 0, nil, false, nil
	}
	epoch = binary.LittleEndian.Uint64(b[12:])
	for b = b[24:]; len(b) >= 8; {
		size := int(u32(b))
		if size == 0 || size > len(b)-8 || u32(b[4:]) != checksum.Of(b[8:8+size]) {
			b, skipped = b[1:], true
			continue
		}
		c, err := readChange(b[8 : 8+size])
		if err != nil {
			return 0, nil, false, err
		}
		damaged = damaged || skipped // a torn end has no whole record behind it
		changes = append(changes, c)
		b = b[8+size:]
	}
	return epoch, changes, damaged, nil
}

// readChange reads a record of the journal: its time (Unix seconds), the number of
// observations and of each its type, plus 8 where it is weak, and both ends, the
// number of intents and each as appendIntent writes it, after its length. Texts
// follow their length in bytes; all numbers are unsigned varints.
func readChange(b []byte) (c timedChange, err error) {
	const weak = 8
	bad := false
	number := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > 1<<40 {
			bad, b = true, nil
			return 0
		}
		b = b[n:]
		return v
	}
	text := func() string {
		n := number()
		if n > uint64(len(b)) {
			bad, b = true, nil
			return ""
		}
		t := string(b[:n])
		b = b[n:]
		return t
	}
	c.at = time.Unix(int64(number()), 0)
	for n := number(); n > 0 && !bad; n-- {
		t := number()
		s := Observation{From: text(), To: text(), Type: graphrank.Type(t % weak), Weak: t >= weak}
		bad = bad || t%weak > uint64(graphrank.Dependency) || checkID(s.From) != nil || checkID(s.To) != nil
		c.Observations = append(c.Observations, s)
	}
	for n := number(); n > 0 && !bad; n-- {
		m, err := decodeIntent([]byte(text()))
		bad = bad || err != nil
		c.Intents = append(c.Intents, m)
	}
	if bad || len(b) > 0 {
		return timedChange{}, errors.New("a record of the usage journal is damaged")
	}
	return c, nil
}
