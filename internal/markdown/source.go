package markdown

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// syntax finds top-level declarations by one regular expression, applied to each
// line without indentation; its first matching group is the name. It misses
// declarations made by macros or inside namespaces, and matches lines of strings at
// column 0. Go has a real parser.
type syntax struct {
	pattern string
	lead    string // prefixes, blank-separated, of lines above that belong to the declaration
	re      func() *regexp.Regexp
}

func lang(lead, pattern string) *syntax {
	return &syntax{pattern: pattern, lead: lead, re: sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(pattern)
	})}
}

const slashes = "// /* * */ @"

var (
	goLang = lang(slashes, "")
	python = lang("# @", `^(?:async\s+def|def|class)\s+([A-Za-z_]\w*)`)
	script = lang(slashes, `^(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?(?:(?:async\s+)?function\s*\*?|class|interface|type|enum|namespace|const\s+enum)\s+([A-Za-z_$][\w$]*)`+
		`|^(?:export\s+)?(?:const|let|var)\s+([A-Za-z_$][\w$]*)`)
	rust = lang(slashes+" #[", `^(?:pub(?:\([^)]*\))?\s+)?(?:default\s+)?(?:async\s+)?(?:const\s+)?(?:unsafe\s+)?(?:extern\s+"[^"]*"\s+)?(?:fn|struct|enum|union|trait|type|mod|static|macro_rules!)\s+(?:mut\s+)?([A-Za-z_]\w*)`+
		`|^(?:pub(?:\([^)]*\))?\s+)?const\s+([A-Za-z_]\w*)\s*:`+
		`|^(?:unsafe\s+)?impl(?:<[^>]*>)?\s+(?:[\w:<>', &]+\s+for\s+)?&?([A-Za-z_]\w*)`)
	java   = lang(slashes, `^(?:(?:public|protected|private|abstract|final|static|sealed|non-sealed|strictfp|data|open|internal|partial|record)\s+)*(?:class|interface|enum|record|@interface|object|struct)\s+([A-Za-z_]\w*)`)
	kotlin = lang(slashes, `^(?:(?:public|protected|private|abstract|final|data|open|internal|sealed|inline|suspend|override|operator|infix|enum|annotation|value|const|lateinit)\s+)*(?:class|interface|object|fun|val|var|typealias)\s+(?:<[^>]*>\s+)?(?:[\w<>?]+\.)?([A-Za-z_]\w*)`)
	swift  = lang(slashes, `^(?:(?:public|private|fileprivate|internal|open|final|static|indirect)\s+)*(?:class|struct|enum|protocol|extension|func|actor|typealias|let|var)\s+([A-Za-z_]\w*)`)
	cLike  = lang(slashes, `^(?:typedef\s+)?(?:struct|class|union|enum(?:\s+(?:class|struct))?|namespace)\s+(?:\w+\s+)??([A-Za-z_]\w*)\s*(?:final\s*)?(?:[:{]|$)`+
		`|^#\s*define\s+([A-Za-z_]\w*)\(`+
		`|^using\s+([A-Za-z_]\w*)\s*=`+
		`|^(?:[A-Za-z_][\w:<>,*&\s]*?[\s*&])(?:[\w<>]+::)*(~?[A-Za-z_]\w*)\s*\([^;]*$`)
	ruby  = lang("#", `^(?:def\s+(?:self\.)?|class\s+|module\s+)([A-Za-z_]\w*)`)
	php   = lang(slashes+" #", `^(?:(?:abstract|final|readonly)\s+)*(?:function\s+&?|class\s+|interface\s+|trait\s+|enum\s+)([A-Za-z_]\w*)`)
	shell = lang("#", `^(?:function\s+([A-Za-z_][\w-]*)|([A-Za-z_][\w-]*)\s*\(\)\s*\{?)`)
	lua   = lang("--", `^(?:local\s+)?function\s+(?:\w+[.:])*([A-Za-z_]\w*)`)
	scala = lang(slashes, `^(?:(?:abstract|final|sealed|implicit|lazy|case|private|protected|override|inline)\s+)*(?:class|object|trait|def|val|enum|type)\s+([A-Za-z_]\w*)`)
)

var languages = map[string]*syntax{
	".go": goLang, ".py": python, ".pyi": python,
	".js": script, ".jsx": script, ".mjs": script, ".cjs": script, ".ts": script, ".tsx": script, ".mts": script,
	".rs": rust, ".java": java, ".cs": java, ".kt": kotlin, ".kts": kotlin, ".swift": swift, ".scala": scala,
	".c": cLike, ".h": cLike, ".cc": cLike, ".cpp": cLike, ".cxx": cLike, ".hpp": cLike, ".hh": cLike,
	".rb": ruby, ".php": php, ".sh": shell, ".bash": shell, ".lua": lua,
}

