package convert

import (
	"math"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/bidi"
	"golang.org/x/text/unicode/norm"
)

// pdfPage collects the lines of a page in the order in which it draws them.
type pdfPage struct {
	f     *pdfFile
	fonts map[ref]*pdfFont // by object number
	lines []pdfLine
	line  []byte
	y     float64 // of the current line
	x     float64 // the end of its text
	run   pdfRun  // the end of the line
	size  float64 // of its last text
	open  bool    // a line has begun
	last  float64 // y of the previous line
	forms int     // the number of forms drawn
}

// pdfRun is text of a line whose glyphs follow each other from left to right.
type pdfRun struct {
	begin       int     // its offset in the line
	left, glyph float64 // x of its first and of its last glyph
	rtl         int     // the number of letters of scripts that run to the left
}

// pdfLine is a line of text.
type pdfLine struct {
	text  string
	apart bool // the line begins a paragraph
}

// textState is the state of the text operators.
type textState struct {
	matrix, lineMatrix [6]float64
	page               [6]float64 // of the graphics state
	font               *pdfFont
	size, leading      float64
	charSpace          float64
	wordSpace          float64
	scale              float64
	rise               float64
}

var identity = [6]float64{1, 0, 0, 1, 0, 0}

func translation(x, y float64) [6]float64 { return [6]float64{1, 0, 0, 1, x, y} }

// times returns the matrix that applies a and then b.
func times(a, b [6]float64) [6]float64 {
	return [6]float64{
		a[0]*b[0] + a[1]*b[2], a[0]*b[1] + a[1]*b[3],
		a[2]*b[0] + a[3]*b[2], a[2]*b[1] + a[3]*b[3],
		a[4]*b[0] + a[5]*b[2] + b[4], a[4]*b[1] + a[5]*b[3] + b[5],
	}
}

// The bounds of a page.
const (
	maxForms    = 8       // nesting of forms
	maxDrawn    = 1000    // forms drawn
	maxOperands = 1 << 14 // operands of one operator
	maxStates   = 1 << 10 // saved states
)

// draw interprets a content stream.
func (p *pdfPage) draw(content []byte, resources dict, page [6]float64, forms int) {
	s := textState{matrix: identity, lineMatrix: identity, page: page, scale: 1}
	var saved []textState
	var args []any
	parser := objectParser{w: p.f.w, b: content}
	for {
		v := parser.next()
		op, ok := v.(keyword)
		if !ok {
			if len(args) < maxOperands {
				args = append(args, v)
			}
			continue
		}
		switch op {
		case end:
			return
		case "q":
			if len(saved) < maxStates {
				saved = append(saved, s)
			}
		case "Q":
			if n := len(saved); n > 0 {
				s, saved = saved[n-1], saved[:n-1]
			}
		case "cm":
			s.page = times(matrixOf(args), s.page)
		case "Tf":
			if len(args) == 2 {
				s.font = p.font(resources, args[0])
				s.size, _ = args[1].(float64)
			}
		case "Do":
			if len(args) == 1 && forms < maxForms {
				p.form(resources, args[0], s.page, forms)
			}
		case "BI":
			parser.skipImage()
		default:
			p.text(&s, op, args)
		}
		args = args[:0]
	}
}

// skipImage skips an inline image in a content stream.
func (p *objectParser) skipImage() {
	for i := p.i; i+3 < len(p.b); i++ {
		if isSpace(p.b[i]) && p.b[i+1] == 'E' && p.b[i+2] == 'I' && isSpace(p.b[i+3]) {
			p.i = i + 3
			return
		}
	}
	p.i = len(p.b)
}

func operand(args []any, i int) float64 {
	if i >= len(args) {
		return 0
	}
	n, _ := args[i].(float64)
	return n
}

func matrixOf(args []any) (m [6]float64) {
	if len(args) < 6 {
		return identity
	}
	for i := range m {
		m[i] = operand(args, i)
	}
	return m
}

