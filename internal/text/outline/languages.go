package outline

import (
	"bytes"
	"strings"
)

// language describes how to find the declarations of a language.
type language struct {
	read  func(o *outline)
	lexis *lexis // nil for languages without tokens
	// The other fields are for readBraces.
	keywords map[string]role
	// classify returns the declaration in the statement of the tokens [from, to). body
	// reports that an opening brace follows; otherwise the statement ends at to.
	classify  func(p *braces, from, to int, body bool) declaration
	directive func(p *braces, t *token)
	// named holds the symbol names of keywords that declare a symbol without a name.
	named map[string]string

	opaque         bool // function bodies contain no symbols
	once           bool // a statement that continues after a body declares nothing more
	opensTypes     bool // Java and C#
	operators      bool // an operator may be the name of a function
	receivers      bool // the name of a function is its last word before the parentheses
	dotted         bool // names may contain dots
	lists          bool // a statement may declare several variables
	valuesBodiless bool // a brace after a value is not its body
}

var languages = map[string]*language{
	".go": {read: readGo}, ".py": python, ".pyi": python,
	".js": javaScript, ".jsx": javaScript, ".mjs": javaScript, ".cjs": javaScript,
	".ts": typeScript, ".tsx": typeScript, ".mts": typeScript, ".cts": typeScript,
	".java": java, ".cs": cSharp, ".c": cLang, ".h": cPlus, ".cc": cPlus, ".cpp": cPlus, ".cxx": cPlus, ".hpp": cPlus, ".hh": cPlus, ".hxx": cPlus,
	".rs": rust, ".kt": kotlin, ".kts": kotlin, ".swift": swift, ".scala": scala, ".php": php,
	".rb": ruby, ".lua": lua, ".sh": shell, ".bash": shell, ".sql": sql,
	".proto": protobuf, ".tf": terraform, ".hcl": terraform, ".css": css, ".scss": css, ".less": css, ".vue": vue, ".svelte": vue,
	".r": rLang, ".zig": zig, ".ex": elixir, ".exs": elixir, ".hs": haskell, ".groovy": groovy, ".gradle": groovy,
	".mk": makefile, ".dockerfile": dockerfile,
}

var (
	slashes = []string{"//"}

	javaScript = &language{read: readBraces, classify: byAssignment, once: true, lists: true,
		lexis:    &lexis{comments: slashes, block: true, quotes: `"'`, long: "`", nest: "${", letters: "$", newlines: true, regexps: true},
		keywords: words("class", "", "const let var", "", "export default async static get set")}
	typeScript = &language{read: readBraces, classify: byAssignment, once: true, lists: true, lexis: javaScript.lexis,
		keywords: words("class interface enum type", "", "const let var", "namespace module",
			"export default async static get set declare abstract public private protected readonly override accessor")}
	java = &language{read: readBraces, classify: byShape, opaque: true, opensTypes: true, once: true,
		lexis:    &lexis{comments: slashes, block: true, quotes: `"'`, triple: true, letters: "$"},
		keywords: words("class interface enum record", "", "", "", "")}
	cSharp = &language{read: readBraces, classify: byShape, opaque: true, opensTypes: true, operators: true, once: true,
		lexis:    &lexis{comments: slashes, block: true, quotes: `"'`, triple: true, letters: "@", hash: true, special: verbatim},
		keywords: words("class interface enum record struct", "", "", "", "public private protected internal static override virtual abstract sealed async readonly partial extern unsafe")}
	cLang = &language{read: readBraces, classify: byShape, directive: macros, opaque: true,
		lexis:    &lexis{comments: slashes, block: true, quotes: `"'`, hash: true},
		keywords: words("struct union enum", "", "", "", "")}
	cPlus = &language{read: readBraces, classify: byShape, directive: macros, opaque: true, operators: true,
		lexis:    &lexis{comments: slashes, block: true, quotes: `"'`, hash: true, special: rawString},
		keywords: words("struct union enum class", "", "", "", "")}
	rust = &language{read: readBraces, classify: byKeyword, once: true,
		lexis: &lexis{comments: slashes, block: true, nested: true, long: `"`, special: rustLiteral},
		keywords: with(words("struct enum union trait type", "fn macro_rules", "const static", "mod",
			"pub default async unsafe extern mut auto safe"), "impl", anImplementation)}
	kotlin = &language{read: readBraces, classify: byKeyword, once: true, receivers: true,
		lexis: &lexis{comments: slashes, block: true, nested: true, quotes: `"'`, triple: true, nest: "${", newlines: true, special: quotedName},
		keywords: words("class interface object typealias", "fun constructor", "val var", "",
			"public protected private internal abstract final data open sealed inline suspend override operator infix enum annotation value lateinit tailrec external expect actual const inner noinline crossinline vararg companion"),
		named: map[string]string{"object": "Companion", "constructor": "constructor"}, valuesBodiless: true}
	swift = &language{read: readBraces, classify: byKeyword, once: true, operators: true, dotted: true,
		lexis: &lexis{comments: slashes, block: true, nested: true, quotes: `"`, triple: true, nest: `\(`, newlines: true, special: quotedName},
		keywords: words("class struct enum protocol extension actor typealias associatedtype", "func init deinit subscript macro", "let var", "",
			"public private fileprivate internal open final static indirect override mutating nonmutating convenience required lazy weak unowned dynamic optional prefix postfix infix async nonisolated package consuming borrowing isolated distributed"),
		named: map[string]string{"init": "init", "deinit": "deinit", "subscript": "subscript"}}
	scala = &language{read: readBraces, classify: byKeyword, once: true,
		lexis: &lexis{comments: slashes, block: true, nested: true, quotes: `"`, triple: true, newlines: true, special: quotedName},
		keywords: words("class object trait enum type", "def", "val", "",
			"abstract final sealed implicit lazy case private protected override inline open transparent opaque given")}
	php = &language{read: readBraces, classify: byKeyword, once: true,
		lexis:    &lexis{comments: []string{"//", "#"}, block: true, long: "\"'", letters: "$\\", special: phpText},
		keywords: words("class interface trait enum", "function", "const", "namespace", "abstract final readonly public protected private static var")}
)