// notNames are keywords that a pattern may match as the name of a C function.
var notNames = []string{"if", "for", "while", "switch", "return", "else", "do", "sizeof", "defined", "catch"}

// parseSource finds the top-level declarations. Each is a section at level 1,
// including its comment and attributes; the text before the first (licence,
// imports) is the preamble.
func parseSource(name string, src []byte, body int) outline {
	l := languages[strings.ToLower(path.Ext(name))]
	if l == goLang {
		return parseGo(src, body)
	}
	var out outline
	re, lead := l.re(), strings.Fields(l.lead)
	lines := splitLines(src, body)
	floor := 0 // the first line that may belong to the next declaration
	for i, ln := range lines {
		line := ln.of(src)
		if len(line) == 0 || len(line) > maxTag || line[0] == ' ' || line[0] == '\t' || line[0] == '}' {
			continue
		}
		m := re.FindSubmatchIndex(line)
		if m == nil {
			continue
		}
		id := ""
		for g := 2; g+1 < len(m) && id == ""; g += 2 {
			if m[g] >= 0 {
				id = string(line[m[g]:m[g+1]])
			}
		}
		if id == "" || slices.Contains(notNames, id) {
			continue
		}
		first := i
		for first > floor && hasLead(lines[first-1].of(src), lead) {
			first--
		}
		floor = i + 1
		id = id[:runeStart(id, MaxHeading)]
		if !out.head(heading{level: 1, text: id, id: id, start: lines[first].start}) {
			break
		}
	}
	return out
}

func hasLead(line []byte, lead []string) bool {
	line = bytes.TrimLeft(line, " \t")
	for _, p := range lead {
		if bytes.HasPrefix(line, []byte(p)) {
			return true
		}
	}
	return false
}

// maxGo is how many bytes of a Go file are parsed: its tree takes some fifty times as
// much. Longer files are generated.
const maxGo = 1 << 20

// parseGo finds the declarations of a Go file, as far as it parses. A method has the
// heading Type.Name and its name as the anchor. A group of constants, variables or
// types is one section named after its first; the other names are aliases.
func parseGo(src []byte, body int) outline {
	var out outline
	fset := token.NewFileSet()
	if len(src)-body > maxGo {
		src, out.cut = src[:body+maxGo], true
	}
	file, _ := parser.ParseFile(fset, "", src[body:], parser.ParseComments|parser.SkipObjectResolution)
	if file == nil {
		return out // unreachable: the parser returns what it has of a source given as bytes
	}
	offset := func(p token.Pos) int {
		at := body + min(max(fset.PositionFor(p, false).Offset, 0), len(src)-body)
		return body + bytes.LastIndexByte(src[body:at], '\n') + 1
	}
	last := -1
	add := func(h heading, doc *ast.CommentGroup, pos token.Pos) bool {
		if doc != nil {
			pos = doc.Pos()
		}
		if !pos.IsValid() || h.id == "_" || h.id == "" {
			return false
		}
		h.level = 1
		if h.start = offset(pos); h.start <= last { // two on a line
			out.mark(mark{name: h.id, at: h.start})
			return false
		}
		last = h.start
		return out.head(h)
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			name := decl.Name.Name
			h := heading{text: name, id: name}
			if t := receiver(decl.Recv); t != "" {
				h.text = t + "." + name
			}
			if add(h, decl.Doc, decl.Pos()) && h.text != name {
				out.mark(mark{name: h.text, at: last})
			}
		case *ast.GenDecl:
			if decl.Tok == token.IMPORT {
				continue
			}
			names := declared(decl)
			if len(names) == 0 || !add(heading{text: names[0], id: names[0]}, decl.Doc, decl.Pos()) {
				continue
			}
			for _, n := range names[1:] {
				out.mark(mark{name: n, at: last})
			}
		}
	}
	return out
}

func receiver(recv *ast.FieldList) string {
	if recv == nil || len(recv.List) == 0 {
		return ""
	}
	t := recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.ParenExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

func declared(decl *ast.GenDecl) []string {
	var names []string
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			names = append(names, spec.Name.Name)
		case *ast.ValueSpec:
			for _, n := range spec.Names {
				names = append(names, n.Name)
			}
		}
	}
	return slices.DeleteFunc(names, func(n string) bool { return n == "_" || n == "" })
}
