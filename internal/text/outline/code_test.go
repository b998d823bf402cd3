package outline_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/base/testutil"
	"cairn/internal/text/outline"
)

var update = flag.Bool("update", false, "write the outlines of testdata")

// languages has one extension of each.
var languages = []string{".go", ".py", ".js", ".ts", ".java", ".c", ".cc", ".cs", ".rs", ".rb", ".php", ".kt", ".swift", ".sh", ".sql",
	".proto", ".tf", ".css", ".scss", ".vue", ".svelte", ".r", ".zig", ".ex", ".hs", ".groovy", ".mk", ".dockerfile"}

// TestOutline compares the outline of each file of testdata with the file next to it. Each
// line has the range of lines with the comment, the kind, the qualified name and the
// signature.
func TestOutline(t *testing.T) {
	files, err := filepath.Glob("testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	tested := map[string]bool{}
	for _, name := range files {
		if !outline.IsSource(name) {
			continue
		}
		tested[outline.Ext(name)] = true
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		symbols, cut := outline.Outline(name, src)
		if cut {
			t.Errorf("%s: cut", name)
		}
		got := listing(src, symbols)
		golden := name + ".outline"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o666); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s:\n%swant\n%s", name, got, want)
		}
	}
	for _, ext := range languages {
		if !tested[ext] {
			t.Errorf("no test for %s", ext)
		}
	}
}

func listing(src []byte, symbols []outline.Symbol) string {
	var b strings.Builder
	line := func(at int) int { return 1 + bytes.Count(src[:at], []byte("\n")) }
	for _, s := range symbols {
		name := s.Name
		for p := s.Parent; p >= 0; p = symbols[p].Parent {
			name = symbols[p].Name + "/" + name
		}
		if s.Scope != "" {
			name = s.Scope + "." + name
		}
		local := ""
		if s.Local {
			local = "local "
		}
		fmt.Fprintf(&b, "%d-%d %s%s %s: %s\n", line(s.Start), line(max(s.Start, s.End-1)), local, s.Kind, strings.Join(append([]string{name}, s.Names...), ","), s.Signature)
	}
	return b.String()
}

// TestHostile reads files that cause quadratic time or deep recursion without limits.
func TestHostile(t *testing.T) {
	const size = outline.MaxSize / 8
	hostile := map[string]string{
		"brackets": strings.Repeat("{([", 100_000), "closing": strings.Repeat("}])", 100_000), "pairs": strings.Repeat("{}", size/2),
		"one line":  strings.Repeat("class A { void f() { } } ", size/25),
		"functions": strings.Repeat("function f() {", size/14), "generics": strings.Repeat("a<", size/2), "calls": strings.Repeat("f(a)", size/4),
		"strings": strings.Repeat("\"", size), "quotes": strings.Repeat("'''", size/3), "comments": strings.Repeat("/**/", size/4),
		"hashes": strings.Repeat("#", size), "conditions": strings.Repeat("#if A\n{(\n", size/9), "templates": strings.Repeat("`${", size/3),
		"here": strings.Repeat("<<A\n", size/4), "raw": strings.Repeat("R\"a(", size/4), "dollars": strings.Repeat("$a$b", size/4),
		"lines": strings.Repeat("\n", size), "words": strings.Repeat("a ", size/2), "annotations": strings.Repeat("@A ", size/3),
		"indent": strings.Repeat(" ", 1000) + strings.Repeat("def f():\n ", size/11), "colons": strings.Repeat("a::b:", size/5),
		"members": "A::A() : " + strings.Repeat("a{1},", size/5), "php": "<?php " + strings.Repeat("?><?php ", size/8),
		"created": strings.Repeat("create table ", size/13), "assigned": strings.Repeat("a=b=>", size/5), "comma": strings.Repeat("var a,", size/6),
		"slashes": strings.Repeat("/a", size/2), "nested": strings.Repeat("/*", size/2),
		"classes": strings.Repeat("/[", size/2),
	}
	for _, ext := range languages {
		for name, src := range hostile {
			var symbols []outline.Symbol
			testutil.Linear(t, name+" of "+ext, len(src), func(n int) func() {
				text := []byte(src[:n])
				return func() { symbols, _ = outline.Outline("a"+ext, text) }
			})
			check(t, []byte(src), symbols)
		}
	}
}

// check checks properties that hold for any outline.
func check(t *testing.T, src []byte, symbols []outline.Symbol) {
	t.Helper()
	start := 0
	for i, s := range symbols {
		if s.Start < start || s.Decl < s.Start || s.End < s.Decl || s.End > len(src) || s.Parent >= i || s.Parent < -1 || s.Name == "" {
			t.Fatalf("symbol %d of %d is %+v, after one that starts at %d, in %d bytes", i, len(symbols), s, start, len(src))
		}
		if len(s.Signature) > 200 || strings.Contains(s.Signature, "\n") {
			t.Fatalf("signature %q", s.Signature)
		}
		start = s.Start
	}
}

func FuzzOutline(f *testing.F) {
	files, _ := filepath.Glob("testdata/*")
	for _, name := range files {
		if src, err := os.ReadFile(name); err == nil && outline.IsSource(name) {
			f.Add(outline.Ext(name), src)
		}
	}
	f.Fuzz(func(t *testing.T, ext string, src []byte) {
		symbols, _ := outline.Outline("a"+ext, src)
		check(t, src, symbols)
	})
}

func TestUnwanted(t *testing.T) {
	for src, want := range map[string]string{
		"// Code generated by protoc-gen-go. DO NOT EDIT.\npackage a\n":      "generated code",
		"package a\n\n// Generated is not generated.\nfunc Generated() {}\n": "",
		"/**\n * @generated SignedSource<<x>>\n */\n":                        "generated code",
		"# This file is generated by make.\n# Do not edit it.\nx = 1\n":      "generated code",
		"var s = \"Code generated by x. DO NOT EDIT.\"\n":                    "",
		strings.Repeat("function a(){return 1};", 200):                       "minified code",
		strings.Repeat("int a;\n", 1000):                                     "",
	} {
		if got := outline.Unwanted([]byte(src)); got != want {
			t.Errorf("Unwanted(%.60q) = %q, want %q", src, got, want)
		}
	}
	for name, want := range map[string]bool{
		"a/x_test.go": true, "a/x.go": false, "tests/x.py": true, "test_x.py": true, "contest.py": false, "src/App.test.tsx": true,
		"src/FooTest.java": true, "src/Latest.java": false, "spec/a_spec.rb": true, "docs/test.md": false, "pkg/testing.go": false,
	} {
		if got := outline.IsTest(name); got != want {
			t.Errorf("IsTest(%q) = %v", name, got)
		}
	}
}
