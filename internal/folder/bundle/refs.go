package bundle

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/text/fit"
	"cairn/internal/text/highlight"
	"cairn/internal/text/outline"
	"cairn/retriever"
)

// ReferencesRequest names a symbol.
type ReferencesRequest struct {
	// Symbol is a name, "Type.name" or "path#name".
	Symbol string `json:"symbol"`
	// Limit is the most references to return; 0 means DefaultReferences.
	Limit int `json:"limit,omitempty"`
}

// The bounds of a ReferencesRequest.
const (
	DefaultReferences = 50
	MaxReferences     = 1000
	maxSymbol         = 200 // bytes
	maxLine           = 160 // bytes of a line of code
)

// Reference is a place that names a symbol. Anchor is that of the symbol with the place.
type Reference struct {
	Place        // Why is "call", "use" or "import"
	Test  bool   `json:"test,omitempty"` // in test code
	Guess bool   `json:"guess,omitempty"`
	Text  string `json:"text"` // the line
}

// References are the definitions of a symbol and what names it. A reference is a guess
// unless it is in the file or Go package of the definition, its file imports that, or it is a
// member of a variable that is declared with the type of the definition. Names in comments
// and strings do not count, nor members of variables of another type that defines the name.
type References struct {
	Definitions []Place     `json:"definitions"`
	References  []Reference `json:"references"` // guesses last
	Total       int         `json:"total"`
}

