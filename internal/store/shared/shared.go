// Package shared keeps in versioned records of a store beyond the machine what
// a folder keeps in files: databases of buckets, and the journal of the usage
// graph. A process needs no disk for them, any number of processes on any
// machines read and write them, and all come to the same contents.
//
// # Databases
//
// A database is one record, whose value is a kv.Image: a few megabytes for ten
// thousand tools, or for fifty thousand intents. A write is made on a copy and
// put in place of the version it was made from; when another process was first,
// it is made anew on what that wrote. So writes come one after the other
// without a lock, and one that is cut short has not happened.
//
// Readers have the image in memory and ask for its version at most every Age.
// While the store is away they answer from what they have.
//
// # Journal
//
// What is learnt from use are many small changes. Each is a record of its own,
// NAME/EPOCH/NUMBER, which is made only if there is none yet: of two processes
// that want to be number n one is told that it was overtaken, reads what the
// other wrote, and is n+1. All processes read the changes in this order over the
// same database, and a change holds its time, so all count the same.
//
// When a journal has grown, who notices puts its records into the database:
//
//  1. It seals the epoch, by a record that says so, at the end of what it has
//     read. From then on nothing can be added to the epoch.
//  2. It writes the database, with everything in it, in place of the version the
//     epoch belongs to. The next epoch has begun.
//  3. It removes the records of the epoch before the one it sealed.
//
// A process that dies after the first step leaves a sealed journal. Whoever
// wants to write next takes the second step itself. The records of the sealed
// epoch stay for one epoch more, so that a slow process that still writes to it
// meets the seal; one that is slower than that finds, when it looks after its
// write, that the database is two versions on, and writes again.
package shared

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"cairn/internal/kv"
)

// Records are small named values with versions. *qdrant.Records are such.
type Records interface {
	// Get returns a value with its version, which counts from 1; 0 when there is none.
	Get(ctx context.Context, name string) (value []byte, version int64, err error)
	// Version returns that of a record, without its value.
	Version(ctx context.Context, name string) (int64, error)
	// Put replaces version from, 0 where there is none yet, unless another
	// process has: then its error is one for which Options.Conflict is true.
	Put(ctx context.Context, name string, value []byte, from int64) (int64, error)
	// Values returns the values of small records; nil for one that is not there.
	Values(ctx context.Context, names []string) ([][]byte, error)
	// Remove removes small records. One that is not there is no error.
	Remove(ctx context.Context, names []string) error
}

// Age is how old what a process knows of a record may be. It bounds how long a
// write of one server is not seen by another.
const Age = 500 * time.Millisecond

// Options say what the errors of the records mean, and the time.
type Options struct {
	// Conflict reports whether an error says that a record has another version.
	Conflict func(error) bool
	// Away reports whether an error says that the store does not answer.
	Away func(error) bool
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

func (o Options) now() time.Time {
	if o.Now != nil {
		return o.Now()
	}
	return time.Now()
}

// DB is a database of buckets in a record. It implements catalog.DB and
// graph.DB, and is safe for concurrent use.
type DB struct {
	records Records
	name    string
	o       Options

	writing sync.Mutex

	mu    sync.Mutex
	state state
	known bool      // state was read once
	at    time.Time // when state was current
}

// state is a version of the database.
type state struct {
	image   *kv.Image
	version int64
}

// Open returns the database of that name. It asks for nothing yet.
func Open(r Records, name string, o Options) *DB {
	return &DB{records: r, name: name, o: o}
}

// View calls fn with the database as it was within the last Age, or since when
// the store is away; it does not if nothing was ever written.
func (d *DB) View(fn func(*kv.Tx) error) error {
	s, err := d.current(false)
	if err != nil || s.version == 0 {
		return err
	}
	return s.image.View(fn)
}

// current reads the database when it has changed. With force it is as it is now.
func (d *DB) current(force bool) (state, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.o.now()
	if d.known && !force && now.Sub(d.at) < Age {
		return d.state, nil
	}
	next, err := d.read(context.Background())
	if err != nil {
		if d.known && !force && d.o.Away(err) {
			d.at = now // asked again after an Age
			return d.state, nil
		}
		return state{}, err
	}
	d.state, d.known, d.at = next, true, now
	return next, nil
}

// read reads the database if it has another version than the one in memory. d.mu is held.
func (d *DB) read(ctx context.Context) (state, error) {
	if d.known {
		version, err := d.records.Version(ctx, d.name)
		if err != nil || version == d.state.version {
			return d.state, err
		}
	}
	value, version, err := d.records.Get(ctx, d.name)
	if err != nil || version == 0 {
		return state{image: &kv.Image{}}, err
	}
	image, err := kv.ReadImage(value)
	if err != nil {
		return state{}, fmt.Errorf("record %s: %w", d.name, err)
	}
	return state{image, version}, nil
}

// maxConflicts is how often a write begins anew: each time another one has come
// through.
const maxConflicts = 100

// Update calls fn with a transaction on the newest version, again on a newer
// one when another process was first.
func (d *DB) Update(fn func(*kv.Tx) error) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	for tries := 1; ; tries++ {
		s, err := d.current(true)
		if err != nil {
			return err
		}
		if err = d.replace(s, fn); err == nil || tries == maxConflicts || !d.o.Conflict(err) {
			return err
		}
	}
}

// replace puts what fn makes of s in its place.
func (d *DB) replace(s state, fn func(*kv.Tx) error) error {
	image, err := s.image.Update(fn)
	if err != nil {
		return err
	}
	value, err := image.Bytes()
	if err != nil {
		return err
	}
	version, err := d.records.Put(context.Background(), d.name, value, s.version)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.known || version > d.state.version {
		d.state, d.known, d.at = state{image, version}, true, d.o.now()
	}
	return nil
}

var errClosed = errors.New("the journal is closed")
