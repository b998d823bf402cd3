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
// it tests. The definition of an identifier is above everything that uses it. The first
// two are chosen over questions about documents and about code: benchmarks/formats.md.
const (
	sourceWeight = 0.95 // of code in the answer to a question that finds documents too
	testWeight   = 0.85 // of tests
	useWeight    = 0.9  // of what is no definition where one is found
)

// identifiers are the words that are names of symbols and not words of a language:
// NewIndex, foo_bar, camelCase, Foo.Bar, a::b, run().
var identifiers = regexp.MustCompile(`^[~@]?[\pL_$][\pL\d_$]*(?:(?:\.|::|#|->)~?[\pL_$][\pL\d_$]*[?!]?)*[?!]?(\(\))?$`)

// identifier returns the name that a query of one identifier asks for, and the type or
// package before it; "" for other queries. A word in lower case is no identifier: see
// isWord.
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
	return path.Base(path.Dir(file)) == name || stem(file) == name
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

// isWord reports whether a query is one word in lower case. It may be the name of a
// symbol or a word of a language.
func isWord(query string) bool {
	return len(query) > 1 && strings.IndexFunc(query, func(r rune) bool { return r < 'a' || r > 'z' }) < 0
}

// placing is what placeCode knows of the candidates.
type placing struct {
	query, scope, name string
	word               bool // the name is a word in lower case
	documents, sources bool // there are some
	named              bool // a document or its section is named by the word
	defined, packaged  bool // there is a definition, in the package that the query names
	declared           bool // definitions are known by their text alone
	sure               bool // the text of one has a type, a modifier or a keyword
}

// placeCode sets the role of every candidate and the part of its score that follows
// from it. Without source code among them nothing changes. declare finds, among
// candidates of source code, those whose text declares a name for which the outline has
// no symbol.
func placeCode(cs []candidate, query string, declare func(name string, cs []*candidate) error) error {
	p := placing{query: query}
	p.scope, p.name = identifier(query)
	if p.word = p.name == "" && isWord(query); p.word {
		p.name = query
	}
	p.assign(cs)
	if !p.sources {
		return nil
	}
	if p.name != "" && !p.defined && !p.named {
		if err := p.declare(cs, declare); err != nil {
			return err
		}
	}
	p.weigh(cs)
	return nil
}

// assign gives every candidate its role. A word that names a document or a section of
// one is no name of a symbol.
func (p *placing) assign(cs []candidate) {
	for i := range cs {
		c := &cs[i]
		switch {
		case !code.IsSource(c.path):
			p.documents = true
			p.named = p.named || p.word && (defines(c.anchor, p.name) || strings.EqualFold(stem(c.path), p.name))
			continue
		case p.name != "" && defines(c.anchor, p.name):
			c.role, p.defined = definition, true
			p.packaged = p.packaged || inPackage(c.path, p.scope)
		case code.IsTest(c.path):
			c.role = test
		default:
			c.role = source
		}
		p.sources = true
	}
	if !p.named {
		return
	}
	p.defined = false
	for i := range cs {
		if c := &cs[i]; c.role == definition {
			if c.role = source; code.IsTest(c.path) {
				c.role = test
			}
		}
	}
}

// deepDepth is how many chunks each leg is asked for where a query names a symbol that no
// candidate defines: its words may be those of many other names. A store elsewhere is not
// asked again, since each call is a round trip.
const deepDepth = 3000

// lacksDefinition reports whether a query names a symbol, and there is source code among
// the candidates, none of which defines it.
func lacksDefinition(cs []candidate, query string) bool {
	_, name := identifier(query)
	sources := false
	for i := range cs {
		if name != "" && code.IsSource(cs[i].path) {
			if sources = true; defines(cs[i].anchor, name) {
				return false
			}
		}
	}
	return sources
}

// declare makes definitions of the candidates whose text declares the name.
func (p *placing) declare(cs []candidate, find func(name string, cs []*candidate) error) error {
	var sources []*candidate
	for i := range cs {
		if c := &cs[i]; c.role != document {
			sources = append(sources, c)
		}
	}
	if err := find(p.name, sources); err != nil {
		return err
	}
	for _, c := range sources {
		if c.role == definition {
			p.declared, p.defined = true, true
			p.sure = p.sure || !c.unsure
			p.packaged = p.packaged || inPackage(c.path, p.scope)
		}
	}
	return nil
}

// weigh sets the scores. The place of a definition is above everything; that of a word in
// lower case which only a text declares is above the other code, and documents stay where
// they are.
func (p *placing) weigh(cs []candidate) {
	among := p.word && p.declared
	best := 0.0 // of code that is no definition
	for i := range cs {
		c := &cs[i]
		c.codeWeight, c.floor = 1, useWeight
		if c.role == test || c.role == definition && (code.IsTest(c.path) || p.packaged && !inPackage(c.path, p.scope) || p.sure && c.unsure) {
			c.codeWeight = testWeight
		}
		switch {
		case p.defined && !among:
			c.codeWeight *= useWeight
		case p.documents && (p.name == "" || p.word) && c.role != document:
			c.codeWeight *= sourceWeight
		}
		if c.role != definition {
			c.Score = c.weigh()
			if c.role != document {
				best = max(best, c.Score)
			}
		}
	}
	for i := range cs {
		if c := &cs[i]; c.role == definition {
			if among {
				c.floor = min(best, useWeight)
			}
			c.Score = c.weigh()
		}
	}
}

// stem is the name of a file without its folder and extension.
func stem(file string) string {
	base := path.Base(file)
	return strings.TrimSuffix(base, path.Ext(base))
}

// weigh sets the part of the score that follows from the role of the candidate, and
// returns the score. That of a definition is between floor and floor and 1 - useWeight.
func (e *Explanation) weigh() float64 {
	e.Code = 0
	base := min(max(e.Recompute(), 0), 1)
	switch {
	case e.codeWeight == 0:
	case e.role == definition:
		part := (1 + base) / 2
		if e.codeWeight < useWeight { // of a test, of another package, or unsure
			part = base / 2
		}
		e.Code = e.floor + (1-useWeight)*part - base
	default:
		e.Code = (e.codeWeight - 1) * base
	}
	return e.Recompute()
}
