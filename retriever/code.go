package retriever

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/store/keyword"
	"cairn/internal/text/outline"
)

// role classifies a candidate in a ranking of documents and source code.
type role uint8

const (
	document   role = iota
	source          // code other than tests
	test            // test code
	definition      // of the identifier in the query: a symbol, a section with this id, or what addNamed finds
)

// Weights of scores in a ranking of documents and code. A document ranks above code that
// matches equally well, and tests below the code that they test. The definition of an
// identifier ranks above its uses. sourceWeight, testWeight, headWeight and stemWeight were
// tuned on the questions of benchmarks/code.md.
const (
	sourceWeight = 0.97 // of code if a question also finds documents
	testWeight   = 0.65 // of tests
	headWeight   = 0.8  // of the licence and imports of a file
	stemWeight   = 0.97 // of a file whose name has other words than the query
	useWeight    = 0.9  // of everything else if a definition is found
)

// identifiers matches names of symbols, as opposed to words of a language:
// NewIndex, foo_bar, camelCase, Foo.Bar, a::b, run().
var identifiers = regexp.MustCompile(`^[~@]?[\pL_$][\pL\d_$]*(?:(?:\.|::|#|->)~?[\pL_$][\pL\d_$]*[?!]?)*[?!]?(\(\))?$`)

// identifier splits a query that is a single identifier into the name and the type or
// package before it. For any other query it returns "". A word in lower case is not an
// identifier: see isWord.
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

// inPackage reports whether a file belongs to the package or module with the name: its
// folder or the file itself has that name.
func inPackage(file, name string) bool {
	if name == "" {
		return false
	}
	return path.Base(path.Dir(file)) == name || stem(file) == name
}

// Defines reports whether an anchor is that of a symbol with the name. The anchor may
// end with a hyphen and a number.
func Defines(anchor, name string) bool {
	rest, ok := strings.CutPrefix(anchor, name)
	if !ok || rest == "" {
		return ok
	}
	return rest[0] == '-' && strings.Trim(rest[1:], "0123456789") == ""
}

// isWord reports whether a query is one word in lower case, which may be the name of a
// symbol or a word of a language.
func isWord(query string) bool {
	return len(query) > 1 && strings.IndexFunc(query, func(r rune) bool { return r < 'a' || r > 'z' }) < 0
}

// placing is the state of placeCode.
type placing struct {
	query, scope, name string
	terms              []string        // of the query
	word               bool            // the name is a word in lower case
	documents          bool            // the candidates include some
	sources            []*candidate    // of code
	uses               bool            // the query is about the use of what the documents describe
	asides             bool            // some documents are aside
	stems              map[string]bool // of the names of files: see names
	named              bool            // a document or section has the word as its name
	defined, packaged  bool            // a definition was found, in the package that the query names
	declared           bool            // the definitions were found by their text, not by the outline
	sure               bool            // a declaration has a type, a modifier or a keyword
}

// placeCode sets the role of every candidate and the part of the score that follows
// from the role. It changes nothing if no candidate is source code or aside. declare is
// called with candidates of source code if the outline has no symbol with the name; it sets
// the role of those whose text declares the name.
func placeCode(cs []candidate, query string, declare func(name string, cs []*candidate) error) error {
	p := placing{query: strings.ToLower(query), uses: isAboutUse(query), terms: keyword.Analyze(query), stems: map[string]bool{}}
	p.scope, p.name = identifier(query)
	if p.word = p.name == "" && isWord(query); p.word {
		p.name = query
	}
	p.assign(cs, query)
	if len(p.sources) == 0 && !p.asides && !p.defined {
		return nil
	}
	if p.name != "" && !p.defined && !p.named {
		if err := p.declare(declare); err != nil {
			return err
		}
	}
	p.weigh(cs)
	return nil
}

