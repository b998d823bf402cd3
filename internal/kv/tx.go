package kv

import (
	"bytes"
	"fmt"

	"go.etcd.io/bbolt"
)

// MaxKey is the longest key in bytes.
const MaxKey = bbolt.MaxKeySize

// Tx is a transaction. It must not be used after View or Update returns.
type Tx struct {
	tx    *bbolt.Tx
	write bool
}

// Bucket returns the bucket of that name. Update creates it when it is absent;
// in View an absent bucket is an empty one.
func (t *Tx) Bucket(name string) (*Bucket, error) {
	b := t.tx.Bucket([]byte(name))
	if b == nil && t.write {
		var err error
		if b, err = t.tx.CreateBucket([]byte(name)); err != nil {
			return nil, fmt.Errorf("creating bucket %q: %w", name, err)
		}
	}
	return &Bucket{b: b}, nil
}

// Bucket is a set of keys with values, ordered by the bytes of the key. Bytes
// it returns belong to the file: read only, and valid until the transaction ends.
type Bucket struct {
	b *bbolt.Bucket
}

// Get returns the value of key, nil when it is absent. An empty value is not nil.
func (b *Bucket) Get(key []byte) []byte {
	if b.b == nil {
		return nil
	}
	return b.b.Get(key)
}

// Put sets key, 1 to MaxKey bytes, to value, which must stay as it is until
// the transaction ends. In a View it is an error.
func (b *Bucket) Put(key, value []byte) error {
	if b.b == nil {
		return ErrReadOnly
	}
	return b.b.Put(key, value)
}

// Delete removes key. An absent key is no error. In a View it is one.
func (b *Bucket) Delete(key []byte) error {
	if b.b == nil {
		return ErrReadOnly
	}
	return b.b.Delete(key)
}

// NextSequence returns 1, 2, 3, ... for each call on this bucket in an Update.
func (b *Bucket) NextSequence() (uint64, error) {
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
