package retriever

import (
	"path"
	"regexp"
	"strings"

	"cairn/internal/code"
	"cairn/internal/store"
)

// role is what a candidate is in a ranking of documents and source code.
type role uint8

const (
	document   role = iota
	source          // code that is no test
	test            // of code
	definition      // of the identifier that is the query
)

// Weights of scores where documents and code compete. A question is answered by the
// documents unless the code matches clearly better; code that tests is below the code
// it tests. The definition of an identifier is above everything that uses it.
const (
	sourceWeight = 0.85 // of code in the answer to a question that finds documents too
	testWeight   = 0.85 // of tests
	useWeight    = 0.9  // of what is no definition where one is found
)

// identifiers are the words that are names of symbols and not words of a language:
// NewIndex, foo_bar, camelCase, Foo.Bar, a::b, run().
var identifiers = regexp.MustCompile(`^[~@]?[\pL_$][\pL\d_$]*(?:(?:\.|::|#|->)~?[\pL_$][\pL\d_$]*[?!]?)*[?!]?(\(\))?$`)

// identifier returns the name that a query of one identifier asks for, and the type or
// package before it; "" for other queries. A word in lower case is no identifier.
func identifier(query string) (scope, name string) {
	query = strings.Trim(query, "`")
	if !identifiers.MatchString(query) || strings.HasSuffix(query, ".md") || store.KindOf(query) == store.Code {
		return "", ""
	}
	name = strings.TrimSuffix(query, "()")
	at := strings.LastIndexAny(name, ".:#>") + 1
	if at == 0 && name == query && strings.ToLower(name) == name && !strings.ContainsAny(name, "_$") {
		return "", ""
	}
	scope = strings.TrimRight(name[:at], ".:#->")
	return scope[strings.LastIndexAny(scope, ".:#>")+1:], name[at:]
}

// inPackage reports whether a file is that of a package or module: its folder or the
// file itself has the name.
func inPackage(file, name string) bool {
	if name == "" {
		return false
	}
	base := path.Base(file)
	return path.Base(path.Dir(file)) == name || strings.TrimSuffix(base, path.Ext(base)) == name
}

// defines reports whether an anchor is that of a symbol with the name: it may have a
// number behind it.
func defines(anchor, name string) bool {
	rest, ok := strings.CutPrefix(anchor, name)
	if !ok || rest == "" {
		return ok
	}
	return rest[0] == '-' && strings.Trim(rest[1:], "0123456789") == ""
}

// placeCode sets the role of every candidate and the part of its score that follows
// from it. Without source code among them nothing changes.
func placeCode(cs []candidate, query string) {
	scope, name := identifier(query)
	documents, sources, defined, packaged := false, false, false, false
	for i := range cs {
		c := &cs[i]
		switch {
		case !code.IsSource(c.path):
			documents = true
			continue
		case name != "" && defines(c.anchor, name):
			c.role, defined = definition, true
			packaged = packaged || inPackage(c.path, scope)
		case code.IsTest(c.path):
			c.role = test
		default:
			c.role = source
		}
		sources = true
	}
	if !sources {
		return
	}
	for i := range cs {
		c := &cs[i]
		c.codeWeight = 1
		if c.role == test || c.role == definition && (code.IsTest(c.path) || packaged && !inPackage(c.path, scope)) {
			c.codeWeight = testWeight
		}
		switch {
		case defined:
			c.codeWeight *= useWeight
		case documents && name == "" && c.role != document:
			c.codeWeight *= sourceWeight
		}
		c.Score = c.weigh()
	}
}

// weigh sets the part of the score that follows from the role of the candidate, and
// returns the score. That of a definition is between useWeight and 1.
func (e *Explanation) weigh() float64 {
	e.Code = 0
	base := min(max(e.Recompute(), 0), 1)
	switch {
	case e.codeWeight == 0:
	case e.role == definition:
		part := (1 + base) / 2
		if e.codeWeight < useWeight { // of a test, or of another package
			part = base / 2
		}
		e.Code = useWeight + (1-useWeight)*part - base
	default:
		e.Code = (e.codeWeight - 1) * base
	}
	return e.Recompute()
}