// assign sets the role of every candidate. A word that names a document or one of its
// sections does not count as the name of a symbol.
func (p *placing) assign(cs []candidate, query string) {
	for i := range cs {
		c := &cs[i]
		if c.role == definition {
			p.defined = true
			continue
		}
		if outline.IsSource(c.path) {
			p.sources = append(p.sources, c)
			continue
		}
		p.documents = true
		if c.anchor == query && !p.word {
			c.role, p.defined = definition, true
			continue
		}
		c.aside = aside(c.path, p.query)
		p.asides = p.asides || c.aside
		p.named = p.named || p.word && (Defines(c.anchor, p.name) || strings.EqualFold(stem(c.path), p.name))
	}
	for _, c := range p.sources {
		switch {
		case p.name != "" && !p.named && Defines(c.anchor, p.name):
			c.role, p.defined = definition, true
			p.packaged = p.packaged || inPackage(c.path, p.scope)
		case outline.IsTest(c.path):
			c.role = test
		default:
			c.role = source
		}
	}
}

// deepDepth is how many chunks a search requests from each leg if the query names a
// symbol that no candidate defines, since many other names may contain the same words.
// A LegSearcher finds the definitions in its first call.
const deepDepth = 3000

// lacksDefinition reports whether a query names a symbol and the candidates include
// source code but no definition of the symbol.
func lacksDefinition(cs []candidate, query string) bool {
	_, name := identifier(query)
	sources := false
	for i := range cs {
		if name != "" && outline.IsSource(cs[i].path) {
			if sources = true; Defines(cs[i].anchor, name) {
				return false
			}
		}
	}
	return sources
}

// declare marks the candidates whose text declares the name as definitions.
func (p *placing) declare(find func(name string, cs []*candidate) error) error {
	if err := find(p.name, p.sources); err != nil {
		return err
	}
	for _, c := range p.sources {
		if c.role == definition {
			p.declared, p.defined = true, true
			p.sure = p.sure || !c.unsure
			p.packaged = p.packaged || inPackage(c.path, p.scope)
		}
	}
	return nil
}

