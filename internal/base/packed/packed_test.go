package packed

import (
	"slices"
	"testing"
)

func TestReader(t *testing.T) {
	list := []string{"", "a", "longer than one"}
	b := AppendList(AppendText(AppendNumber(nil, 1<<40), "text"), list)
	r := &Reader{Rest: string(b)}
	if n, s, l := r.Number(), r.Text(), r.List(); n != 1<<40 || s != "text" || !slices.Equal(l, list) || !r.Done() {
		t.Errorf("read %d, %q, %q, done %v", n, s, l, r.Done())
	}
	for n := range b { // every shorter record is bad
		r := &Reader{Rest: string(b[:n])}
		r.Number()
		r.Text()
		r.List()
		if !r.Bad {
			t.Errorf("%d bytes of %d are read", n, len(b))
		}
	}
	if r := (&Reader{Rest: "\xff\xff\xff\xff\x7f"}); r.List() != nil || !r.Bad {
		t.Error("a list longer than its record is read")
	}
	if r := (&Reader{Rest: "\x05"}); r.Length(8) != 0 || !r.Bad {
		t.Error("a length beyond the record is read")
	}
	if r := (&Reader{}); r.Byte() != 0 || !r.Bad {
		t.Error("a byte is read off an empty record")
	}
}
