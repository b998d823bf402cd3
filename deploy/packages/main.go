// Command packages makes packages for npm and PyPI with the binaries of a release, and a
// Homebrew formula and a Scoop manifest with the addresses of its archives:
//
//	go run ./deploy/packages -version 1.2.3 -url https://HOST/OWNER/cairn/releases/download/v1.2.3
//
// It reads the archives that goreleaser wrote to dist. `npm publish FILE` and `twine upload
// FILE` publish packages; cairn.rb belongs in a tap of Homebrew and cairn.json in a bucket of
// Scoop. The same release gives the same bytes.
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
	"strings"
)

// A platform is a system for which a release has an archive.
type platform struct {
	os, arch       string // the names of Go
	npmOS, npmArch string // the names of Node
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

// binary returns the file name of the program.
func (p platform) binary() string {
	if p.os == "windows" {
		return "cairn.exe"
	}
	return "cairn"
}

// A release is the input of the packages.
type release struct {
	name, version string // of the packages
	url           string // of the folder with the archives; "" if it is unknown
	licence       []byte
	binaries      map[platform][]byte
	archives      map[platform]archive
}

// homepage returns the address of the repository.
func (r release) homepage() string {
	page, _, _ := strings.Cut(r.url, "/releases/")
	return page
}

// An archive is a file of a release.
type archive struct {
	name string
	data []byte
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("packages: ")
	name := flag.String("name", "cairn-search", "name of the packages on npm and PyPI")
	version := flag.String("version", "", "version of the release, such as 1.2.3")
	dist := flag.String("dist", "dist", "folder with the archives of the release")
	out := flag.String("out", "dist/packages", "folder for the packages")
	url := flag.String("url", "", "address of the folder that the archives are downloaded from, for Homebrew and Scoop")
	flag.Parse()
	if err := run(release{name: *name, version: *version, url: strings.TrimSuffix(*url, "/")}, *dist, *out); err != nil {
		log.Fatal(err)
	}
}

// versions matches the versions that npm and PyPI interpret in the same way.
var versions = regexp.MustCompile(`^\d+\.\d+\.\d+$`)

func run(r release, dist, out string) error {
	if !versions.MatchString(r.version) {
		return fmt.Errorf("-version is %q, want one such as 1.2.3", r.version)
	}
	if r.url == "" {
		log.Print("skipped: Homebrew and Scoop, because -url is not set")
	} else if !strings.HasPrefix(r.url, "https://") {
		return fmt.Errorf("-url is %q, want an address with https", r.url)
	}
	r.binaries, r.archives = map[platform][]byte{}, map[platform]archive{}
	for _, p := range platforms {
		a, err := readArchive(dist, r.version, p)
		var data, licence []byte
		if err == nil {
			data, licence, err = a.contents(p)
		}
		if errors.Is(err, fs.ErrNotExist) {
			log.Printf("skipped: %s/%s, because %s has no archive for it", p.os, p.arch, dist)
			continue
		} else if err != nil {
			return fmt.Errorf("%s/%s: %w", p.os, p.arch, err)
		}
		r.binaries[p], r.archives[p], r.licence = data, a, licence
	}
	if len(r.binaries) == 0 {
		return fmt.Errorf("%s has no archive cairn-%s-OS-ARCH", dist, r.version)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, packages := range []func(release) (map[string][]byte, error){wheels, npm, taps} {
		files, err := packages(r)
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

func readArchive(dist, version string, p platform) (archive, error) {
	a := archive{name: fmt.Sprintf("cairn-%s-%s-%s.tar.gz", version, p.os, p.arch)}
	if p.os == "windows" {
		a.name = strings.TrimSuffix(a.name, ".tar.gz") + ".zip"
	}
	var err error
	a.data, err = os.ReadFile(filepath.Join(dist, a.name))
	return a, err
}

// contents returns the binary and the licence in an archive.
func (a archive) contents(p platform) (binary, licence []byte, err error) {
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
		err = eachInZip(a.data, read)
	} else {
		err = eachInTar(a.data, read)
	}
	if err == nil && (binary == nil || licence == nil) {
		err = fmt.Errorf("%s does not contain %s and LICENSE", a.name, p.binary())
	}
	return binary, licence, err
}

func eachInZip(data []byte, fn func(string, io.Reader) error) error {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return err
	}
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

func eachInTar(data []byte, fn func(string, io.Reader) error) error {
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
