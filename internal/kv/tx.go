package kv

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/bbolt"
)

// MaxKey is the longest key in bytes.
const MaxKey = bbolt.MaxKeySize

// Tx is a transaction. It must not be used after View or Update returns.
type Tx struct {
	tx    *bbolt.Tx
	write bool

	image   *Image          // instead of tx
	changed map[string]bool // buckets of image that are copies
}

// Bucket returns the bucket of that name. Update creates it when it is absent;
// in View an absent bucket is an empty one.
func (t *Tx) Bucket(name string) (*Bucket, error) {
	if t.image != nil {
		return &Bucket{m: t.memory(name), write: t.write}, nil
	}
	b := t.tx.Bucket([]byte(name))
	if b == nil && t.write {
		var err error
		if b, err = t.tx.CreateBucket([]byte(name)); err != nil {
			return nil, fmt.Errorf("creating bucket %q: %w", name, err)
		}
	}
	return &Bucket{b: b}, nil
}

// Drop removes the bucket of that name with all it holds. An absent one is no error.
func (t *Tx) Drop(name string) error {
	if t.image != nil {
		if !t.write {
			return ErrReadOnly
		}
		delete(t.image.buckets, name)
		delete(t.changed, name)
		return nil
	}
	if t.tx.Bucket([]byte(name)) == nil {
		return nil
	}
	if err := t.tx.DeleteBucket([]byte(name)); err != nil {
		return fmt.Errorf("dropping bucket %q: %w", name, err)
	}
	return nil
}

// Entry is a key with its value.
type Entry struct{ Key, Value []byte }

// Entries returns copies of all that a bucket holds, in the order of the keys.
func (t *Tx) Entries(bucket string) ([]Entry, error) {
	b, err := t.Bucket(bucket)
	if err != nil {
		return nil, err
	}
	var list []Entry
	b.ForEach(func(key, value []byte) bool {
		list = append(list, Entry{bytes.Clone(key), bytes.Clone(value)})
		return true
	})
	return list, nil
}

// Replace makes a bucket hold list and nothing else.
func (t *Tx) Replace(bucket string, list []Entry) error {
	if err := t.Drop(bucket); err != nil {
		return err
	}
	b, err := t.Bucket(bucket)
	if err != nil {
		return err
	}
	for _, e := range list {
		if err := b.Put(e.Key, e.Value); err != nil {
			return err
		}
	}
	return nil
}

// Buckets returns the names of all buckets, sorted.
func (t *Tx) Buckets() []string {
	if t.image != nil {
		return slices.Sorted(maps.Keys(t.image.buckets))
	}
	var names []string
	_ = t.tx.ForEach(func(name []byte, _ *bbolt.Bucket) error { // the callback never fails
		names = append(names, string(name))
		return nil
	})
	return names
}

// Bucket is a set of keys with values, ordered by the bytes of the key. Bytes
// it returns belong to the file: read only, and valid until the transaction ends.
type Bucket struct {
	b *bbolt.Bucket

	m     *memory // instead of b
	write bool
}

// Get returns the value of key, nil when it is absent. An empty value is not nil.
func (b *Bucket) Get(key []byte) []byte {
	if b.m != nil {
		return b.m.values[string(key)]
	}
	if b.b == nil {
		return nil
	}
	return b.b.Get(key)
}

// Put sets key, 1 to MaxKey bytes, to value, which must stay as it is until
// the transaction ends. In a View it is an error.
func (b *Bucket) Put(key, value []byte) error {
	if b.m != nil && b.write {
		return b.m.put(key, value)
	}
	if b.b == nil {
		return ErrReadOnly
	}
	return b.b.Put(key, value)
}

// Delete removes key. An absent key is no error. In a View it is one.
func (b *Bucket) Delete(key []byte) error {
	if b.m != nil && b.write {
		b.m.remove(key)
		return nil
	}
	if b.b == nil {
		return ErrReadOnly
	}
	return b.b.Delete(key)
}

// NextSequence returns 1, 2, 3, ... for each call on this bucket in an Update.
func (b *Bucket) NextSequence() (uint64, error) {
	if b.m != nil && b.write {
		b.m.sequence++
		return b.m.sequence, nil
	}
	if b.b == nil {
		return 0, ErrReadOnly
	}
	return b.b.NextSequence()
}

// ForEach calls fn with every key in order until it returns false. fn must not
// change the bucket.
func (b *Bucket) ForEach(fn func(key, value []byte) bool) { b.Seek(nil, fn) }

// Prefix calls fn with every key that begins with prefix, in order, until it
// returns false. fn must not change the bucket.
func (b *Bucket) Prefix(prefix []byte, fn func(key, value []byte) bool) {
	b.Seek(prefix, func(k, v []byte) bool { return bytes.HasPrefix(k, prefix) && fn(k, v) })
}

// Seek calls fn with every key from the first that is not below start, in
// order, until it returns false. fn must not change the bucket.
func (b *Bucket) Seek(start []byte, fn func(key, value []byte) bool) {
	if b.m != nil {
		b.m.seek(start, fn)
		return
	}
	if b.b == nil {
		return
	}
	c := b.b.Cursor()
	for k, v := c.Seek(start); k != nil; k, v = c.Next() {
		if !fn(k, v) {
			return
		}
	}
}