// weigh sets the scores. A definition ranks above everything else. If the name is a word
// in lower case and only the text declares it, the definition ranks above other code, and
// the documents keep their scores.
func (p *placing) weigh(cs []candidate) {
	among := p.word && p.declared
	best := 0.0 // score of code other than definitions
	for i := range cs {
		c := &cs[i]
		c.codeWeight, c.floor = 1, useWeight
		if c.role == test || c.role == definition && (outline.IsTest(c.path) || p.packaged && !inPackage(c.path, p.scope) || p.sure && c.unsure) {
			c.codeWeight = testWeight
		} else if c.role == source && c.anchor == "" {
			c.codeWeight = headWeight
		}
		if (c.role == source || c.role == test) && p.name == "" && !p.names(c.path) {
			c.codeWeight *= stemWeight
		}
		if c.aside {
			if c.codeWeight = asideWeight; store.KindOf(c.path) == store.Cards {
				c.codeWeight = cardWeight
			}
		}
		switch {
		case p.defined && !among:
			c.codeWeight *= useWeight
		case p.documents && c.role != document && p.uses:
			c.codeWeight *= useQuestionWeight
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

// names reports whether the query has all words of the name of a file.
func (p *placing) names(file string) bool {
	name := stem(file)
	named, ok := p.stems[name]
	if !ok {
		named = !slices.ContainsFunc(keyword.Analyze(name), func(t string) bool { return !slices.Contains(p.terms, t) })
		p.stems[name] = named
	}
	return named
}

// stem returns the name of a file without its folder and extension.
func stem(file string) string {
	base := path.Base(file)
	return strings.TrimSuffix(base, path.Ext(base))
}

// weigh sets the part of the score that follows from the role of the candidate and
// returns the score. A definition scores between floor and floor + 1 - useWeight.
func (e *Explanation) weigh() float64 {
	e.Code = 0
	base := min(max(e.Recompute(), 0), 1)
	switch {
	case e.codeWeight == 0:
	case e.role == definition:
		part := (1 + base) / 2
		if e.codeWeight < useWeight { // a test, in another package, or unsure
			part = base / 2
		}
		e.Code = e.floor + (1-useWeight)*part - base
	default:
		e.Code = (e.codeWeight - 1) * base
	}
	return e.Recompute()
}

// Weights of scores that follow from the kind of the question and of the file. Questions in
// the first person and those that begin with "how to" are about what documents explain: 79 of
// 81 of those of benchmarks/code.md.
const (
	useQuestionWeight = 0.75 // of code in the answer to a question about use that finds documents too
	asideWeight       = 0.85 // of documents that aside reports
	cardWeight        = 0.7  // of cards, which repeat the words of a manual in their titles
)

var (
	aboutUse   = regexp.MustCompile(`(?i)^how to\s|\b(i|my|me|we|our)\b`)
	identifies = regexp.MustCompile(`\p{Ll}\p{Lu}|[_(){}#]|::|\w\.\w`)
)

// isAboutUse reports whether a query asks how its author can do something, without a name of
// code.
func isAboutUse(query string) bool {
	return aboutUse.MatchString(query) && !identifies.MatchString(query)
}

// asideNames are the names of folders and, without extension, of files that repeat the words
// of a manual: tests and their data, examples, lists of changes and tables of contents.
var asideNames = map[string]bool{
	"test": true, "tests": true, "testdata": true, "fixtures": true, "example": true, "examples": true, "samples": true,
	"changes": true, "history": true, "news": true, "contents": true, "toc": true, "genindex": true,
	"mkdocs": true, "_sidebar": true, "sidebars": true, "_toc": true, // of generators of manuals
}

// changeLists are parts of further names of lists of changes, without separators.
var changeLists = []string{"changelog", "changehistory", "releasenote", "whatsnew"}

var separators = strings.NewReplacer("-", "", "_", "", " ", "", "'", "")

// aside reports whether a document or one of its folders has one of asideNames, a name with
// one of changeLists, or a name that begins with a date, as records have, and the query does
// not have the name. A card is aside unless the query is about cards or tasks.
func aside(file, query string) bool {
	if store.IsCard(file) {
		return !strings.Contains(query, "card") && !strings.Contains(query, "task")
	}
	name := strings.ToLower(strings.TrimSuffix(file, path.Ext(file)))
	whole := separators.Replace(name)
	for _, part := range changeLists {
		if strings.Contains(whole, part) && !strings.Contains(separators.Replace(query), part) {
			return true
		}
	}
	for name != "" {
		var first string
		first, name, _ = strings.Cut(name, "/")
		dated := len(first) >= len("2006-01-02") && first[4] == '-' && first[7] == '-' && strings.Trim(first[:10], "0123456789-") == ""
		if (dated || asideNames[first]) && !strings.Contains(query, strings.TrimSuffix(first, "s")) {
			return true
		}
	}
	return false
}

// remoteDeclarations is the most documents of a remote store that a search reads to find a
// declaration, best first.
const remoteDeclarations = 32

// findDeclarations marks the candidates whose text declares a name as definitions, for
// placeCode.
func (s *search) findDeclarations(name string, cs []*candidate) error {
	err := s.sources.Documents.View(func(r *docs.Reader) error {
		slices.SortStableFunc(cs, func(a, b *candidate) int { return cmp.Compare(b.Score, a.Score) })
		var paths []string
		of := map[string][]*candidate{} // by path
		for _, c := range cs {
			if of[c.path] == nil {
				paths = append(paths, c.path)
			}
			of[c.path] = append(of[c.path], c)
		}
		if r.Remote() {
			paths = paths[:min(len(paths), remoteDeclarations)]
		}
		if err := r.Prefetch(paths); err != nil {
			return err
		}
		for _, path := range paths {
			doc, err := r.Document(path)
			if err != nil {
				return err
			}
			if doc == nil {
				continue // removed after the legs found it
			}
			text := r.Text(path)
			for _, c := range of[path] {
				i := sectionOf(doc, &RankedSection{Anchor: c.anchor, Chunk: c.number})
				if i < 0 {
					continue
				}
				chunk := doc.Sections[i].Chunks[c.number]
				if d := outline.Declares(text[chunk.Start:chunk.End], name); d > 0 {
					c.role, c.unsure = definition, d == outline.MayDeclare
				}
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("looking for a declaration of %q: %w", name, err)
	}
	return nil
}
