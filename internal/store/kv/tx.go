package kv

import (
	"bytes"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"
)

// MaxKey is the longest key in bytes.
const MaxKey = bbolt.MaxKeySize

// Tx is a transaction. It must not be used after View or Update returns.
type Tx struct {
	tx    *bbolt.Tx
	write bool
	// The digests of the buckets that this transaction has read or changed, and those changed.
	sums, changed map[string]*digest
}

// ID returns the number of the commit that a View reads or an Update will make.
func (t *Tx) ID() int { return t.tx.ID() }

// Bucket returns the bucket of that name. In an Update a missing bucket is created, in a
// View it is empty.
func (t *Tx) Bucket(name string) (_ *Bucket, err error) {
	defer damaged()
	b := t.tx.Bucket([]byte(name))
	if b == nil && name != sumsBucket && t.digest(name).count > 0 {
		panic(damage(fmt.Sprintf("the bucket %q is missing", name)))
	}
	if b == nil && t.write {
		if b, err = t.tx.CreateBucket([]byte(name)); err != nil {
			return nil, fmt.Errorf("creating bucket %q: %w", name, err)
		}
	}
	if b != nil {
		b.FillPercent = fillPercent
	}
	return &Bucket{tx: t, b: b, name: name, seed: seed(name)}, nil
}

// buckets returns the names of all buckets in order, also of those that only have a digest.
func (t *Tx) buckets() (names []string) {
	defer damaged()
	_ = t.tx.ForEach(func(name []byte, _ *bbolt.Bucket) error { // the function returns no error
		names = append(names, string(name))
		return nil
	})
	if sums, err := t.Bucket(sumsBucket); err == nil {
		sums.Seek(nil, func(name, _ []byte) bool {
			names = append(names, string(name))
			return true
		})
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == sumsBucket })
}

// fillPercent is the share of a page that bbolt fills when it splits one. Most records are
// written in the order of their keys, as the files of a walk are, and never fill the rest
// of a page. With bbolt's default of 0.5 a file was up to 1.9 times as large as its
// records.
const fillPercent = 0.9

// Bucket maps keys, ordered by their bytes, to values. The bytes that it returns are read
// only and valid until the transaction ends. A read of damaged data ends the transaction
// with a *CorruptError. A nil Bucket is empty.
type Bucket struct {
	tx   *Tx
	b    *bbolt.Bucket // nil for a missing bucket in a View
	name string
	seed uint32 // see seed
}

// Get returns the value of key, nil if it is missing. An empty value is not nil.
func (b *Bucket) Get(key []byte) []byte {
	if b == nil || b.b == nil {
		return nil
	}
	defer damaged()
	stored := b.b.Get(key)
	if stored == nil {
		return nil
	}
	value, _ := b.open(key, stored)
	return value
}

// Need is Get for a key that another record refers to. A missing key means that the file
// is damaged.
func (b *Bucket) Need(key []byte) []byte {
	value := b.Get(key)
	if value == nil {
		panic(damage(fmt.Sprintf("the record %.80q of the bucket %q is missing", key, b.name)))
	}
	return value
}

// Put sets key, of 1 to MaxKey bytes, to value. In a View it fails.
func (b *Bucket) Put(key, value []byte) error {
	if b.b == nil {
		return ErrReadOnly
	}
	defer damaged()
	stored := seal(b.seed, key, value)
	before := b.b.Get(key)
	if err := b.b.Put(key, stored); err != nil {
		return err
	}
	b.replaced(before, stored)
	return nil
}

// Delete removes key, if it is present. In a View it fails.
func (b *Bucket) Delete(key []byte) error {
	if b.b == nil {
		return ErrReadOnly
	}
	defer damaged()
	before := b.b.Get(key)
	if err := b.b.Delete(key); err != nil {
		return err
	}
	b.replaced(before, nil)
	return nil
}

// replaced updates the bucket's digest after a change of a stored value. nil means that
// there was, or is, no value.
func (b *Bucket) replaced(before, after []byte) {
	if before == nil && after == nil {
		return
	}
	d := b.tx.digest(b.name)
	b.tx.changed[b.name] = d
	if before != nil {
		d.count, d.sum = d.count-1, d.sum-uint64(sumOf(before))
	}
	if after != nil {
		d.add(sumOf(after))
	}
}

// NextSequence returns the next number of the bucket: 1, 2, 3, ... In a View it fails.
func (b *Bucket) NextSequence() (uint64, error) {
	if b.b == nil {
		return 0, ErrReadOnly
	}
	defer damaged()
	return b.b.NextSequence()
}

// ForEach calls fn with every key in order until fn returns false. fn must not change the
// bucket. If fn has seen all keys, ForEach checks that none is missing.
func (b *Bucket) ForEach(fn func(key, value []byte) bool) {
	if b == nil {
		return
	}
	var seen digest
	whole := true
	b.each(nil, func(key, value []byte, sum uint32) bool {
		seen.add(sum)
		whole = fn(key, value)
		return whole
	})
	if want := b.tx.digest(b.name); whole && seen != *want {
		panic(damage(fmt.Sprintf("the bucket %q has %d records and its digest counts %d, or records differ", b.name, seen.count, want.count)))
	}
}

// Prefix calls fn with every key that begins with prefix, in order, until fn returns
// false. fn must not change the bucket.
func (b *Bucket) Prefix(prefix []byte, fn func(key, value []byte) bool) {
	b.Seek(prefix, func(k, v []byte) bool { return bytes.HasPrefix(k, prefix) && fn(k, v) })
}

// Seek calls fn with every key that is at least start, in order, until fn returns false.
// fn must not change the bucket.
func (b *Bucket) Seek(start []byte, fn func(key, value []byte) bool) {
	b.each(start, func(key, value []byte, _ uint32) bool { return fn(key, value) })
}

// each is Seek that also passes the checksums.
func (b *Bucket) each(start []byte, fn func(key, value []byte, sum uint32) bool) {
	if b == nil || b.b == nil {
		return
	}
	c := b.b.Cursor()
	move := func() (key, stored []byte) { return c.Seek(start) }
	for {
		key, value, sum := b.read(move)
		if key == nil || !fn(key, value, sum) {
			return
		}
		move = c.Next
	}
}

// read returns the record to which move moves a cursor, a nil key at the end.
func (b *Bucket) read(move func() (key, stored []byte)) (key, value []byte, sum uint32) {
	defer damaged()
	key, stored := move()
	if key != nil {
		value, sum = b.open(key, stored)
	}
	return key, value, sum
}

// open returns the value and the checksum of a stored value.
func (b *Bucket) open(key, stored []byte) ([]byte, uint32) {
	value, sum, ok := unseal(b.seed, key, stored)
	if !ok {
		panic(damage(fmt.Sprintf("the record %.80q of the bucket %q", key, b.name)))
	}
	return value, sum
}
