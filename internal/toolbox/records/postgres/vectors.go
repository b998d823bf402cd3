package postgres

import (
	"context"
	"encoding/binary"
	"math"

	"cairn/internal/base/pg"
)

// Vectors is a cache of the vectors of a model by the SHA-256 of the text. Servers share it,
// so that only one of them embeds a text. After an error the text is embedded again.
type Vectors struct {
	db        *DB
	model     string
	dimension int
}

// Vectors returns the cache of a model.
func (db *DB) Vectors(model string, dimension int) *Vectors { return &Vectors{db, model, dimension} }

// Get returns the vector of each key, nil for an unknown key.
func (v *Vectors) Get(keys [][32]byte) ([][]float32, error) {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	vectors := make([][]float32, len(keys))
	err := v.db.pool.With(ctx, func(c *pg.Conn) error {
		return c.Query(ctx, func(row pg.Row) error {
			var n int
			var b []byte
			err := row.Scan(&n, &b)
			if err == nil {
				vectors[n-1] = v.decode(b)
			}
			return err
		}, `SELECT k.n, v.vector FROM unnest($2::bytea[]) WITH ORDINALITY AS k(key, n) JOIN cairn_vectors v ON v.model = $1 AND v.key = k.key`, v.model, slicesOf(keys))
	})
	if err != nil {
		v.db.log.Warn("reading vectors of tools", "error", v.db.fail(err))
	}
	return vectors, nil
}

// Put stores vectors.
func (v *Vectors) Put(keys [][32]byte, vectors [][]float32) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	values := make([][]byte, len(vectors))
	for i, vector := range vectors {
		for _, x := range vector {
			values[i] = binary.LittleEndian.AppendUint32(values[i], math.Float32bits(x))
		}
	}
	err := v.db.pool.With(ctx, func(c *pg.Conn) error {
		_, err := c.Exec(ctx, pg.Statement{
			SQL:  `INSERT INTO cairn_vectors (model, key, vector) SELECT $1, unnest($2::bytea[]), unnest($3::bytea[]) ON CONFLICT DO NOTHING`,
			Args: []any{v.model, slicesOf(keys), values},
		})
		return err
	})
	if err != nil {
		v.db.log.Warn("keeping vectors of tools", "error", v.db.fail(err))
	}
	return nil
}

func slicesOf(keys [][32]byte) [][]byte {
	list := make([][]byte, len(keys))
	for i := range keys {
		list[i] = keys[i][:]
	}
	return list
}

// decode returns nil for bytes that are not a vector of the model.
func (v *Vectors) decode(b []byte) []float32 {
	if len(b) != 4*v.dimension {
		return nil
	}
	vector := make([]float32, v.dimension)
	for i := range vector {
		vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		if x := float64(vector[i]); math.IsNaN(x) || math.IsInf(x, 0) {
			return nil
		}
	}
	return vector
}
