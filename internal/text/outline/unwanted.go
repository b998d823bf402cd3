package outline

import (
	"bytes"
	"path"
	"slices"
	"strings"
)

const (
	headLines  = 40       // lines searched for a remark that the file is generated
	headLength = 16 << 10 // the same in bytes
	smallFile  = 2 << 10  // a file of at most so many bytes is not considered minified
	meanLine   = 300      // mean length of a line in bytes above which a file is minified
)

// Unwanted returns the reason not to index a source file: it is generated ("Code
// generated ... DO NOT EDIT", "@generated") or minified. It returns "" for other files.
func Unwanted(src []byte) string {
	if len(src) > smallFile && len(src)/(1+bytes.Count(src, []byte("\n"))) > meanLine {
		return "minified code"
	}
	head := src[:min(len(src), headLength)]
	written := 0 // the last line with the word generated
	edit := 0    // the last line that forbids editing
	for n := 1; n <= headLines && len(head) > 0; n++ {
		line, rest, _ := bytes.Cut(head, []byte("\n"))
		head = rest
		line = bytes.ToLower(bytes.TrimSpace(line))
		if !isRemark(line) {
			continue
		}
		if bytes.Contains(line, []byte("@generated")) {
			return "generated code"
		}
		if bytes.Contains(line, []byte("generated")) {
			written = n
		}
		if bytes.Contains(line, []byte("do not edit")) || bytes.Contains(line, []byte("do not modify")) {
			edit = n
		}
		if written > 0 && edit > 0 && max(written-edit, edit-written) <= 3 {
			return "generated code"
		}
	}
	return ""
}

// isRemark reports whether a line may be part of a comment.
func isRemark(line []byte) bool {
	return slices.ContainsFunc([]string{"//", "#", "/*", "*", "--", `"""`, "<!--", "<?php /"}, func(mark string) bool { return bytes.HasPrefix(line, []byte(mark)) })
}

// IsTest reports whether a path is that of test code, by the conventions of the languages.
func IsTest(name string) bool {
	if !IsSource(name) {
		return false
	}
	dirs, base := path.Split(name)
	for dir := range strings.SplitSeq(dirs, "/") {
		switch dir {
		case "test", "tests", "__tests__", "spec", "specs", "testdata", "androidTest", "unittests":
			return true
		}
	}
	return testName().MatchString(base)
}

var testName = pattern(`^test_|^tests?\.|_test\.|_tests\.|_spec\.|\.test\.|\.spec\.|(Tests?|Spec)\.(java|kt|cs|scala|swift|php)$`)
