package usage

import (
	"encoding/binary"

	"cairn/internal/kv"
)

func readMeta(tx *kv.Tx) (m meta, err error) {
	b, err := tx.Bucket(metaBucket)
	if err != nil {
		return m, err
	}
	for key, field := range m.fields() {
		if v := b.Get([]byte(key)); len(v) == 8 {
			*field = binary.LittleEndian.Uint64(v)
		}
	}
	if m.version > version {
		return m, &FormatError{m.version, version}
	}
	return m, nil
}

func writeMeta(tx *kv.Tx, m meta) error {
	b, err := tx.Bucket(metaBucket)
	if err != nil {
		return err
	}
	m.version = version
	for key, field := range m.fields() {
		if err := b.Put([]byte(key), binary.LittleEndian.AppendUint64(nil, *field)); err != nil {
			return err
		}
	}
	return nil
}

func (m *meta) fields() map[string]*uint64 {
	return map[string]*uint64{"version": &m.version, "generation": &m.generation, "intents": &m.intents, "remembered": &m.remembered, "swept": &m.swept, "epoch": &m.epoch}
}

// deleteWhere removes the keys of a bucket for which fn says so, and counts them.
func deleteWhere(tx *kv.Tx, bucket string, fn func(key, value []byte) (bool, error)) (int, error) {
	b, err := tx.Bucket(bucket)
	if err != nil {
		return 0, err
	}
	var doomed [][]byte
	b.ForEach(func(key, value []byte) bool {
		var yes bool
		if yes, err = fn(key, value); yes && err == nil {
			doomed = append(doomed, append([]byte(nil), key...))
		}
		return err == nil
	})
	if err != nil {
		return 0, err
	}
	for _, key := range doomed {
		if err := b.Delete(key); err != nil {
			return 0, err
		}
	}
	return len(doomed), nil
}
