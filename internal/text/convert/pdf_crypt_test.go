package convert

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEncryptedPDF converts what qpdf 11.3 encrypted, in every revision, with plain strings
// of metadata or in object streams, with an owner password only: they give the text of the
// plain file. A file with a user password, whose name ends in pw, is refused.
func TestEncryptedPDF(t *testing.T) {
	plain, err := os.ReadFile("testdata/encrypted/plain.pdf")
	if err != nil {
		t.Fatal(err)
	}
	want, err := Markdown(PDF, "a.pdf", plain)
	if err != nil || !strings.Contains(string(want), "The owner may print.") || !strings.Contains(string(want), "## Usage (page 1)") {
		t.Fatalf("%s, %v", want, err)
	}
	files, _ := filepath.Glob("testdata/encrypted/*.pdf")
	if len(files) < 13 {
		t.Fatal(files)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Markdown(PDF, "a.pdf", data)
		switch {
		case strings.HasSuffix(file, "pw.pdf"):
			if err != errPassword {
				t.Errorf("%s: %.40q, %v, want %v", file, got, err, errPassword)
			}
		case err != nil || !bytes.Equal(got, want):
			t.Errorf("%s: %s, %v, want %s", file, got, err, want)
		}
	}
}

// TestCryptFilter decrypts by the crypt filter that a stream names, and not at all by
// Identity, the default.
func TestCryptFilter(t *testing.T) {
	at := place{number: 7}
	f := &pdfFile{w: &writer{}, left: maxUnpacked}
	f.lock = &pdfLock{f: f, key: []byte("12345"), filters: dict{"StdCF": dict{"CFM": name("V2")}}}
	f.data = append(f.lock.open("StdCF", at, []byte("text")), "\nendstream"...)
	for _, c := range []struct {
		parms any
		want  string
	}{
		{dict{"Name": name("StdCF")}, "text"},
		{array{dict{"Name": name("StdCF")}}, "text"},
		{dict{"Name": name("Identity")}, string(f.data[:4])},
		{nil, string(f.data[:4])},
	} {
		d := dict{"Length": 4.0, "Filter": array{name("Crypt")}, "DecodeParms": c.parms}
		if got := f.decode(&stream{d, at}); string(got) != c.want {
			t.Errorf("%v: %q, want %q", c.parms, got, c.want)
		}
	}
}
