package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// program stands for the binary of Unix systems.
const program = "#!/bin/sh\necho \"ran with $*\"\n"

// releaseIn writes archives as goreleaser does, of two platforms.
func releaseIn(t *testing.T, dir string) {
	t.Helper()
	native := "cairn-1.2.3-" + runtime.GOOS + "-" + runtime.GOARCH
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	w := tar.NewWriter(zipped)
	for name, text := range map[string]string{native + "/cairn": program, native + "/LICENSE": "Apache\n", native + "/README.md": "no\n"} {
		check(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text))}))
		_, err := w.Write([]byte(text))
		check(t, err)
	}
	check(t, w.Close())
	check(t, zipped.Close())
	check(t, os.WriteFile(filepath.Join(dir, native+".tar.gz"), b.Bytes(), 0o644))
	b.Reset()
	z := zip.NewWriter(&b)
	for name, text := range map[string]string{"cairn-1.2.3-windows-arm64/cairn.exe": "MZ", "cairn-1.2.3-windows-arm64/LICENSE": "Apache\n"} {
		f, err := z.Create(name)
		check(t, err)
		_, err = f.Write([]byte(text))
		check(t, err)
	}
	check(t, z.Close())
	check(t, os.WriteFile(filepath.Join(dir, "cairn-1.2.3-windows-arm64.zip"), b.Bytes(), 0o644))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestPackages installs the packages with pip and npm and runs what they install.
func TestPackages(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for the binary is a shell script")
	}
	dist, out, again := t.TempDir(), t.TempDir(), t.TempDir()
	releaseIn(t, dist)
	r := release{name: "cairn-search", version: "1.2.3", url: "https://example.com/o/cairn/releases/download/v1.2.3"}
	check(t, run(r, dist, out))
	check(t, run(r, dist, again))
	files, err := filepath.Glob(filepath.Join(out, "*"))
	check(t, err)
	if len(files) != 7 { // two wheels, two packages of npm and the one that chooses, a formula, a manifest
		t.Fatalf("made %q", files)
	}
	for _, f := range files {
		first, err := os.ReadFile(f)
		check(t, err)
		if second, err := os.ReadFile(filepath.Join(again, filepath.Base(f))); err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s differs the second time: %v", f, err)
		}
	}
	t.Run("scoop", func(t *testing.T) {
		var m scoop
		text, err := os.ReadFile(filepath.Join(out, "cairn.json"))
		check(t, err)
		check(t, json.Unmarshal(text, &m))
		data, err := os.ReadFile(filepath.Join(dist, "cairn-1.2.3-windows-arm64.zip"))
		check(t, err)
		want := scoopArchive{r.url + "/cairn-1.2.3-windows-arm64.zip", fmt.Sprintf("%x", sha256.Sum256(data)), "cairn-1.2.3-windows-arm64"}
		if m.Architecture["arm64"] != want || m.Homepage != "https://example.com/o/cairn" || len(m.Architecture) != 1 {
			t.Errorf("the manifest: %s", text)
		}
	})
	t.Run("homebrew", func(t *testing.T) {
		text, err := os.ReadFile(filepath.Join(out, "cairn.rb"))
		check(t, err)
		if n := strings.Count(string(text), "sha256"); n != 1 || !strings.Contains(string(text), r.url+"/cairn-1.2.3-"+runtime.GOOS+"-"+runtime.GOARCH+".tar.gz") {
			t.Errorf("the formula:\n%s", text)
		}
		command(t, "ruby", "--version")
		command(t, "ruby", "-c", filepath.Join(out, "cairn.rb"))
	})
	t.Run("pip", func(t *testing.T) {
		command(t, "python3", "-m", "pip", "--version")
		dir := t.TempDir()
		command(t, "python3", "-m", "pip", "install", "--no-index", "--no-deps", "--find-links", out, "--target", dir, "cairn-search")
		ran(t, filepath.Join(dir, "bin", "cairn"))
	})
	t.Run("npm", func(t *testing.T) {
		command(t, "npm", "--version")
		dir := t.TempDir()
		for _, f := range files {
			if strings.HasSuffix(f, ".tgz") && !strings.Contains(f, "win32") {
				unpack(t, f, filepath.Join(dir, "node_modules"))
			}
		}
		ran(t, filepath.Join(dir, "node_modules", "cairn-search", "launcher.js"))
		check(t, os.RemoveAll(filepath.Join(dir, "node_modules", "cairn-search-"+nodeName(t))))
		text, err := exec.Command(filepath.Join(dir, "node_modules", "cairn-search", "launcher.js")).CombinedOutput()
		if err == nil || !strings.Contains(string(text), "is not installed") {
			t.Errorf("without a binary: %v, %s", err, text)
		}
	})
}

// nodeName is this platform as Node names it.
func nodeName(t *testing.T) string {
	i := slices.IndexFunc(platforms, func(p platform) bool { return p.os == runtime.GOOS && p.arch == runtime.GOARCH })
	if i < 0 {
		t.Skipf("no packages for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	return platforms[i].npmOS + "-" + platforms[i].npmArch
}

// unpack installs a package of npm below modules as npm does, which would ask the registry
// for the optional dependencies.
func unpack(t *testing.T, archive, modules string) {
	t.Helper()
	name := strings.TrimSuffix(filepath.Base(archive), "-1.2.3.tgz")
	check(t, os.MkdirAll(filepath.Join(modules, name), 0o755))
	command(t, "tar", "-xzf", archive, "--strip-components", "1", "-C", filepath.Join(modules, name))
}

// command runs a program that the machine may lack.
func command(t *testing.T, name string, args ...string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("%s is not installed", name)
	}
	if text, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		if slices.Contains(args, "--version") {
			t.Skipf("%s does not run: %v", name, err)
		}
		t.Fatalf("%s %q: %v\n%s", name, args, err, text)
	}
}

func ran(t *testing.T, program string) {
	t.Helper()
	text, err := exec.Command(program, "search", "a b").CombinedOutput()
	if err != nil || string(text) != "ran with search a b\n" {
		t.Errorf("%s: %v, %s", program, err, text)
	}
}

func TestRefusals(t *testing.T) {
	dist, out := t.TempDir(), t.TempDir()
	if err := run(release{version: "v1.2"}, dist, out); err == nil || !strings.Contains(err.Error(), "1.2.3") {
		t.Errorf("a bad version: %v", err)
	}
	if err := run(release{version: "1.2.3", url: "example.com"}, dist, out); err == nil || !strings.Contains(err.Error(), "https") {
		t.Errorf("a bad address: %v", err)
	}
	if err := run(release{version: "1.2.3"}, dist, out); err == nil || !strings.Contains(err.Error(), "no archive") {
		t.Errorf("no archive: %v", err)
	}
	check(t, os.WriteFile(filepath.Join(dist, "cairn-1.2.3-linux-amd64.tar.gz"), []byte("no archive"), 0o644))
	if err := run(release{version: "1.2.3"}, dist, out); err == nil {
		t.Error("a broken archive is taken")
	}
}