func with(m map[string]role, w string, r role) map[string]role {
	m[w] = r
	return m
}

// rawString reads the raw strings of C++.
func rawString(x *lexer) (int, tokenKind, bool) {
	if x.src[x.i] != 'R' || !x.follows(`R"`) || x.afterLetter() {
		return 0, 0, false
	}
	rest := x.src[x.i+2:]
	n := bytes.IndexByte(rest[:min(len(rest), 18)], '(')
	if n < 0 {
		return 0, 0, false
	}
	return x.past(x.i+2, ")"+string(rest[:n])+`"`), literal, true
}

// past returns the end of the next closer at or after offset at, or that of the file.
func (x *lexer) past(at int, closer string) int {
	if n := bytes.Index(x.src[at:], []byte(closer)); n >= 0 {
		return at + n + len(closer)
	}
	return len(x.src)
}

// afterLetter reports whether x.i is inside a word.
func (x *lexer) afterLetter() bool { return x.i > 0 && x.isLetter(x.src[x.i-1]) }

// verbatim reads the verbatim strings of C#.
func verbatim(x *lexer) (int, tokenKind, bool) {
	for _, mark := range []string{`@"`, `$@"`, `@$"`} {
		if !x.follows(mark) {
			continue
		}
		end := x.past(x.i+len(mark), `"`)
		for end < len(x.src) && x.src[end] == '"' { // a doubled quote is one in the string
			end = x.past(end+1, `"`)
		}
		return end, literal, true
	}
	return 0, 0, false
}

// rustLiteral reads Rust's raw strings, characters and lifetimes.
func rustLiteral(x *lexer) (int, tokenKind, bool) {
	c := x.src[x.i]
	if c == '\'' {
		rest := x.src[x.i+1:]
		switch {
		case len(rest) > 1 && rest[0] == '\\':
			if n := bytes.IndexByte(rest[2:min(len(rest), 14)], '\''); n >= 0 {
				return x.i + 1 + 2 + n + 1, literal, true
			}
		default:
			if n := bytes.IndexByte(rest[:min(len(rest), 5)], '\''); n > 0 && len([]rune(string(rest[:n]))) == 1 {
				return x.i + n + 2, literal, true
			}
		}
		return x.i + 1, literal, true
	}
	if c != 'r' && c != 'b' || x.afterLetter() {
		return 0, 0, false
	}
	i := x.i + 1
	if c == 'b' && i < len(x.src) && x.src[i] == 'r' {
		i++
	} else if c == 'b' {
		return 0, 0, false
	}
	n := i
	for n < len(x.src) && x.src[n] == '#' && n-i < 100 {
		n++
	}
	if n >= len(x.src) || x.src[n] != '"' {
		return 0, 0, false
	}
	return x.past(n+1, `"`+strings.Repeat("#", n-i)), literal, true
}

// quotedName reads a name in backquotes.
func quotedName(x *lexer) (int, tokenKind, bool) {
	if x.src[x.i] != '`' {
		return 0, 0, false
	}
	if n := bytes.IndexAny(x.src[x.i+1:min(len(x.src), x.i+200)], "`\n"); n > 0 && x.src[x.i+1+n] == '`' {
		return x.i + n + 2, word, true
	}
	return 0, 0, false
}

// phpText skips text outside of PHP tags, and reads heredocs.
func phpText(x *lexer) (int, tokenKind, bool) {
	if x.i == 0 || x.follows("?>") {
		if n := bytes.Index(x.src[x.i:], []byte("<?")); n >= 0 {
			at := x.i + n + 2
			if bytes.HasPrefix(x.src[at:], []byte("php")) {
				at += 3
			}
			return at, newline, true
		}
		return len(x.src), newline, true
	}
	if x.follows("#[") { // an attribute, not a comment
		return x.i + 1, punct, true
	}
	if !x.follows("<<<") {
		return 0, 0, false
	}
	line := x.src[x.i+3 : LineEnd(x.src, x.i)]
	label := strings.Trim(string(line), " \t'\"")
	return hereEnd(x.src, LineEnd(x.src, x.i), label), literal, true
}

// hereEnd returns the end of the heredoc that begins after the line that ends at from.
func hereEnd(src []byte, from int, label string) int {
	for at := from + 1; at < len(src); {
		end := LineEnd(src, at)
		if rest, ok := bytes.CutPrefix(bytes.TrimLeft(src[at:end], " \t"), []byte(label)); ok && (len(rest) == 0 || !isWordByte(rest[0])) {
			return end - len(rest)
		}
		at = end + 1
	}
	return len(src)
}

func isWordByte(c byte) bool {
	return isLetter(c) || isDigit(c)
}
