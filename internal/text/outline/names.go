package outline

import (
	"bytes"
	"path"
	"slices"
	"strings"
)

// Ext returns the extension, in lower case, that decides how to read a file. It ignores
// ".gz" and the subsection of a manual page, as in "open.3pm" or "man3/canvas.3caca". A README
// and its like have ".txt", and a Makefile and its like the extension of their language.
func Ext(name string) string {
	folder := path.Base(path.Dir(name))
	name = path.Base(name)
	if Compressed(name) {
		name = name[:len(name)-len(gzipped)]
	}
	ext := strings.ToLower(path.Ext(name))
	stem, rest := name, ""
	if i := strings.IndexAny(name, ".-"); i > 0 {
		stem, rest = name[:i], name[i:]
	}
	if alias := aliases[strings.ToLower(stem)]; alias != "" {
		edition, _, _ := strings.Cut(strings.TrimLeft(rest, ".-"), ".")
		release := stem != strings.ToLower(stem) && strings.Trim(rest, "-.0123456789") == "" // install.1 is a manual page
		if rest == "" || editions[strings.ToLower(edition)] || release {
			return alias
		}
	}
	if len(ext) > 2 && '1' <= ext[1] && ext[1] <= '9' && (subsections[ext[2:]] || strings.HasPrefix(folder, "man"+ext[1:2])) {
		return ext[:2]
	}
	return ext
}

const gzipped = ".gz"

// Compressed reports whether a file is compressed with gzip, by its name.
func Compressed(name string) bool {
	n := len(name) - len(gzipped)
	return n > 0 && strings.EqualFold(name[n:], gzipped)
}

var (
	// aliases maps the names of files without extension to the extension of their format.
	aliases = byWord(map[string]string{
		".txt": "readme news install changes changelog history authors copying copyright license licence todo thanks credits faq " +
			"notice contributing contributors maintainers hacking bugs usage features porting roadmap",
		".mk": "makefile gnumakefile", ".dockerfile": "dockerfile containerfile", ".groovy": "jenkinsfile",
		".rb": "vagrantfile gemfile rakefile brewfile podfile", ".py": "sconstruct sconscript snakefile tiltfile",
	})
	// editions may follow such a name: README.Debian, LICENSE-MIT. So may the number of a release.
	editions = set("debian source upstream linux windows lib lesser gpl lgpl agpl gplv2 gplv3 mit apache bsd mpl isc")
	// subsections may follow the section of a manual page, in any folder.
	subsections = set("pm perl ssl x p t m tcl tk type const posix readline ncurses")
)

// byWord maps each word of the lists to the key of its list.
func byWord[K comparable](lists map[K]string) map[string]K {
	m := map[string]K{}
	for key, list := range lists {
		for w := range strings.FieldsSeq(list) {
			m[w] = key
		}
	}
	return m
}

// set returns the set of the words of a list.
func set(list string) map[string]bool { return byWord(map[bool]string{true: list}) }

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
