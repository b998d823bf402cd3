package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
)

const summary = "Finds the section that answers a question in a folder of documents, for people and coding agents"

// wheels makes a wheel for each platform. The binary is a script of the wheel: pip copies it
// to the folder of programs in the environment.
func wheels(r release) (map[string][]byte, error) {
	files := map[string][]byte{}
	project := strings.ReplaceAll(r.name, "-", "_") + "-" + r.version
	for p, binary := range r.binaries {
		w := newWheel()
		info := project + ".dist-info/"
		tags := ""
		for tag := range strings.SplitSeq(p.wheel, ".") {
			tags += "Tag: py3-none-" + tag + "\n"
		}
		w.add(project+".data/scripts/"+p.binary(), 0o755, binary)
		w.add(info+"licenses/LICENSE", 0o644, r.licence)
		w.add(info+"METADATA", 0o644, fmt.Appendf(nil, "Metadata-Version: 2.4\nName: %s\nVersion: %s\nSummary: %s\nLicense-Expression: Apache-2.0\nLicense-File: LICENSE\nRequires-Python: >=3.8\n", r.name, r.version, summary))
		w.add(info+"WHEEL", 0o644, fmt.Appendf(nil, "Wheel-Version: 1.0\nGenerator: cairn\nRoot-Is-Purelib: false\n%s", tags))
		data, err := w.close(info + "RECORD")
		if err != nil {
			return nil, err
		}
		files[fmt.Sprintf("%s-py3-none-%s.whl", project, p.wheel)] = data
	}
	return files, nil
}

// A wheel is a zip file with a record of its files.
type wheel struct {
	buffer bytes.Buffer
	zip    *zip.Writer
	record strings.Builder
	err    error
}

func newWheel() *wheel {
	w := &wheel{}
	w.zip = zip.NewWriter(&w.buffer)
	return w
}

func (w *wheel) add(name string, mode uint32, data []byte) {
	sum := sha256.Sum256(data)
	fmt.Fprintf(&w.record, "%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(sum[:]), len(data))
	w.put(name, mode, data)
}

func (w *wheel) put(name string, mode uint32, data []byte) {
	if w.err != nil {
		return
	}
	const regular = 0o100000
	h := &zip.FileHeader{Name: name, Method: zip.Deflate, CreatorVersion: 3 << 8, ExternalAttrs: (regular | mode) << 16}
	h.Modified = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
	f, err := w.zip.CreateHeader(h)
	if err == nil {
		_, err = f.Write(data)
	}
	w.err = err
}

func (w *wheel) close(record string) ([]byte, error) {
	w.put(record, 0o644, []byte(w.record.String()+record+",,\n"))
	if w.err != nil {
		return nil, w.err
	}
	err := w.zip.Close()
	return w.buffer.Bytes(), err
}
