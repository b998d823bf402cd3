// Command packages makes packages for npm and PyPI that carry the binaries of a release:
//
//	go run ./deploy/packages -version 1.2.3 -dist dist -out dist/packages
//
// It reads the archives that goreleaser wrote to dist. `npm publish FILE` and `twine upload
// FILE` publish what it writes. The same release gives the same bytes.
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"path"
	"path/filepath"
	"regexp"
)

// A platform is one that a release has an archive for.
type platform struct {
	os, arch       string // as Go names them
	npmOS, npmArch string // as Node names them
	wheel          string // the tags of PEP 425, joined by dots
}

var platforms = []platform{
	{"linux", "amd64", "linux", "x64", "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64"},
	{"linux", "arm64", "linux", "arm64", "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64"},
	{"darwin", "amd64", "darwin", "x64", "macosx_11_0_x86_64"},
	{"darwin", "arm64", "darwin", "arm64", "macosx_11_0_arm64"},
	{"windows", "amd64", "win32", "x64", "win_amd64"},
	{"windows", "arm64", "win32", "arm64", "win_arm64"},
}

// binary is the name of the program.
func (p platform) binary() string {
	if p.os == "windows" {
		return "cairn.exe"
	}
	return "cairn"
}

// A release is what the packages are made of.
type release struct {
	name, version string // of the packages
	licence       []byte
	binaries      map[platform][]byte
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("packages: ")
	name := flag.String("name", "cairn-search", "name of the packages on npm and PyPI")
	version := flag.String("version", "", "version of the release, such as 1.2.3")
	dist := flag.String("dist", "dist", "folder with the archives of the release")
	out := flag.String("out", "dist/packages", "folder for the packages")
	flag.Parse()
	if err := run(*name, *version, *dist, *out); err != nil {
		log.Fatal(err)
	}
}

// versions are those that npm and PyPI read alike.
var versions = regexp.MustCompile(`^\d+\.\d+\.\d+$`)

func run(name, version, dist, out string) error {
	if !versions.MatchString(version) {
		return fmt.Errorf("-version is %q, want one such as 1.2.3", version)
	}
	r := release{name: name, version: version, binaries: map[platform][]byte{}}
	for _, p := range platforms {
		data, licence, err := fromArchive(dist, version, p)
		if errors.Is(err, fs.ErrNotExist) {
			log.Printf("left out: %s/%s, which has no archive in %s", p.os, p.arch, dist)
			continue
		} else if err != nil {
			return fmt.Errorf("%s/%s: %w", p.os, p.arch, err)
		}
		r.binaries[p], r.licence = data, licence
	}
	if len(r.binaries) == 0 {
		return fmt.Errorf("%s has no archive cairn-%s-OS-ARCH", dist, version)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, make := range []func(release) (map[string][]byte, error){wheels, npm} {
		files, err := make(r)
		if err != nil {
			return err
		}
		for name, data := range files {
			if err := os.WriteFile(filepath.Join(out, name), data, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// fromArchive returns the binary and the licence of an archive.
func fromArchive(dist, version string, p platform) (binary, licence []byte, err error) {
	base := fmt.Sprintf("cairn-%s-%s-%s", version, p.os, p.arch)
	read := func(name string, r io.Reader) (err error) {
		switch path.Base(name) {
		case p.binary():
			binary, err = io.ReadAll(r)
		case "LICENSE":
			licence, err = io.ReadAll(r)
		}
		return err
	}
	if p.os == "windows" {
		err = eachInZip(filepath.Join(dist, base+".zip"), read)
	} else {
		err = eachInTar(filepath.Join(dist, base+".tar.gz"), read)
	}
	if err == nil && (binary == nil || licence == nil) {
		err = fmt.Errorf("%s holds no %s or no LICENSE", base, p.binary())
	}
	return binary, licence, err
}

func eachInZip(name string, fn func(string, io.Reader) error) error {
	z, err := zip.OpenReader(name)
	if err != nil {
		return err
	}
	defer z.Close()
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			return err
		}
		if err := errors.Join(fn(f.Name, r), r.Close()); err != nil {
			return err
		}
	}
	return nil
}

func eachInTar(name string, fn func(string, io.Reader) error) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	for t := tar.NewReader(unzipped); ; {
		h, err := t.Next()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := fn(h.Name, t); err != nil {
			return err
		}
	}
}
