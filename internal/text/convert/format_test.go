package convert

import (
	"bytes"
	"compress/zlib"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write the results into testdata")

// inputOf returns the file to convert: the first of the archive, or, when its comment
// is "zip NAME", a zip file of all but the last.
func inputOf(t testing.TB, a *txtar.Archive) (name string, data []byte) {
	name, ok := strings.CutPrefix(strings.TrimSpace(string(a.Comment)), "zip ")
	if !ok {
		return a.Files[0].Name, a.Files[0].Data
	}
	parts := map[string]string{}
	for _, f := range a.Files[:len(a.Files)-1] {
		parts[f.Name] = string(f.Data)
	}
	return name, zipped(parts)
}

// TestLargeSheets converts sheets that unpack to more than half of the limit. Their first
// rows are written, and the rows after that are not counted.
func TestLargeSheets(t *testing.T) {
	rows := func(row string) string { return strings.Repeat(row, 40<<20/len(row)) }
	for name, data := range map[string][]byte{
		"rows.xlsx": archiveOf("xlsx", "xl/worksheets/s.xml", rows(`<row><c t="inlineStr"><is><t>`+strings.Repeat("a ", 500)+`</t></is></c></row>`)),
		"rows.ods":  archiveOf("ods", "content.xml", `<spreadsheet><table name="a">`+rows(`<table-row><table-cell><p>`+strings.Repeat("a ", 500)+`</p></table-cell></table-row>`)),
	} {
		out, err := toMarkdown(name, data)
		if err != nil || !strings.Contains(string(out), "More than ") || !strings.Contains(string(out), " The first ") {
			t.Errorf("%s: %.300s, %v", name, out, err)
		}
	}
}

// toMarkdown converts a file with the converter of its extension.
func toMarkdown(name string, data []byte) ([]byte, error) {
	c := converterOf(name)
	if c == nil {
		return nil, fmt.Errorf("converterOf has no converter of %s", filepath.Ext(name))
	}
	return Markdown(c, name, data)
}

// converterOf returns the converter of a format by the extension of a file, nil for others.
func converterOf(name string) Converter {
	return map[string]Converter{
		".html": HTML, ".htm": HTML, ".xhtml": HTML, ".docx": DOCX, ".pptx": PPTX, ".xlsx": XLSX, ".epub": EPUB, ".pdf": PDF,
		".odt": OpenDocument, ".odp": OpenDocument, ".ods": OpenDocument, ".ipynb": Notebook, ".csv": CSV, ".tsv": CSV,
		".eml": Mail, ".mbox": Mbox, ".jsonl": Transcript, ".1": Man, ".3": Man, ".7": Man, ".8": Man, ".man": Man,
	}[filepath.Ext(name)]
}

// TestFiles converts the input of each archive and compares with its last file.
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
			input, data := inputOf(t, a)
			got, err := toMarkdown(input, data)
			if err != nil {
				t.Fatal(err)
			}
			want := &a.Files[len(a.Files)-1]
			if *update {
				want.Data = got
				if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(want.Data), string(got)); diff != "" {
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
		{"bomb.docx", string(zipped(map[string]string{"word/document.xml": "<w:document>" + strings.Repeat("<w:p>"+strings.Repeat(" ", 1<<10)+"</w:p>", 64<<10)})), "unpacks to more than 64 MiB; split it"},
		{"bomb.epub", string(zipped(bombBook())), "unpacks to more than 64 MiB; split it"},
		{"deep.docx", string(zipped(map[string]string{"word/document.xml": strings.Repeat("<w:p>", 1000)})), "nested too deep"},
		{"archive.docx", string(zipped(map[string]string{"inner.docx": string(zipped(nil))})), "broken file"},
		{"cut.pptx", string(zipped(map[string]string{"ppt/presentation.xml": "<p>"})[:60]), "broken file"},
		{"locked.xlsx", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "encrypted"},
		{"locked.odt", string(zipped(map[string]string{"content.xml": "x", "META-INF/manifest.xml": "<m:encryption-data/>"})), "encrypted"},
		{"empty.ipynb", "{}", "no text"},
		{"recursive.ipynb", strings.Repeat(`{"cells":[`, 20_000), "broken file"},
		{"app.log.1", "2026-11-22 started\n", "not a manual page"},
		{"scan.pdf", "%PDF-1.4\n1 0 obj<</Pages 2 0 R>>endobj 2 0 obj<</Kids[3 0 R]>>endobj 3 0 obj<</Contents 4 0 R>>endobj trailer<</Root 1 0 R>>", "no text (scanned pages?)"},
		{"locked.pdf", "%PDF-1.4\ntrailer<</Encrypt 1 0 R>>", "encrypted"},
		{"cut.pdf", "%PDF-1.4\n1 0 obj<</Pages", "no text (scanned pages?)"},
		{"not.pdf", "PDF", "broken file"},
		{"deep.pdf", "%PDF-1.4\ntrailer<</A" + strings.Repeat("[", 1000), "nested too deep"},
		{"itself.pdf", "%PDF-1.4\n1 0 obj 1 0 R endobj 2 0 obj<</Kids[2 0 R 3 0 R]>>endobj 3 0 obj<</Kids 3 0 R/Parent 3 0 R>>endobj trailer<</Root<</Pages 2 0 R>>>>", "no text (scanned pages?)"},
		{"bomb.pdf", "%PDF-1.4\n1 0 obj<</Type/ObjStm/N 1/First 9/Filter/FlateDecode>>stream\n" + deflated(t, 65<<20) + "\nendstream", "unpacks to more than 64 MiB; split it"},
		{"not.mbox", "Dear Ann", "broken file"},
		{"not.eml", "\x00", "broken file"},
		{"data.jsonl", "{\"a\": 1}\n", "not a transcript of an agent"},
		{"empty.csv", "", "no text"},
		{"binary.csv", "a,b\x00", "broken file"},
	} {
		text, err := toMarkdown(c.name, []byte(c.data))
		var e *Error
		if !errors.As(err, &e) || e.Reason != c.want || text != nil {
			t.Errorf("Markdown(%s) = %.40q, %v, want %s", c.name, text, err, c.want)
		}
	}
}

