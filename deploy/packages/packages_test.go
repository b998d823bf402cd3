package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
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

// releaseIn writes the binaries of two platforms and the lists of goreleaser.
func releaseIn(t *testing.T, root, version string) {
	t.Helper()
	native := "dist/cairn_" + runtime.GOOS + "_" + runtime.GOARCH + "/cairn"
	for name, text := range map[string]string{
		native: program, "dist/cairn_windows_arm64/cairn.exe": "MZ", "LICENSE": "Apache\n",
		"dist/metadata.json": fmt.Sprintf(`{"project_name":"cairn","version":%q}`, version),
		"dist/artifacts.json": fmt.Sprintf(`[{"path":%q,"goos":%q,"goarch":%q,"type":"Binary"},
			{"path":"dist/cairn_windows_arm64/cairn.exe","goos":"windows","goarch":"arm64","type":"Binary"},
			{"path":"dist/cairn-windows-arm64.zip","goos":"windows","goarch":"arm64","type":"Archive"}]`, native, runtime.GOOS, runtime.GOARCH),
	} {
		check(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		check(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o644))
	}
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
	root, out, again := t.TempDir(), t.TempDir(), t.TempDir()
	releaseIn(t, root, "1.2.3")
	check(t, run("cairn-search", root, out))
	check(t, run("cairn-search", root, again))
	files, err := filepath.Glob(filepath.Join(out, "*"))
	check(t, err)
	if len(files) != 5 { // two wheels, two packages of npm and the one that chooses
		t.Fatalf("made %q", files)
	}
	for _, f := range files {
		first, err := os.ReadFile(f)
		check(t, err)
		if second, err := os.ReadFile(filepath.Join(again, filepath.Base(f))); err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s differs the second time: %v", f, err)
		}
	}
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
	root, out := t.TempDir(), t.TempDir()
	if err := run("cairn", root, out); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no release: %v", err)
	}
	releaseIn(t, root, "1.2.3-SNAPSHOT")
	if err := run("cairn", root, out); err == nil || !strings.Contains(err.Error(), "1.2.3") {
		t.Errorf("a bad version: %v", err)
	}
	releaseIn(t, root, "1.2.3")
	check(t, os.WriteFile(filepath.Join(root, "dist", "artifacts.json"), []byte("[]"), 0o644))
	if err := run("cairn", root, out); err == nil || !strings.Contains(err.Error(), "no binary") {
		t.Errorf("no binary: %v", err)
	}
	check(t, os.WriteFile(filepath.Join(root, "dist", "artifacts.json"), []byte("no list"), 0o644))
	if err := run("cairn", root, out); err == nil {
		t.Error("a broken list is taken")
	}
}
