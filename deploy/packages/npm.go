package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
)

// launcher is the program of the main package. It starts the binary for the platform.
//
//go:embed launcher.js
var launcher []byte

// manifest is a package.json.
type manifest struct {
	Name        string            `json:"name"`
	Version     string            `json:"version"`
	Description string            `json:"description"`
	License     string            `json:"license"`
	OS          []string          `json:"os,omitempty"`
	CPU         []string          `json:"cpu,omitempty"`
	Bin         map[string]string `json:"bin,omitempty"`
	Optional    map[string]string `json:"optionalDependencies,omitempty"`
}

// npm makes a package for each platform, and a main package that depends on all of them.
// The command npm installs the main package and the one for the machine.
func npm(r *release) (map[string][]byte, error) {
	files := map[string][]byte{}
	main := manifest{Name: r.name, Version: r.version, Description: summary, License: "Apache-2.0",
		Bin: map[string]string{"cairn": "launcher.js"}, Optional: map[string]string{}}
	add := func(m manifest, program file) error {
		data, err := m.pack(program, file{"LICENSE", 0o644, r.licence})
		files[m.Name+"-"+m.Version+".tgz"] = data
		return err
	}
	for p, binary := range r.binaries {
		m := main
		m.Name, m.OS, m.CPU, m.Bin, m.Optional = fmt.Sprintf("%s-%s-%s", r.name, p.npmOS, p.npmArch), []string{p.npmOS}, []string{p.npmArch}, nil, nil
		main.Optional[m.Name] = r.version
		if err := add(m, binary); err != nil {
			return nil, err
		}
	}
	return files, add(main, file{"launcher.js", 0o755, launcher})
}

// pack returns the archive of a package.
func (m manifest) pack(files ...file) ([]byte, error) {
	text, _ := json.MarshalIndent(m, "", "  ") // never fails: strings marshal
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	t := tar.NewWriter(zipped)
	for _, f := range append(files, file{"package.json", 0o644, append(text, '\n')}) {
		if err := t.WriteHeader(&tar.Header{Name: "package/" + f.name, Mode: int64(f.mode), Size: int64(len(f.data))}); err != nil {
			return nil, err
		}
		if _, err := t.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := errors.Join(t.Close(), zipped.Close())
	return b.Bytes(), err
}
