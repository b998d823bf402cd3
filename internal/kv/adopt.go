package kv

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
)

// Adopt adds the records of the named buckets that the file to lacks from the file from,
// unless check, which may change from, fails. It recovers from where it is damaged, and
// creates to where it is missing. It returns the number of records added: none where
// from is missing.
func Adopt(from, to string, buckets []string, check func(*DB) error, recovered func(*Recovery)) (added int, err error) {
	if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	added, err = adopt(from, to, buckets, check)
	if corrupt, ok := errors.AsType[*CorruptError](err); !ok || corrupt.Path != from {
		return added, err
	}
	r, err := Recover(from)
	if err != nil {
		return 0, err
	}
	if r != nil {
		recovered(r)
	}
	return adopt(from, to, buckets, check)
}

func adopt(from, to string, buckets []string, check func(*DB) error) (added int, err error) {
	source, err := Open(from, &Options{Convert: true})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if err := check(source); err != nil {
		return 0, err
	}
	target, err := Open(to, &Options{Convert: true, Snapshots: true})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	err = source.View(func(have *Tx) error {
		return target.Update(func(into *Tx) error {
			for _, name := range buckets {
				n, err := have.copyMissing(into, name)
				if err != nil {
					return err
				}
				added += n
			}
			return nil
		})
	})
	return added, err
}

// copyMissing copies the records of a bucket that into lacks.
func (t *Tx) copyMissing(into *Tx, name string) (copied int, err error) {
	have, err := t.Bucket(name)
	if err != nil {
		return 0, err
	}
	to, err := into.Bucket(name)
	if err != nil {
		return 0, err
	}
	have.ForEach(func(key, value []byte) bool {
		if to.Get(key) == nil {
			err = to.Put(bytes.Clone(key), bytes.Clone(value))
			copied++
		}
		return err == nil
	})
	return copied, err
}
