package qdrant

import (
	"bytes"
	"errors"
	"strconv"
	"sync"
	"testing"
)

func TestSparseAddsTermsOfOneIndex(t *testing.T) {
	indices, values := sparse(map[string]float64{"token": 0.5, "access": 0.25})
	if len(indices) != 2 || indices[0] >= indices[1] || values[0]+values[1] != 0.75 {
		t.Errorf("sparse: %v, %v, want two rising indices", indices, values)
	}
}

func TestRecords(t *testing.T) {
	servers(t, func(t *testing.T, addr string) {
		r := dial(t, addr, nil).Records()
		if value, version, err := r.Get(background, "none"); value != nil || version != 0 || err != nil {
			t.Errorf("a record that is not there: %q, %d, %v", value, version, err)
		}
		large := bytes.Repeat([]byte("0123456789abcde\x00"), 4096)
		version := int64(0)
		for _, value := range [][]byte{[]byte("one"), large, nil, large[:100]} {
			var err error
			before := version
			if version, err = r.Put(background, "name", value, before); err != nil || version != before+1 {
				t.Fatalf("Put of %d bytes: %d, %v, want %d", len(value), version, err, before+1)
			}
			got, at, err := r.Get(background, "name")
			if !bytes.Equal(got, value) || at != version || err != nil {
				t.Errorf("Get: %d bytes of version %d, %v, want %d bytes of %d", len(got), at, err, len(value), version)
			}
			for _, wrong := range []int64{before, version + 1, 0} {
				if _, err := r.Put(background, "name", []byte("no"), wrong); !errors.Is(err, ErrConflict) {
					t.Errorf("Put over version %d of %d: %v, want %v", wrong, version, err, ErrConflict)
				}
			}
		}
	})
}

// TestRecordsCount has several processes add to one number: none is lost.
func TestRecordsCount(t *testing.T) {
	servers(t, func(t *testing.T, addr string) {
		const writers, each = 4, 10
		collection := newName()
		var wg sync.WaitGroup
		for range writers {
			r := dialTo(t, addr, collection, nil).Records()
			wg.Go(func() {
				for done := 0; done < each; {
					value, version, err := r.Get(background, "n")
					if err != nil {
						t.Error(err)
						return
					}
					n, _ := strconv.Atoi(string(value)) // of nothing: 0
					switch _, err = r.Put(background, "n", []byte(strconv.Itoa(n+1)), version); {
					case err == nil:
						done++
					case !errors.Is(err, ErrConflict):
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		value, version, err := dialTo(t, addr, collection, nil).Records().Get(background, "n")
		if string(value) != strconv.Itoa(writers*each) || version != writers*each || err != nil {
			t.Errorf("after %d additions: %q of version %d, %v", writers*each, value, version, err)
		}
	})
}
