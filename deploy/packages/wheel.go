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

// wheels makes a wheel for each platform. The binary is a script of the wheel: pip copies it
// to the folder of programs in the environment.
func wheels(r *release) (map[string][]byte, error) {
	made := map[string][]byte{}
	project := strings.ReplaceAll(r.name, "-", "_") + "-" + r.version
	for p, binary := range r.binaries {
		info := project + ".dist-info/"
		tags := ""
		for tag := range strings.SplitSeq(p.wheel, ".") {
			tags += "Tag: py3-none-" + tag + "\n"
		}
		binary.name = project + ".data/scripts/" + binary.name
		files := []file{
			binary,
			{info + "licenses/LICENSE", 0o644, r.licence},
			{info + "METADATA", 0o644, fmt.Appendf(nil, "Metadata-Version: 2.4\nName: %s\nVersion: %s\nSummary: %s\nLicense-Expression: Apache-2.0\nLicense-File: LICENSE\nRequires-Python: >=3.8\n", r.name, r.version, summary)},
			{info + "WHEEL", 0o644, fmt.Appendf(nil, "Wheel-Version: 1.0\nGenerator: cairn\nRoot-Is-Purelib: false\n%s", tags)},
		}
		data, err := zipped(append(files, record(info+"RECORD", files)))
		if err != nil {
			return nil, err
		}
		made[fmt.Sprintf("%s-py3-none-%s.whl", project, p.wheel)] = data
	}
	return made, nil
}

// record returns the list of the files of a wheel with their checksums.
func record(name string, files []file) file {
	var b bytes.Buffer
	for _, f := range files {
		sum := sha256.Sum256(f.data)
		fmt.Fprintf(&b, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.data))
	}
	fmt.Fprintf(&b, "%s,,\n", name)
	return file{name, 0o644, b.Bytes()}
}

func zipped(files []file) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range files {
		const regular = 0o100000
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, CreatorVersion: 3 << 8, ExternalAttrs: (regular | f.mode) << 16}
		h.Modified = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
		w, err := z.CreateHeader(h)
		if err == nil {
			_, err = w.Write(f.data)
		}
		if err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return b.Bytes(), err
}
