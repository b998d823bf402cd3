// Command packages makes packages for npm and PyPI with the binaries of a release:
//
//	go run ./deploy/packages
//
// It reads the binaries that goreleaser wrote to dist. `npm publish FILE` and `twine upload
// FILE` publish packages. The same release gives the same bytes. Goreleaser itself makes the
// packages of Homebrew, Scoop and Linux.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
)

const summary = "Finds the section that answers a question in a folder of documents, for people and coding agents"

// A platform is a system for which a release has a binary.
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

// A release is the input of the packages.
type release struct {
	name, version string // of the packages
	licence       []byte
	binaries      map[platform]file
}

// A file is a file of a package.
type file struct {
	name string
	mode uint32
	data []byte
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("packages: ")
	name := flag.String("name", "cairn-search", "name of the packages")
	root := flag.String("root", ".", "folder of the repository, with the folder dist of the release")
	out := flag.String("out", "dist/packages", "folder for the packages")
	flag.Parse()
	if err := run(*name, *root, *out); err != nil {
		log.Fatal(err)
	}
}

func run(name, root, out string) error {
	r, err := readRelease(name, root)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, packages := range []func(*release) (map[string][]byte, error){wheels, npm} {
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

// versions matches the versions that npm and PyPI interpret in the same way.
var versions = regexp.MustCompile(`^\d+\.\d+\.\d+$`)

// readRelease reads the binaries that goreleaser lists in dist/artifacts.json.
func readRelease(name, root string) (*release, error) {
	var metadata struct{ Version string }
	var artifacts []struct{ Path, Goos, Goarch, Type string }
	for file, to := range map[string]any{"metadata.json": &metadata, "artifacts.json": &artifacts} {
		text, err := os.ReadFile(filepath.Join(root, "dist", file))
		if err == nil {
			err = json.Unmarshal(text, to)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the release: %w", err)
		}
	}
	if !versions.MatchString(metadata.Version) {
		return nil, fmt.Errorf("the version of the release is %q, want one such as 1.2.3", metadata.Version)
	}
	r := &release{name: name, version: metadata.Version, binaries: map[platform]file{}}
	var err error
	if r.licence, err = os.ReadFile(filepath.Join(root, "LICENSE")); err != nil {
		return nil, err
	}
	for _, p := range platforms {
		for _, a := range artifacts {
			if a.Type != "Binary" || a.Goos != p.os || a.Goarch != p.arch {
				continue
			}
			data, err := os.ReadFile(filepath.Join(root, a.Path))
			if err != nil {
				return nil, err
			}
			r.binaries[p] = file{filepath.Base(a.Path), 0o755, data}
		}
		if _, ok := r.binaries[p]; !ok {
			log.Printf("skipped: %s/%s, because the release has no binary for it", p.os, p.arch)
		}
	}
	if len(r.binaries) == 0 {
		return nil, fmt.Errorf("the release in %s has no binary", filepath.Join(root, "dist"))
	}
	return r, nil
}
