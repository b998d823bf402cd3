package shared

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"cairn/internal/kv"
	"cairn/internal/usage"
)

// The first byte of a journal's record says what it is.
const (
	changeRecord = 'c' // a payload follows
	sealRecord   = 's' // the epoch has ended
)

// sealSize is what a seal counts for: a sealed journal is a full one.
const sealSize = usage.MaxJournal + 1

// pageRecords is how many records are asked for at a time.
const pageRecords = 256

// Journal is a usage.Journal in records. It holds the current epoch in memory,
// at most somewhat more than usage.MaxJournal.
type Journal struct {
	db   *Usage
	hold sync.Mutex // held within Lock

	// What follows is guarded by db.mu.
	epoch   uint64 // 0 before the database was read
	version int64  // of the database that the epoch goes on from
	records [][]byte
	ends    []int64 // of each record, in bytes
	sealed  bool

	removing sync.WaitGroup
	closed   bool
}

// Usage is the database of a usage graph with its journal. Both change together:
// the journal's epoch is the one that the database begins.
type Usage struct {
	DB
	journal Journal
}

var _ usage.Journal = (*Journal)(nil)

// OpenUsage returns the database of that name and its journal. It asks for
// nothing yet.
func OpenUsage(r Records, name string, o Options) *Usage {
	u := &Usage{DB: DB{records: r, name: name, o: o}}
	u.journal.db = u
	return u
}

// Journal returns the journal, which goes with this database alone.
func (u *Usage) Journal() *Journal { return &u.journal }

// View implements usage.DB. It shows the version that the journal goes on from,
// which Mark brings up to date.
func (u *Usage) View(fn func(*kv.Tx) error) error {
	u.mu.Lock()
	var err error
	if u.journal.epoch == 0 {
		err = u.journal.poll(true)
	}
	s := u.state
	u.mu.Unlock()
	if err != nil || s.version == 0 {
		return err
	}
	return s.image.View(fn)
}

// Update implements usage.DB: it fails with usage.ErrOvertaken when another
// process has written since the journal was read.
func (u *Usage) Update(fn func(*kv.Tx) error) error {
	u.writing.Lock()
	defer u.writing.Unlock()
	u.mu.Lock()
	s := u.state
	u.mu.Unlock()
	err := u.replace(s, fn)
	if err != nil && u.o.Conflict(err) {
		return u.journal.overtaken()
	}
	return err
}

// poll reads what is new in the store, at most every Age unless forced. db.mu is held.
func (j *Journal) poll(force bool) error {
	u := j.db
	now := u.o.now()
	if j.closed {
		return errClosed
	}
	if j.epoch > 0 && !force && now.Sub(u.at) < Age && j.version == u.state.version {
		return nil
	}
	err := j.read(context.Background())
	if err != nil && j.epoch > 0 && !force && u.o.Away(err) {
		err = nil // asked again after an Age
	} else if err != nil {
		return err
	}
	u.at = now
	return nil
}

