package format

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write the results into testdata")

// TestFiles converts the first file of each archive and compares with the second.
func TestFiles(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal(archives, err)
	}
	for _, name := range archives {
		t.Run(filepath.Base(name), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil || len(a.Files) == 0 {
				t.Fatal(a, err)
			}
			got, err := Markdown(a.Files[0].Name, a.Files[0].Data)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				a.Files = append(a.Files[:1], txtar.File{Name: "want.md", Data: got})
				if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(a.Files[1].Data), string(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		})
	}
}

// TestRefused: a file that cannot be converted gives an *Error with its reason.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ name, data, want string }{
		{"empty.html", "", "no text"},
		{"deep.html", strings.Repeat("<div>", 600) + "x", "nested too deep"},
		{"scripts.html", "<script>document.write('x')</script><nav>Home</nav>", "no text"},
	} {
		text, err := Markdown(c.name, []byte(c.data))
		var e *Error
		if !errors.As(err, &e) || e.Reason != c.want || text != nil {
			t.Errorf("Markdown(%s) = %.40q, %v, want %s", c.name, text, err, c.want)
		}
	}
}

// seeds are small files of every format.
func seeds(t testing.TB) map[string][]byte {
	out := map[string][]byte{}
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range archives {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out[a.Files[0].Name] = a.Files[0].Data
	}
	return out
}

// fuzz converts mutations of the seeds with one extension. Any bytes give Markdown in
// UTF-8, twice the same, or an *Error.
func fuzz(f *testing.F, ext string) {
	for name, data := range seeds(f) {
		if filepath.Ext(name) == ext {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := slices.Clone(data)
		text, err := Markdown("x"+ext, data)
		again, _ := Markdown("x"+ext, data)
		if string(text) != string(again) {
			t.Errorf("two conversions differ: %q and %q", text, again)
		}
		var e *Error
		if err != nil && !errors.As(err, &e) {
			t.Errorf("error %v, want an *Error", err)
		}
		if !slices.Equal(before, data) {
			t.Error("the input changed")
		}
		if strings.ToValidUTF8(string(text), "?") != string(text) || len(text) > maxOutput {
			t.Errorf("%d bytes of invalid UTF-8", len(text))
		}
	})
}

func FuzzHTML(f *testing.F) { fuzz(f, ".html") }
