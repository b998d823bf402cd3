package flat

import "testing"

func open(t testing.TB, dir string, dim int, o *Options) *Store {
	t.Helper()
	s, err := Open(dir, dim, "model@1", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