func (j *Journal) read(ctx context.Context) error {
	u := j.db
	next, err := u.DB.read(ctx)
	if err != nil {
		return err
	}
	if j.epoch == 0 || next.version != j.version {
		var before uint64
		if err := next.image.View(func(tx *kv.Tx) (err error) { before, err = usage.Epoch(tx); return err }); err != nil {
			return err
		}
		j.epoch, j.version, j.records, j.ends, j.sealed = before+1, next.version, nil, nil, false
	}
	u.state, u.known = next, true
	for !j.sealed {
		names := make([]string, pageRecords)
		for i := range names {
			names[i] = j.record(j.epoch, len(j.records)+i)
		}
		values, err := u.records.Values(ctx, names)
		if err != nil {
			return err
		}
		for _, value := range values {
			if value == nil {
				return nil
			}
			if err := j.add(value); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *Journal) record(epoch uint64, n int) string {
	return fmt.Sprintf("%s/%d/%d", j.db.name, epoch, n)
}

// add takes the next record of the epoch.
func (j *Journal) add(value []byte) error {
	size := int64(len(value))
	switch {
	case len(value) > 0 && value[0] == changeRecord:
	case len(value) == 1 && value[0] == sealRecord:
		j.sealed, size = true, sealSize
	default:
		return fmt.Errorf("record %s is damaged or of another version of cairn", j.record(j.epoch, len(j.records)))
	}
	j.records, j.ends = append(j.records, value), append(j.ends, j.end()+size)
	return nil
}

func (j *Journal) end() int64 {
	if len(j.ends) == 0 {
		return 0
	}
	return j.ends[len(j.ends)-1]
}

// overtaken reads what another process wrote, and returns the error that says so.
func (j *Journal) overtaken() error {
	j.db.mu.Lock()
	defer j.db.mu.Unlock()
	return errors.Join(usage.ErrOvertaken, j.poll(true))
}

// Lock implements usage.Journal: it keeps out who shares this one.
func (j *Journal) Lock(bool) (release func(), err error) {
	j.hold.Lock()
	return j.hold.Unlock, nil
}

// Mark implements usage.Journal.
func (j *Journal) Mark() (kv.JournalMark, error) {
	j.db.mu.Lock()
	defer j.db.mu.Unlock()
	if err := j.poll(false); err != nil {
		return kv.JournalMark{}, err
	}
	return kv.JournalMark{Epoch: j.epoch, Size: j.end()}, nil
}

// Read implements usage.Journal.
func (j *Journal) Read(epoch uint64, from int64, fn func(payload []byte) error) (end int64, err error) {
	j.db.mu.Lock()
	records, ends := j.records, j.ends
	same := epoch == j.epoch
	j.db.mu.Unlock()
	if !same {
		return from, usage.ErrOvertaken
	}
	end = from
	for i, value := range records {
		if ends[i] <= from {
			continue
		}
		if value[0] == changeRecord {
			if err := fn(value[1:]); err != nil {
				return end, err
			}
		}
		end = ends[i]
	}
	return end, nil
}

// Append implements usage.Journal.
func (j *Journal) Append(epoch uint64, end int64, payload []byte) (int64, error) {
	value := append([]byte{changeRecord}, payload...)
	if err := j.put(epoch, end, value); err != nil {
		return end, err
	}
	return end + int64(len(value)), nil
}

// Seal implements usage.Journal.
func (j *Journal) Seal(epoch uint64, end int64) error {
	j.db.mu.Lock()
	done := j.sealed && j.epoch == epoch && j.end() == end
	j.db.mu.Unlock()
	if done {
		return nil
	}
	return j.put(epoch, end, []byte{sealRecord})
}

// put makes the record at end.
func (j *Journal) put(epoch uint64, end int64, value []byte) error {
	ctx, u := context.Background(), j.db
	u.mu.Lock()
	n, version, current := len(j.records), j.version, j.epoch == epoch && j.end() == end && !j.sealed
	u.mu.Unlock()
	if !current {
		return j.overtaken()
	}
	if _, err := u.records.Put(ctx, j.record(epoch, n), value, 0); err != nil {
		if u.o.Conflict(err) {
			return j.overtaken()
		}
		return err
	}
	// Had the records of the epoch been removed by then, this one is lost.
	now, err := u.records.Version(ctx, u.name)
	if err != nil {
		return err
	}
	if now > version+1 {
		return j.overtaken()
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if j.epoch == epoch && len(j.records) == n { // else it was read meanwhile
		return j.add(value)
	}
	return nil
}

// Reset implements usage.Journal: what nobody can meet any more is removed, behind.
func (j *Journal) Reset(epoch uint64) error {
	j.db.mu.Lock()
	defer j.db.mu.Unlock()
	if epoch > 2 && !j.closed {
		j.removing.Go(func() { j.remove(epoch - 2) })
	}
	return nil
}

// remove removes the records of an epoch. What a failure leaves is never read.
func (j *Journal) remove(epoch uint64) {
	ctx := context.Background()
	for n := 0; ; n += pageRecords {
		names := make([]string, pageRecords)
		for i := range names {
			names[i] = j.record(epoch, n+i)
		}
		values, err := j.db.records.Values(ctx, names)
		if err != nil || values[0] == nil || j.db.records.Remove(ctx, names) != nil {
			return
		}
	}
}

// Close implements usage.Journal.
func (j *Journal) Close() error {
	j.db.mu.Lock()
	j.closed = true
	j.db.mu.Unlock()
	j.removing.Wait()
	return nil
}
