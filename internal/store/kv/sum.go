package kv

import (
	"encoding/binary"
	"fmt"

	"cairn/internal/base/checksum"
)

// Every stored value ends with a checksum of the bucket's name, the key and the value (4
// bytes, little-endian). The bucket sumsBucket holds a digest of every other bucket: the
// number of its records and the sum of their checksums (8 bytes each). A read finds a
// damaged record, and a read of the whole bucket finds a missing one.
const (
	sumsBucket = "checksums"
	sumSize    = 4
)

var separator = []byte{0}

// seed returns the initial value of the checksums of a bucket.
func seed(bucket string) uint32 { return checksum.Add(checksum.Of([]byte(bucket)), separator) }

func checksumOf(seed uint32, key, value []byte) uint32 {
	return checksum.Add(checksum.Add(checksum.Add(seed, key), separator), value)
}

// seal returns value with its checksum appended.
func seal(seed uint32, key, value []byte) []byte {
	stored := make([]byte, len(value), len(value)+sumSize)
	copy(stored, value)
	return binary.LittleEndian.AppendUint32(stored, checksumOf(seed, key, value))
}

// unseal is the inverse of seal. ok is false for a damaged value.
func unseal(seed uint32, key, stored []byte) (value []byte, sum uint32, ok bool) {
	n := len(stored) - sumSize
	if n < 0 {
		return nil, 0, false
	}
	value, sum = stored[:n:n], sumOf(stored)
	return value, sum, checksumOf(seed, key, value) == sum
}

// sumOf returns the checksum at the end of a stored value.
func sumOf(stored []byte) uint32 {
	if len(stored) < sumSize {
		return 0
	}
	return binary.LittleEndian.Uint32(stored[len(stored)-sumSize:])
}

// digest is the number and the sum of the checksums of a bucket's records.
type digest struct{ count, sum uint64 }

func (d *digest) add(sum uint32) { d.count, d.sum = d.count+1, d.sum+uint64(sum) }

// digest returns the digest of a bucket, including the changes of this transaction.
func (t *Tx) digest(bucket string) *digest {
	if d := t.sums[bucket]; d != nil {
		return d
	}
	d := &digest{}
	if sums := t.tx.Bucket([]byte(sumsBucket)); sums != nil {
		if stored := sums.Get([]byte(bucket)); stored != nil {
			value, _, ok := unseal(seed(sumsBucket), []byte(bucket), stored)
			if !ok {
				panic(damage(fmt.Sprintf("the digest of the bucket %q", bucket)))
			}
			if len(value) == 16 {
				d.count, d.sum = u64(value), u64(value[8:])
			}
		}
	}
	if t.sums == nil {
		t.sums, t.changed = map[string]*digest{}, map[string]*digest{}
	}
	t.sums[bucket] = d
	return d
}

// writeDigests stores the digests that the transaction has changed.
func (t *Tx) writeDigests() error {
	sums, err := t.tx.CreateBucketIfNotExists([]byte(sumsBucket))
	if err != nil {
		return err
	}
	for name, d := range t.changed {
		value := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, d.count), d.sum)
		if err := sums.Put([]byte(name), seal(seed(sumsBucket), []byte(name), value)); err != nil {
			return err
		}
	}
	return nil
}
