package outline

import (
	"path"
	"strings"
)

// Ext returns the extension, in lower case, that decides how to read a file. It ignores
// ".gz" and the subsection of a manual page, as in "open.3pm". A README and its like have
// ".txt", and a Makefile and its like the extension of their language.
func Ext(name string) string {
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
		if rest == "" || editions[strings.ToLower(edition)] {
			return alias
		}
	}
	if len(ext) > 2 && '1' <= ext[1] && ext[1] <= '8' && subsections[ext[2:]] {
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
	// editions may follow such a name: README.Debian, LICENSE-MIT.
	editions = byWord(map[bool]string{true: "debian source upstream linux windows lib lesser gpl lgpl agpl gplv2 gplv3 mit apache bsd mpl isc"})
	// subsections may follow the section of a manual page.
	subsections = byWord(map[bool]string{true: "pm perl ssl x p t m tcl tk type const posix readline ncurses"})
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
