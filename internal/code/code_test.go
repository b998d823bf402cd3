package code_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cairn/internal/code"
)

var update = flag.Bool("update", false, "write the outlines of testdata")

// languages has one extension of each.
var languages = []string{".go", ".py", ".js", ".ts", ".java", ".c", ".cc", ".cs", ".rs", ".rb", ".php", ".kt", ".swift", ".sh", ".sql"}

// TestOutline compares the outline of each file of testdata with the one next to it:
// the lines with the comment, the kind, the name below its parents, and the signature.
func TestOutline(t *testing.T) {
	files, err := filepath.Glob("testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	tested := map[string]bool{}
	for _, name := range files {
		if !code.IsSource(name) {
			continue
		}
		tested[filepath.Ext(name)] = true
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		symbols, cut := code.Outline(name, src)
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

func listing(src []byte, symbols []code.Symbol) string {
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

// TestHostile gives every language files that would make a careless reader quadratic
// or exhaust its stack.
func TestHostile(t *testing.T) {
	const size = code.MaxSize / 8
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
	}
	for _, ext := range languages {
		for name, src := range hostile {
			began := time.Now()
			symbols, _ := code.Outline("a"+ext, []byte(src))
			if d := time.Since(began); d > 5*time.Second {
				t.Errorf("%s of %s: %v", name, ext, d)
			}
			check(t, []byte(src), symbols)
		}
	}
}

// check tests what holds of every outline.
func check(t *testing.T, src []byte, symbols []code.Symbol) {
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
		if src, err := os.ReadFile(name); err == nil && code.IsSource(name) {
			f.Add(filepath.Ext(name), src)
		}
	}
	f.Fuzz(func(t *testing.T, ext string, src []byte) {
		symbols, _ := code.Outline("a"+ext, src)
		check(t, src, symbols)
	})
}
