package convert

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// archive is an open zip file. Its parts together unpack to at most maxUnpacked bytes.
type archive struct {
	w     *writer
	files map[string]*zip.File
	left  int64 // bytes that may still be unpacked
}

// openArchive opens a zip file. It panics if the file is encrypted or broken, or has no part
// with the name main.
func openArchive(w *writer, data []byte, main string) *archive {
	if bytes.HasPrefix(data, []byte("\xd0\xcf\x11\xe0")) {
		panic(errEncrypted) // Office stores encrypted documents in OLE files
	}
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		panic(errBroken)
	}
	a := &archive{w: w, files: map[string]*zip.File{}, left: maxUnpacked}
	for _, f := range r.File {
		a.w.spend(1000)
		a.files[f.Name] = f
	}
	for _, target := range slices.Sorted(maps.Values(a.relations(""))) {
		if a.files[main] == nil && path.Dir(target) == path.Dir(main) { // Office 365 also writes word/document2.xml
			a.files[main] = a.files[target]
		}
	}
	if a.files[main] == nil {
		panic(errBroken)
	}
	return a
}

// open returns a reader of a part, nil if there is no such part.
func (a *archive) open(name string) io.Reader {
	f := a.files[name]
	switch {
	case f == nil:
		return nil
	case f.Flags&1 != 0:
		panic(errEncrypted)
	}
	a.w.spend(20_000) // a decompressor allocates its tables
	r, err := f.Open()
	if err != nil {
		panic(errBroken)
	}
	return &part{a, r}
}

// part counts the bytes that it unpacks.
type part struct {
	a *archive
	r io.Reader
}

func (p *part) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	p.a.w.spend(32 + 8*n)
	if p.a.left -= int64(n); p.a.left < 0 {
		panic(errUnpacked)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		panic(errBroken)
	}
	return n, err
}

// half reports whether half of what may be unpacked is. The rows of a sheet are then no
// longer counted.
func (a *archive) half() bool { return a.left < maxUnpacked/2 }

// read returns the content of a part, nil if there is no such part.
func (a *archive) read(name string) []byte {
	r := a.open(name)
	if r == nil {
		return nil
	}
	var b bytes.Buffer
	_, _ = b.ReadFrom(r) // part.Read returns no error but io.EOF
	return b.Bytes()
}

// relations returns the relations of a part: the names of other parts by relation id.
func (a *archive) relations(name string) map[string]string {
	dir, file := path.Split(name)
	targets := map[string]string{}
	for x := a.xml(dir + "_rels/" + file + ".rels"); x.find("Relationship"); {
		if x.attr("TargetMode") == "External" {
			continue
		}
		target, absolute := strings.CutPrefix(x.attr("Target"), "/")
		if !absolute {
			target = path.Join(dir, target)
		}
		targets[x.attr("Id")] = target
	}
	return targets
}

// title returns the title from the properties part of an Office document, "" for none.
func (a *archive) title(name string) string {
	x := a.xml(name)
	if !x.find("title") {
		return ""
	}
	return x.textUntil("title")
}

// xmlReader reads the events of one XML file. It drops the prefixes of element names.
type xmlReader struct {
	w     *writer
	d     *xml.Decoder // nil for a missing part
	depth int

	// The current event sets one of start, end and text.
	start, end, text string
	attrs            []xml.Attr
}

// xml returns a reader of a part. A missing part has no events.
func (a *archive) xml(name string) *xmlReader {
	r := a.open(name)
	if r == nil {
		return &xmlReader{w: a.w}
	}
	x := &xmlReader{w: a.w, d: xml.NewDecoder(r)}
	x.d.Strict = false
	return x
}

// next advances to the next event. It returns false at the end.
func (x *xmlReader) next() bool {
	for x.d != nil {
		from := x.d.InputOffset()
		token, err := x.d.RawToken()
		x.w.spend(100 + 8*int(x.d.InputOffset()-from))
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			panic(errBroken)
		}
		x.start, x.end, x.text, x.attrs = "", "", "", nil
		switch t := token.(type) {
		case xml.StartElement:
			if x.depth++; x.depth > maxDepth {
				panic(errDepth)
			}
			x.start, x.attrs = t.Name.Local, t.Attr
			return true
		case xml.EndElement:
			x.depth--
			x.end = t.Name.Local
			return true
		case xml.CharData:
			if x.text = string(t); x.text != "" {
				return true
			}
		}
	}
	return false
}

// find advances to the next start of an element with that name. It returns false at the end.
func (x *xmlReader) find(name string) bool {
	for x.next() {
		if x.start == name {
			return true
		}
	}
	return false
}

// attr returns an attribute of the current start element, "" if it is absent.
func (x *xmlReader) attr(name string) string {
	for _, a := range x.attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// related returns the relation id of the current start element, its attribute r:id.
func (x *xmlReader) related() string {
	for _, a := range x.attrs {
		if a.Name.Space != "" && a.Name.Local == "id" {
			return a.Value
		}
	}
	return ""
}

// skip skips the rest of the current element.
func (x *xmlReader) skip() {
	for depth := x.depth; x.depth >= depth && x.next(); {
	}
}

// textUntil returns the text up to the next end of an element with that name, with runs
// of white space replaced by one blank.
func (x *xmlReader) textUntil(name string) string {
	var b strings.Builder
	for x.next() && x.end != name {
		b.WriteString(x.text)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