// Decoding a header takes quadratic time, so only its start is decoded.
func TestLongHeader(t *testing.T) {
	text, err := toMarkdown("a.eml", []byte("Subject: "+strings.Repeat("=?a?q?", 10_000)+"?=\n\na\n"))
	if err != nil || len(text) > maxHeader+100 || !strings.HasPrefix(string(text), "# =?a?q?") {
		t.Errorf("%d bytes %.40q, %v, want at most %d", len(text), text, err, maxHeader)
	}
}

// deflated returns n blanks, compressed.
func deflated(t *testing.T, n int) string {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, err := z.Write(bytes.Repeat([]byte(" "), n))
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// bombBook is a book whose chapters unpack to much more than the size of the file.
func bombBook() map[string]string {
	parts := map[string]string{"META-INF/container.xml": `<rootfile full-path="b.opf"/>`}
	var opf strings.Builder
	for i := range 40 {
		name := fmt.Sprintf("c%d.xhtml", i)
		fmt.Fprintf(&opf, `<item id="%d" href="%s" media-type="text/html"/><itemref idref="%d"/>`, i, name, i)
		parts[name] = "<p>" + strings.Repeat(" ", 2<<20)
	}
	parts["b.opf"] = opf.String()
	return parts
}

// fuzz converts mutations of the seeds with one extension, and of the parts of those in
// archives, whose mutations as a whole are mostly broken. Any bytes give Markdown in
// UTF-8, twice the same, or an *Error. The work is proportional to the input, to which a
// compressed one may unpack by a factor of a thousand, and has a limit.
func fuzz(f *testing.F, ext string) {
	archives, _ := filepath.Glob("testdata/*.txtar")
	for _, name := range archives {
		source, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		a := txtar.Parse(source)
		if input, data := inputOf(f, a); filepath.Ext(input) == ext {
			f.Add(data)
			if bytes.HasPrefix(a.Comment, []byte("zip ")) {
				f.Add(source)
			}
		}
	}
	encrypted, _ := filepath.Glob("testdata/encrypted/*" + ext)
	for _, name := range encrypted {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.HasPrefix(data, []byte("zip ")) {
			parts := map[string]string{}
			for _, part := range strings.Split(string(data), "\n-- ")[1:] {
				if name, content, ok := strings.Cut(part, " --\n"); ok && len(name) < 100 && !strings.HasSuffix(name, "/") {
					parts[name] = content
				}
			}
			data = zipped(parts)
		}
		before := slices.Clone(data)
		w := &writer{name: "x" + ext}
		text, err := w.convert(converterOf(w.name), data)
		again, _ := toMarkdown(w.name, data)
		if string(text) != string(again) {
			t.Errorf("two conversions differ: %q and %q", text, again)
		}
		var e *Error
		if err != nil && !errors.As(err, &e) {
			t.Errorf("error %v, want an *Error", err)
		}
		factor := int64(2000)
		if slices.Contains([]string{".docx", ".pptx", ".xlsx", ".odt", ".ods", ".epub", ".pdf"}, ext) {
			factor *= 1000
		}
		if w.work > min(factor*int64(len(data)+1000), maxWork+1<<28) {
			t.Errorf("%d units of work for %d bytes", w.work, len(data))
		}
		if !slices.Equal(before, data) {
			t.Error("the input changed")
		}
		if strings.ToValidUTF8(string(text), "?") != string(text) || len(text) > maxOutput {
			t.Errorf("%d bytes of invalid UTF-8", len(text))
		}
	})
}

func FuzzHTML(f *testing.F)         { fuzz(f, ".html") }
func FuzzDOCX(f *testing.F)         { fuzz(f, ".docx") }
func FuzzPPTX(f *testing.F)         { fuzz(f, ".pptx") }
func FuzzXLSX(f *testing.F)         { fuzz(f, ".xlsx") }
func FuzzOpenDocument(f *testing.F) { fuzz(f, ".odt") }
func FuzzSheets(f *testing.F)       { fuzz(f, ".ods") }
func FuzzEPUB(f *testing.F)         { fuzz(f, ".epub") }
func FuzzNotebook(f *testing.F)     { fuzz(f, ".ipynb") }
func FuzzCSV(f *testing.F)          { fuzz(f, ".csv") }
func FuzzPDF(f *testing.F)          { fuzz(f, ".pdf") }
func FuzzMail(f *testing.F)         { fuzz(f, ".eml") }
func FuzzMbox(f *testing.F)         { fuzz(f, ".mbox") }
func FuzzTranscript(f *testing.F)   { fuzz(f, ".jsonl") }
func FuzzMan(f *testing.F)          { fuzz(f, ".1") }