// text interprets a text operator.
func (p *pdfPage) text(s *textState, op keyword, args []any) {
	move := func(x, y float64) {
		s.lineMatrix = times(translation(x, y), s.lineMatrix)
		s.matrix = s.lineMatrix
	}
	switch op {
	case "BT":
		s.matrix, s.lineMatrix = identity, identity
	case "Td":
		move(operand(args, 0), operand(args, 1))
	case "TD":
		s.leading = -operand(args, 1)
		move(operand(args, 0), operand(args, 1))
	case "Tm":
		s.matrix = matrixOf(args)
		s.lineMatrix = s.matrix
	case "T*":
		move(0, -s.leading)
	case "TL":
		s.leading = operand(args, 0)
	case "Tc":
		s.charSpace = operand(args, 0)
	case "Tw":
		s.wordSpace = operand(args, 0)
	case "Tz":
		s.scale = operand(args, 0) / 100
	case "Ts":
		s.rise = operand(args, 0)
	case "'", `"`:
		if op == `"` && len(args) == 3 {
			s.wordSpace, s.charSpace = operand(args, 0), operand(args, 1)
		}
		move(0, -s.leading)
		if len(args) > 0 {
			p.show(s, args[len(args)-1])
		}
	case "Tj":
		if len(args) > 0 {
			p.show(s, args[0])
		}
	case "TJ":
		if len(args) == 0 {
			return
		}
		list, _ := args[0].(array)
		for _, v := range list {
			if n, ok := v.(float64); ok {
				s.matrix = times(translation(-n/1000*s.size*s.scale, 0), s.matrix)
			} else {
				p.show(s, v)
			}
		}
	}
}

// font returns the font with the name key, nil if there is none.
func (p *pdfPage) font(resources dict, key any) *pdfFont {
	k, _ := key.(name)
	v := p.f.dict(resources["Font"])[k]
	d := p.f.dict(v)
	if d == nil {
		return nil
	}
	id, byRef := v.(ref)
	if t := p.fonts[id]; byRef && t != nil {
		return t
	}
	t := p.f.font(d)
	if byRef {
		p.fonts[id] = t
	}
	return t
}

// form draws a form: a content stream that pages can share.
func (p *pdfPage) form(resources dict, key any, page [6]float64, forms int) {
	k, _ := key.(name)
	s := as[*stream](p.f, p.f.dict(resources["XObject"])[k])
	if s == nil || as[name](p.f, s.dict["Subtype"]) != "Form" || p.forms >= maxDrawn {
		return
	}
	p.forms++
	p.f.w.spend(1000)
	if own := p.f.dict(s.dict["Resources"]); own != nil {
		resources = own
	}
	matrix := identity
	if m := as[array](p.f, s.dict["Matrix"]); len(m) == 6 {
		matrix = matrixOf(m)
	}
	p.draw(p.f.decode(s), resources, times(matrix, page), forms+1)
}

// show adds a string to the page.
func (p *pdfPage) show(s *textState, v any) {
	str, ok := v.(string)
	if !ok || s.font == nil {
		return
	}
	s.font.each(str, func(text string, width float64, blank bool) {
		p.f.w.spend(128)
		onPage := times(s.matrix, s.page)
		length := max(math.Hypot(onPage[0], onPage[1]), 1e-9)
		cos, sin := math.Round(onPage[0]/length), math.Round(onPage[1]/length)
		onPage = times(onPage, [6]float64{cos, -sin, sin, cos, 0, 0}) // lines run to the right
		at := times(translation(0, s.rise), onPage)
		size := math.Abs(s.size) * math.Hypot(at[2], at[3])
		advance := width/1000*s.size + s.charSpace
		if blank {
			advance += s.wordSpace
		}
		// The character spacing counts as a gap, because some files separate words by it.
		endAt := times(translation(width/1000*s.size*s.scale, 0), onPage)
		s.matrix = times(translation(advance*s.scale, 0), s.matrix)
		p.put(text, at[4], at[5], endAt[4], size)
	})
}

// wordGap is the gap between two words, as a share of the size of the font.
const wordGap = 0.15

