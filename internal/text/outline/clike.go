package outline

import "bytes"

// notFunctions are words before parentheses that are not function names.
var notFunctions = set("if for while switch return else do sizeof catch foreach using synchronized new " +
	"__attribute__ __attribute __declspec alignas decltype noexcept alignof throw throws requires defined explicit asm __asm__ typeof " +
	"this super static_assert assert default __except _Static_assert")

// notMethods are further such words of C#.
var notMethods = set("when base lock fixed checked unchecked delegate await yield")

// cHead describes a statement of C, C++, C# or Java up to its body. Integers are token
// indexes unless a comment says otherwise.
type cHead struct {
	start    int // the first token after annotations
	typeWord int // the keyword of a type, -1 for none
	space    int // namespace or extern "C", -1 for none
	name     int // the name before the parameters of a function, -1 for none
	params   int // the opening parenthesis of the parameters
	assigned bool
	members  bool // a colon follows the parameters
	typedef  bool
	using    int // the word after using, 0 for none
	delegate int // the first word delegate, -1 for none
	after    int // the number of words after the parameters
	arrow    int // the arrow of an expression body in C#, 0 for none
}

func (p *braces) cHead(from, to int) cHead {
	h := cHead{start: p.pastAnnotations(from, to), typeWord: -1, space: -1, name: -1, params: -1, delegate: -1}
	for i := h.start; i < min(to, h.start+maxStatement); i++ {
		t := p.tokens[i]
		switch {
		case t.kind == word:
			i = p.cWord(&h, i, to)
		case t.kind == arrow && p.text(i) == "=>" && h.arrow == 0:
			h.arrow = i
		case p.opens(i):
			if p.is(i, '(') && !h.members && !h.assigned && h.arrow == 0 {
				p.cParams(&h, i)
			}
			i = p.past(i) - 1
		case p.is(i, '='):
			h.assigned = true
			if h.typeWord >= 0 && h.name < 0 {
				return h
			}
		case p.is(i, ':'):
			if h.name >= 0 {
				h.members = true
			} else if h.typeWord >= 0 {
				return h
			}
		}
	}
	return h
}

// cWord reads the word at token i and returns the last token read.
func (p *braces) cWord(h *cHead, i, to int) int {
	switch text := p.text(i); text {
	case "template":
		if p.is(i+1, '<') {
			return p.pastAngles(i+1, to) - 1
		}
	case "typedef":
		h.typedef = true
	case "using":
		h.using = i + 1
	case "namespace":
		h.space = i
	case "extern":
		if i+1 < to && p.tokens[i+1].kind == literal {
			h.space = i
		}
	case "operator":
		if !p.lang.operators || h.name >= 0 {
			return i
		}
		j := i + 1
		for j < to && (!p.is(j, '(') || j == i+1) && j < i+maxAngles {
			j++
		}
		if p.is(j, '(') {
			h.name, h.params = i, j
			return p.past(j) - 1
		}
	default:
		if text == "delegate" && h.delegate < 0 {
			h.delegate = i
		}
		r := p.lang.keywords[text]
		if r == aType && h.name < 0 && (h.typeWord < 0 || p.lang.opensTypes && h.typeWord == i-1) { // record struct
			h.typeWord = i
		}
		if h.name >= 0 {
			h.after++
		}
	}
	return i
}

// cParams sets h.name and h.params if the parenthesis at token i opens the parameters of a
// function.
func (p *braces) cParams(h *cHead, i int) {
	n := i - 1
	if p.is(n, '>') {
		n = p.beforeAngles(n, h.start)
	}
	if n < h.start || !p.isWord(n) || n > h.start && p.tokens[n-1].kind == arrow || notFunctions[p.text(n)] || p.lang.opensTypes && p.lang.operators && notMethods[p.text(n)] || p.lang.keywords[p.text(n)] != 0 {
		return
	}
	// EXPORT(int) f(int x) and MAP(a) MAP(b) int f(int x) are functions f; void f(int) LOCKS(mu) is one too.
	if h.name < 0 || h.name == h.start || p.is(h.name-1, ')') && p.isWord(n-1) {
		h.name, h.params, h.after = n, i, 0
	}
}

