package mirror

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"cairn/internal/store/qdrant"
)

// Store is a Qdrant store with the settings to reach it.
type Store struct {
	qdrant.Target
	options qdrant.Options
}

// ParseStore parses an address such as qdrant://HOST:6334/COLLECTION. It reads other
// settings from the environment: QDRANT_API_KEY, QDRANT_CA_FILE, CAIRN_STORE_SHARDS,
// CAIRN_STORE_REPLICAS and CAIRN_STORE_WRITE_CONSISTENCY for new collections, and
// CAIRN_STORE_EXACT=true for exact search.
func ParseStore(address string, getenv func(string) string) (*Store, error) {
	target, err := qdrant.ParseTarget(address)
	if err != nil {
		return nil, err
	}
	s := &Store{Target: target, options: qdrant.Options{APIKey: getenv("QDRANT_API_KEY"), CAFile: getenv("QDRANT_CA_FILE")}}
	for name, to := range map[string]*uint32{
		"CAIRN_STORE_SHARDS": &s.options.Shards, "CAIRN_STORE_REPLICAS": &s.options.Replicas, "CAIRN_STORE_WRITE_CONSISTENCY": &s.options.WriteConsistency,
	} {
		if value := getenv(name); value != "" {
			n, err := strconv.ParseUint(value, 10, 16)
			if err != nil || n < 1 {
				return nil, fmt.Errorf("environment variable %s=%q: want a number from 1", name, value)
			}
			*to = uint32(n)
		}
	}
	if value := getenv("CAIRN_STORE_EXACT"); value != "" {
		if s.options.Exact, err = strconv.ParseBool(value); err != nil {
			return nil, fmt.Errorf("environment variable CAIRN_STORE_EXACT=%q: want true or false", value)
		}
	}
	return s, nil
}

// Exact returns the store with exact search, whatever its settings.
func (s *Store) Exact() *Store {
	exact := *s
	exact.options.Exact = true
	return &exact
}

// Dial prepares a connection to the store; see qdrant.Dial.
func (s *Store) Dial(log *slog.Logger) (*qdrant.Client, error) {
	o := s.options
	o.Log = log
	return qdrant.Dial(s.Target, &o)
}

// Unavailable reports whether an error means that a store does not answer, so that the same
// request may succeed later.
func Unavailable(err error) bool {
	_, ok := errors.AsType[*qdrant.UnavailableError](err)
	return ok
}