// put adds the text of one code, drawn from x to right at height y.
func (p *pdfPage) put(text string, x, y, right, size float64) {
	first, _ := utf8.DecodeRuneInString(text)
	rtl := unicode.In(first, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana)
	if p.open && (math.Abs(y-p.y) > 0.5*max(size, p.size) || x < p.x-4*max(size, 1) && !(rtl && x < p.run.left)) {
		p.endLine()
	}
	if p.open && x < p.run.glyph-0.1*size { // the glyph is to the left of the last one
		p.endRun()
		if p.run.left-right > wordGap*size {
			p.blank()
		}
		p.run = pdfRun{begin: len(p.line), left: x}
	}
	if !p.open {
		p.open, p.y, p.run = true, y, pdfRun{left: x}
	} else if x-p.x > wordGap*size {
		p.blank()
	}
	p.x, p.run.glyph, p.size = right, x, size
	p.f.w.spend(8 * len(text))
	if rtl {
		p.run.rtl++
		text = bidi.ReverseString(norm.NFKC.String(text)) // endRun reverses it again
	}
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			p.blank()
		case r == utf8.RuneError || r < ' ' || r == 0xad || 0xe000 <= r && r <= 0xf8ff: // soft hyphen, private use
		case 0xfb00 <= r && r <= 0xfeff: // ligatures and other forms of letters
			p.line = norm.NFKC.AppendString(p.line, string(r))
		default:
			p.line = utf8.AppendRune(p.line, r)
		}
	}
}

func (p *pdfPage) blank() {
	if n := len(p.line); n > 0 && p.line[n-1] != ' ' {
		p.line = append(p.line, ' ')
	}
}

// In a text of letters that run to the left, words of other letters and numbers run to the
// right. A number after such a word belongs to it.
const rtl = `\p{Hebrew}\p{Arabic}\p{Syriac}\p{Thaana}`

var (
	toLeft  = regexp.MustCompile(`[` + rtl + `](?:[\P{L}` + rtl + `]*[` + rtl + `])?`)
	number  = `\p{Nd}+(?:[.,:/]\p{Nd}+)*`
	toRight = regexp.MustCompile(`(?:` + number + `[ -]?)?[^\P{L}` + rtl + `](?:[^` + rtl + `]*[^\P{L}` + rtl + `])?|` + number) // in reversed text
)

// endRun puts the last run into the order in which it is read. A page draws Hebrew and Arabic
// from the end of a line or a word, or each letter to the left of the one before: a run of one.
func (p *pdfPage) endRun() {
	if p.run.rtl == 0 {
		return
	}
	text := string(p.line[p.run.begin:])
	p.f.w.spend(200 * len(text))
	read := func(s string) string { return toRight.ReplaceAllStringFunc(bidi.ReverseString(s), bidi.ReverseString) }
	if 5*p.run.rtl < len(text) { // most of it runs to the right
		text = toLeft.ReplaceAllStringFunc(text, read)
	} else {
		text = read(text)
	}
	p.line = append(p.line[:p.run.begin], text...)
}

// maxJoined is the length in bytes of the longest line whose last word can be joined.
const maxJoined = 4000

// endLine ends the current line. It joins a hyphenated word with its rest on this line.
func (p *pdfPage) endLine() {
	p.endRun()
	text := strings.TrimSpace(string(p.line))
	p.line = p.line[:0]
	p.open = false
	if text == "" {
		return
	}
	gap := math.Abs(p.last - p.y)
	p.last = p.y
	if n := len(p.lines); n > 0 {
		before := p.lines[n-1].text
		stem, hyphen := strings.CutSuffix(before, "-")
		last, _ := utf8.DecodeLastRuneInString(stem)
		first, _ := utf8.DecodeRuneInString(text)
		if hyphen && len(stem) > 1 && len(stem) < maxJoined && unicode.IsLetter(last) && unicode.IsLetter(first) && unicode.IsUpper(last) == unicode.IsUpper(first) {
			p.f.w.spend(len(stem) / 4)
			word, rest, _ := strings.Cut(text, " ")
			p.lines[n-1].text = stem + word
			if text = rest; text == "" {
				return
			}
		}
	}
	p.lines = append(p.lines, pdfLine{text, len(p.lines) == 0 || gap > 1.7*p.size || gap == 0})
}