// byShape classifies statements of C, C++, C# and Java, in which a function is a name
// before parentheses.
func byShape(p *braces, from, to int, body bool) declaration {
	for p.isWord(from) && p.is(from+1, ':') && from+1 < to { // public:
		from += 2
	}
	h := p.cHead(from, to)
	d := declaration{first: from, keyword: min(h.start, max(to-1, 0))}
	d.inner = block
	up := p.top().kind
	if !body {
		return p.cStatement(d, h, to)
	}
	modern := p.lang.opensTypes // Java and C#: the keyword decides
	switch {
	case p.top().constants: // a constant of an enum with a body
		d.inner = typ
	case h.typeWord >= 0 && (h.name < 0 || modern && h.typeWord < h.name) && !h.assigned:
		d.inner, d.goesOn = typ, !modern
		d.Kind, d.Name = p.text(h.typeWord), p.cTypeName(h.typeWord, to)
		d.constants = modern && d.Kind == "enum"
	case h.space >= 0 && h.name < 0:
		d.inner = file
		d.Kind = "namespace"
		for j := h.space + 1; j < to; j++ {
			if p.isWord(j) {
				d.Name = p.text(j)
			}
		}
	case h.name >= 0 && h.members && !modern && (p.isWord(to-1) && p.text(to-1) != "try" || p.is(to-1, '>')): // of a member in an initializer list
		d.inner, d.goesOn = nothing, true
	case h.name >= 0 && !h.assigned && h.arrow == 0 && (up == file || up == typ):
		if modern && (h.name == h.start && p.text(h.name) != p.enclosing()) {
			return d // a call
		}
		d.inner, d.Kind = fun, "function"
		p.cName(&d, h)
	case p.lang.opensTypes && p.lang.operators && up == typ && h.name < 0 && !h.assigned && h.arrow == 0 && p.isWord(to-1) && to-1 > h.start:
		d.inner, d.Kind, d.Name = nothing, "property", p.text(to-1)
	case modern && up == typ && p.is(to-1, ']') && h.arrow == 0: // this[int index]
		d.inner = nothing
	case p.is(to-1, '=') || p.is(to-1, ',') || p.is(to-1, '(') || p.is(to-1, ']') || p.text(to-1) == "return" || h.assigned || h.arrow > 0:
		d.inner, d.goesOn = nothing, true
	}
	return d
}

// enclosing returns the name of the type that contains the statement, "" for none.
func (p *braces) enclosing() string {
	if n := p.top().parent; n >= 0 {
		return p.symbols[n].Name
	}
	return ""
}

// cName sets the name, kind and scope of a function.
func (p *braces) cName(d *declaration, h cHead) {
	n := h.name
	d.Name = p.text(n)
	if d.Name == "operator" && p.lang.operators {
		op := p.src[p.tokens[n].end:p.tokens[h.params-1].end]
		if !p.isWord(n + 1) {
			op = bytes.ReplaceAll(op, []byte(" "), nil)
		}
		d.Name += string(op)
	}
	if p.is(n-1, '~') {
		d.Name = "~" + d.Name
		n--
	}
	if n-1 >= h.start && p.tokens[n-1].kind == scope {
		m := n - 2
		if p.is(m, '>') {
			m = p.beforeAngles(m, h.start)
		}
		if p.isWord(m) {
			d.Scope = p.text(m)
		}
	}
	if d.Kind != "prototype" && (d.Scope != "" || p.top().kind == typ) {
		d.Kind = "method"
	}
}