// Text returns the references as text, a line each.
func (r *References) Text() string {
	var b strings.Builder
	for i := range r.Definitions {
		retriever.WriteSection(&b, r.Definitions[i].String()+"  "+r.Definitions[i].Why, "")
	}
	for _, ref := range r.References {
		at, guess := fmt.Sprintf("%s:%d", ref.Path, ref.Lines.Start), ""
		if ref.Anchor != "" {
			at += " #" + ref.Anchor
		}
		if ref.Guess {
			guess = ", a guess"
		}
		fmt.Fprintf(&b, "%s  %s%s: %s\n", at, ref.Why, guess, ref.Text)
	}
	switch {
	case len(r.Definitions) == 0:
		b.WriteString("no definition of a symbol with this name; grep finds the lines that contain it\n")
	case r.Total > len(r.References):
		fmt.Fprintf(&b, "%d of %d references are shown\n", len(r.References), r.Total)
	case r.Total == 0:
		b.WriteString("no references\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// FindReferences finds who calls or uses a symbol, in the documents of the index.
func FindReferences(ctx context.Context, s Sources, r ReferencesRequest) (*References, error) {
	if r.Limit = cmp.Or(r.Limit, DefaultReferences); r.Limit < 1 || r.Limit > MaxReferences {
		return nil, &retriever.InvalidError{Field: "limit", Reason: fmt.Sprintf("%d, want 1 to %d", r.Limit, MaxReferences)}
	}
	f := finder{symbol: strings.TrimSuffix(strings.TrimSpace(r.Symbol), "()")}
	rest := f.symbol
	if at := strings.LastIndexByte(rest, '#'); at >= 0 {
		f.file, rest = rest[:at], rest[at+1:]
	}
	at := strings.LastIndexAny(rest, ".:") + 1
	f.scope, f.name = strings.TrimRight(rest[:at], ".:"), rest[at:]
	f.scope = f.scope[strings.LastIndexAny(f.scope, ".:")+1:]
	if len(f.symbol) > maxSymbol || f.name == "" || strings.ContainsFunc(f.name, func(r rune) bool { return !isWordRune(r) && !strings.ContainsRune("?!~", r) }) {
		return nil, &retriever.InvalidError{Field: "symbol", Reason: fmt.Sprintf("%.80q is not the name of a symbol, want a name such as NewIndex, Index.Search or path#name", r.Symbol)}
	}
	var out *References
	err := s.Documents.View(func(reader *docs.Reader) (err error) {
		out, err = f.find(ctx, reader, s.Containing(f.name))
		return err
	})
	if err != nil {
		return nil, err
	}
	out.References = out.References[:min(r.Limit, out.Total)]
	return out, nil
}

// finder finds the references of one symbol.
type finder struct {
	symbol, file, scope, name string
	// types are the anchors of the sections around the definitions of the name; true if the
	// request names one of these.
	types        map[string]bool
	declarations map[string]*regexp.Regexp // by variable: see typed
}

// source is a file of source code that contains the name.
type source struct {
	doc         *store.Document
	text        []byte
	definitions []int           // sections
	others      []int           // sections that define the name in another scope or file
	imports     map[string]bool // the words of its imports
}

// find looks for the symbol in the files.
func (f *finder) find(ctx context.Context, reader *docs.Reader, paths []string) (*References, error) {
	f.types, f.declarations = map[string]bool{}, map[string]*regexp.Regexp{}
	out := &References{Definitions: []Place{}, References: []Reference{}}
	var files []*source
	defining := map[string][]*source{} // by language
	for _, p := range paths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		text := reader.Text(p)
		if store.KindOf(p) != store.Code || !bytes.Contains(text, []byte(f.name)) {
			continue
		}
		doc, err := reader.Document(p)
		if err != nil {
			return nil, err
		}
		if doc == nil {
			continue
		}
		s := &source{doc: doc, text: text}
		for n := range doc.Sections {
			sec := &doc.Sections[n]
			if sec.Level == 0 || !retriever.Defines(sec.Anchor, f.name) {
				continue
			}
			named := f.defines(doc, n)
			if around := enclosing(doc, n); around != "" {
				f.types[around] = f.types[around] || named
			}
			if named {
				s.definitions = append(s.definitions, n)
				out.Definitions = append(out.Definitions, Place{doc.Path, retriever.Lines{Start: sec.StartLine, End: sec.EndLine}, sec.Anchor, sec.Heading})
			} else {
				s.others = append(s.others, n)
			}
		}
		if files = append(files, s); len(s.definitions) > 0 {
			defining[language(p)] = append(defining[language(p)], s)
		}
	}
	for _, s := range files {
		if defs := defining[language(s.doc.Path)]; len(defs) > 0 {
			out.References = append(out.References, f.references(s, defs)...)
		}
	}
	out.Total = len(out.References)
	rank := func(r Reference) (n int) {
		if r.Test {
			n++
		}
		if r.Guess {
			n += 2
		}
		return n
	}
	slices.SortStableFunc(out.References, func(a, b Reference) int { return cmp.Compare(rank(a), rank(b)) })
	return out, nil
}

// enclosing returns the anchor of the section around section n, without a number that tells
// it from others, or the name of a type whose section is in another file, "" for none.
func enclosing(doc *store.Document, n int) string {
	trail := doc.Sections[n].Trail
	for i := n - 1; i >= 0 && len(trail) > 1; i-- {
		if s := &doc.Sections[i]; s.Heading == trail[len(trail)-2] {
			return numbered.ReplaceAllString(s.Anchor, "")
		}
	}
	if len(trail) > 1 && !strings.ContainsFunc(strings.TrimPrefix(trail[len(trail)-2], "type "), betweenWords) {
		return strings.TrimPrefix(trail[len(trail)-2], "type ")
	}
	return ""
}

var numbered = regexp.MustCompile(`-\d+$`)

// defines reports whether a section that defines the name is one that the request names.
func (f *finder) defines(doc *store.Document, n int) bool {
	s := &doc.Sections[n]
	if f.file != "" && doc.Path != f.file {
		return false
	}
	if f.scope == "" || path.Base(path.Dir(doc.Path)) == f.scope || stem(doc.Path) == f.scope {
		return true
	}
	return len(s.Trail) > 1 && slices.ContainsFunc(words(s.Trail[len(s.Trail)-2]), func(w string) bool { return w == f.scope })
}

// references returns the places of a file that name the symbol, which defs define.
func (f *finder) references(s *source, defs []*source) (refs []Reference) {
	text, line, from := string(s.text), 1, 0
	spans := highlight.Code(strings.TrimPrefix(outline.Ext(s.doc.Path), "."), text)
	declared := map[int]bool{}
	for at := 0; ; at += len(f.name) {
		next := strings.Index(text[at:], f.name)
		if next < 0 {
			return refs
		}
		at += next
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		after, _ := utf8.DecodeRuneInString(text[at+len(f.name):])
		if isWordRune(before) || isWordRune(after) {
			continue
		}
		n, in := slices.BinarySearchFunc(spans, at, func(s highlight.Span, at int) int {
			switch {
			case s.End <= at:
				return -1
			case s.Start > at:
				return 1
			}
			return 0
		})
		if in && (spans[n].Kind == highlight.Comment || spans[n].Kind == highlight.String) {
			continue
		}
		section := -1 // the deepest that contains the place
		for n := range s.doc.Sections {
			if c := &s.doc.Sections[n]; c.Start <= at && at < c.End && c.Level > 0 {
				section = n
			}
		}
		if (slices.Contains(s.definitions, section) || slices.Contains(s.others, section)) && !declared[section] {
			declared[section] = true // the first one in a definition is the declaration
			continue
		}
		line, from = line+strings.Count(text[from:at], "\n"), at
		ref := Reference{Place: Place{Path: s.doc.Path, Lines: retriever.Lines{Start: line, End: line}}, Test: outline.IsTest(s.doc.Path)}
		if section >= 0 {
			ref.Anchor = s.doc.Sections[section].Anchor
		}
		start, end := strings.LastIndexByte(text[:at], '\n')+1, len(text)
		if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
			end = at + n
		}
		code := text[start:end]
		ref.Text = fit.Cut(strings.Join(strings.Fields(code), " "), maxLine)
		switch {
		case importing.MatchString(code):
			ref.Why = "import"
		case strings.HasPrefix(strings.TrimLeft(text[at+len(f.name):], " !?"), "("):
			ref.Why = "call"
		default:
			ref.Why = "use"
		}
		scope := 0
		if section >= 0 {
			scope = s.doc.Sections[section].Start
		}
		ofType, known := f.typed(text[scope:at], text)
		ref.Guess = !ofType && !slices.ContainsFunc(defs, func(d *source) bool { return s.reaches(d, text[start:at], f.name) })
		if n := len(refs); (ofType || !known) && (n == 0 || refs[n-1].Lines.Start != line || refs[n-1].Guess && !ref.Guess) {
			refs = append(refs, ref)
		}
	}
}

// typed looks for the declaration of the variable at the end of code, which is followed by a
// dot, in code and then in the whole file. known reports whether its type is one that defines
// the name, and ofType whether the request names that.
func (f *finder) typed(code, file string) (ofType, known bool) {
	trimmed := strings.TrimSuffix(strings.TrimSuffix(code, "."), "->")
	variable := trimmed[len(strings.TrimRightFunc(trimmed, isWordRune)):]
	if len(trimmed) == len(code) || variable == "" || len(f.types) == 0 {
		return false, false
	}
	declaration, ok := f.declarations[variable]
	if !ok {
		var names []string
		for name := range f.types {
			names = append(names, regexp.QuoteMeta(name))
		}
		types := `\b(` + strings.Join(names, "|") + `)\b`
		variable := `\b` + regexp.QuoteMeta(variable) + `\b`
		declaration = regexp.MustCompile(variable + `[ \t]*(?::?=|:)?[ \t]*[*&]*(?:new[ \t]+|mut[ \t]+|(?:\w+\.)+|New)*` + types + `|` + types + `[ *&]+` + variable)
		f.declarations[variable] = declaration
	}
	for _, text := range []string{code, file} {
		if all := declaration.FindAllStringSubmatch(text, -1); all != nil {
			m := all[len(all)-1]
			return f.types[m[1]+m[2]], true
		}
	}
	return false, false
}

// reaches reports whether a name after the text before, on one line of s, is that of a
// definition in d: by their file, by their Go package, or by an import.
func (s *source) reaches(d *source, before, name string) bool {
	qualifier := ""
	member := strings.HasSuffix(before, ".") || strings.HasSuffix(before, "->")
	if q := words(strings.TrimRight(before, ".:->")); member || strings.HasSuffix(before, "::") {
		if len(q) > 0 {
			qualifier = q[len(q)-1]
		}
	}
	module := stem(d.doc.Path)
	if dir := path.Base(path.Dir(d.doc.Path)); module == "index" || module == "mod" || module == "lib" || module == "__init__" {
		module = dir
	} else if m := clause.FindSubmatch(d.text); m != nil && outline.Ext(d.doc.Path) == ".go" {
		module = strings.TrimSuffix(string(m[1]), "_test")
	}
	switch {
	case d == s:
		return !member || qualifier == "self" || qualifier == "this"
	case outline.Ext(d.doc.Path) == ".go" && path.Dir(d.doc.Path) == path.Dir(s.doc.Path):
		return !member
	case s.imports == nil:
		s.imports = map[string]bool{}
		for line := range strings.Lines(string(s.text)) {
			if importing.MatchString(line) {
				for _, w := range words(line) {
					s.imports[w] = true
				}
			}
		}
	}
	switch {
	case qualifier != "":
		return s.imports[module] && qualifier == module
	case outline.Ext(d.doc.Path) == ".go":
		return false
	}
	return !member && s.imports[module] && (s.imports[name] || outline.Ext(d.doc.Path) == ".rb" || language(d.doc.Path) == ".c")
}

// clause matches the package clause of a Go file.
var clause = regexp.MustCompile(`(?m)^package (\w+)`)

// importing matches lines that import, also those of a block of imports in Go.
var importing = regexp.MustCompile(`^\s*(import|from|use|pub use|mod|pub mod|require|require_relative|using|#\s*include)\b|^\s*([\w.]+ )?"[\w./@~-]+"\s*$|\brequire\(|\bfrom\s+['"]`)

// language returns a name for the languages whose files can refer to each other.
func language(file string) string {
	switch ext := outline.Ext(file); ext {
	case ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".vue", ".svelte":
		return ".js"
	case ".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx":
		return ".c"
	case ".java", ".kt", ".kts", ".scala":
		return ".java"
	default:
		return ext
	}
}

func stem(file string) string {
	name, _, _ := strings.Cut(path.Base(file), ".")
	return name
}

func words(text string) []string {
	return strings.FieldsFunc(text, betweenWords)
}

func betweenWords(r rune) bool { return !isWordRune(r) }

func isWordRune(r rune) bool {
	return r == '_' || r == '$' || r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}