// cTypeName returns the name of the type that the keyword at token k declares.
func (p *braces) cTypeName(k, to int) string {
	if p.lang.opensTypes {
		return p.wordAt(k + 1)
	}
	name := ""
	for j := k + 1; j < to; j++ {
		switch {
		case p.is(j, ':'), p.is(j, '='), p.is(j, ';'), p.is(j, '<'):
			return name
		case p.is(j, '('), p.is(j, '['):
			j = p.past(j) - 1
		case p.isWord(j):
			if text := p.text(j); text == "final" && name != "" {
				return name
			} else if text != "class" && text != "struct" && text != "alignas" && text != "__attribute__" {
				name = text
			}
		}
	}
	return name
}

func (p *braces) wordAt(i int) string {
	if p.isWord(i) {
		return p.text(i)
	}
	return ""
}

// cStatement classifies a statement without a body.
func (p *braces) cStatement(d declaration, h cHead, to int) declaration {
	up := p.top().kind
	if p.lang.opensTypes {
		switch {
		case h.typeWord >= 0 && !h.assigned:
			d.Kind, d.Name = p.text(h.typeWord), p.cTypeName(h.typeWord, to)
		case 0 <= h.delegate && h.delegate < h.name:
			d.Kind, d.Name = "delegate", p.text(h.name)
		case h.name > h.start && h.typeWord < 0 && up == typ && (!h.assigned || h.arrow > 0):
			d.Kind = "method"
			d.until = h.arrow
			p.cName(&d, h)
		case h.arrow > h.start+1 && h.name < 0 && up == typ && p.isWord(h.arrow-1): // int Count => 1;
			d.Kind, d.Name, d.until = "property", p.text(h.arrow-1), h.arrow
		}
		return d
	}
	switch {
	case h.typedef:
		d.Kind, d.Name = "typedef", p.typedefName(h.start, to)
	case h.using > 0 && p.isWord(h.using) && h.assigned:
		d.Kind, d.Name = "using", p.text(h.using)
	case h.name >= 0 && h.after >= 2 && up == file && !h.assigned && to-h.start < maxStatement && p.isWord(p.past(h.params)) && !p.is(p.past(h.params)+1, '('):
		d.keepOpen = true // the declarations of the parameters follow
	case (h.name > h.start || h.name == h.start && p.text(h.name) == p.enclosing()) && (up == file || up == typ) && !p.is(p.past(h.params), '('):
		d.Kind = "prototype"
		p.cName(&d, h)
	}
	return d
}

// typedefName returns the name that a typedef declares.
func (p *braces) typedefName(from, to int) string {
	name := ""
	for j := from + 1; j < to; j++ {
		switch {
		case p.is(j, '('):
			if p.is(j+1, '*') || p.is(j+1, '^') || p.isWord(j+1) && p.is(j+2, '*') { // typedef int (*name)(int)
				for k := j + 1; k < p.past(j); k++ {
					if p.isWord(k) {
						name = p.text(k)
					}
				}
				return name
			}
			j = p.past(j) - 1
		case p.is(j, '{'), p.is(j, '['):
			j = p.past(j) - 1
		case p.is(j, '<'):
			j = p.pastAngles(j, to) - 1
		case p.is(j, ','):
			return name
		case p.isWord(j) && p.text(j) != "__attribute__":
			name = p.text(j)
		}
	}
	return name
}

// macros adds a symbol for a function-like macro.
func macros(p *braces, t *token) {
	text := p.src[t.start:t.end]
	m := macro().FindSubmatch(text)
	if m == nil || p.top().kind == nothing {
		return
	}
	rest := text[len(m[0])-len(m[1])-1:] // from the name on
	p.add(Symbol{Name: string(m[1]), Kind: "macro", Signature: "#define " + signature(rest[:LineEnd(rest, 0)]),
		Start: int(t.start), Decl: int(t.start), End: int(t.end), Parent: -1})
}

var macro = pattern(`^#[ \t]*define[ \t]+((?:\w|[^\x00-\x7f])+)\(`)
