package convert

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// pdfFont decodes the strings of one font.
type pdfFont struct {
	wide     bool             // codes have two bytes, as only those of composite fonts do
	unicode  map[int]string   // by code, from the font's ToUnicode map
	names    map[int]string   // by code, from the glyph names
	encoding *charmap.Charmap // of one-byte codes
	utf16    bool             // codes are UTF-16
	widths   map[int]float64  // by code, in thousandths of the font size
	width    float64          // of codes that widths does not contain
	symbols  bool             // a TeX symbol font
}

// standardWidths are the widths of the ASCII characters in the standard fonts, from
// Adobe's font metrics. PDF files may omit them.
var standardWidths = map[string]string{
	"Times": "250 333 408 500 500 833 778 333 333 333 500 564 250 333 250 278 500 500 500 500 500 500 500 500 500 500 278 278 564 564 564 444 921 " +
		"722 667 667 722 611 556 722 722 333 389 722 611 889 722 722 556 722 667 556 611 722 722 944 722 722 611 333 278 333 469 500 333 " +
		"444 500 444 500 444 333 500 500 278 278 500 278 778 500 500 500 500 333 389 278 500 500 722 500 500 444 480 200 480 541",
	"Helvetica": "278 278 355 556 556 889 667 222 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 556 556 278 278 584 584 584 556 1015 " +
		"667 667 722 722 667 611 778 722 278 500 667 556 833 722 778 667 778 722 667 611 722 667 944 667 667 611 278 278 278 469 556 222 " +
		"556 556 500 556 556 278 556 556 222 222 500 222 833 556 556 556 556 333 500 278 556 500 722 500 500 500 334 260 334 584",
}

// maxCodes is the maximum number of codes of a font.
const maxCodes = 1 << 16

// font reads a font dictionary.
func (f *pdfFile) font(d dict) *pdfFont {
	f.w.spend(20_000) // the standard widths
	t := &pdfFont{unicode: map[int]string{}, names: map[int]string{}, widths: map[int]float64{}, encoding: charmap.Windows1252, width: 500}
	encoding := f.resolve(d["Encoding"])
	if as[name](f, d["Subtype"]) == "Type0" {
		t.wide, t.width = true, 1000
		if e, _ := encoding.(name); strings.Contains(string(e), "UCS2") || strings.Contains(string(e), "UTF16") {
			t.utf16 = true
		}
		if below := as[array](f, d["DescendantFonts"]); len(below) > 0 {
			f.wideWidths(t, f.dict(below[0]))
		}
	} else {
		f.widths(t, d)
	}
	base, _ := encoding.(name)
	if e, ok := encoding.(dict); ok {
		base = as[name](f, e["BaseEncoding"])
		code := 0
		for _, v := range as[array](f, e["Differences"]) {
			f.w.step()
			switch v := f.resolve(v).(type) {
			case float64:
				code = int(v)
			case name:
				if text := glyphText(string(v)); text != "" && code >= 0 && code < 256 {
					t.names[code] = text
				}
				code++
			}
		}
	}
	if base == "MacRomanEncoding" {
		t.encoding = charmap.Macintosh
	}
	if s, ok := f.resolve(d["ToUnicode"]).(*stream); ok {
		f.readCMap(t, f.decode(s))
	}
	return t
}

// widths reads the widths of a font whose codes have one byte.
func (f *pdfFile) widths(t *pdfFont, d dict) {
	base := string(as[name](f, d["BaseFont"]))
	t.symbols = strings.Contains(base, "CMSY")
	if strings.Contains(base, "Courier") {
		t.width = 600
	}
	for family, widths := range standardWidths {
		if strings.HasPrefix(base, family) {
			for i, w := range strings.Fields(widths) {
				t.widths[' '+i], _ = strconv.ParseFloat(w, 64)
			}
		}
	}
	first := int(as[float64](f, d["FirstChar"]))
	for i, w := range as[array](f, d["Widths"]) {
		if i >= 256 {
			break
		}
		t.widths[first+i] = as[float64](f, w)
	}
}

// wideWidths reads the widths of a font whose codes have two bytes: "c [w w]" and
// "first last w".
func (f *pdfFile) wideWidths(t *pdfFont, d dict) {
	if w, ok := f.resolve(d["DW"]).(float64); ok {
		t.width = w
	}
	w := as[array](f, d["W"])
	for i := 0; i+1 < len(w); {
		first := int(as[float64](f, w[i]))
		if list, ok := f.resolve(w[i+1]).(array); ok {
			for k, v := range list[:min(len(list), maxCodes)] {
				f.w.spend(100)
				t.widths[first+k] = as[float64](f, v)
			}
			i += 2
			continue
		}
		if i+2 >= len(w) {
			break
		}
		for c := max(first, 0); c <= int(as[float64](f, w[i+1])) && c < maxCodes; c++ {
			f.w.spend(100)
			t.widths[c] = as[float64](f, w[i+2])
		}
		i += 3
	}
}

// readCMap reads the mapping from codes to text in a CMap.
func (f *pdfFile) readCMap(t *pdfFont, data []byte) {
	p := objectParser{w: f.w, b: data}
	var stack []any
	for len(t.unicode) < maxCodes {
		v := p.next()
		k, ok := v.(keyword)
		switch {
		case !ok:
			if stack = append(stack, v); len(stack) > maxCodes {
				return
			}
			continue
		case k == end:
			return
		case k == "endcodespacerange" && t.wide:
			for _, v := range stack {
				if s, ok := v.(string); ok {
					t.wide = len(s) == 2
				}
			}
		case k == "endbfchar":
			for i := 0; i+1 < len(stack); i += 2 {
				if text, ok := stack[i+1].(string); ok {
					t.unicode[codeOf(stack[i])] = utf16Text(text)
				}
			}
		case k == "endbfrange":
			for i := 0; i+2 < len(stack); i += 3 {
				f.mapRange(t, codeOf(stack[i]), codeOf(stack[i+1]), stack[i+2])
			}
		}
		stack = stack[:0]
	}
}

// mapRange maps the codes from first to last to consecutive texts that begin with to.
func (f *pdfFile) mapRange(t *pdfFont, first, last int, to any) {
	switch to := to.(type) {
	case array:
		for i, v := range to {
			if s, ok := v.(string); ok && first+i <= last {
				t.unicode[first+i] = utf16Text(s)
			}
		}
	case string:
		runes := []rune(utf16Text(to))
		if len(runes) == 0 || first < 0 {
			return
		}
		for c := first; c <= last && c < maxCodes; c++ {
			f.w.spend(100)
			t.unicode[c] = string(runes)
			runes[len(runes)-1]++
		}
	}
}

// codeOf returns the number of a code of one or two bytes, -1 for any other value.
func codeOf(v any) int {
	switch s, _ := v.(string); len(s) {
	case 1:
		return int(s[0])
	case 2:
		return int(s[0])<<8 | int(s[1])
	}
	return -1
}

// maxMapped is the most bytes of text for a code, as the specification of CMaps has it.
const maxMapped = 512

func utf16Text(s string) string {
	s = s[:min(len(s), maxMapped)]
	units := make([]uint16, 0, len(s)/2)
	for i := 0; i+1 < len(s); i += 2 {
		units = append(units, uint16(s[i])<<8|uint16(s[i+1]))
	}
	return string(utf16.Decode(units))
}

// each calls do with the text and the width of each code of a string. blank is true for
// the one-byte code 32, to which word spacing applies.
func (t *pdfFont) each(s string, do func(text string, width float64, blank bool)) {
	step := 1
	if t.wide {
		step = 2
	}
	for i := 0; i+step <= len(s); i += step {
		code := int(s[i])
		if t.wide {
			code = code<<8 | int(s[i+1])
		}
		width, ok := t.widths[code]
		if !ok {
			width = t.width
		}
		do(t.text(code), width, !t.wide && code == ' ')
	}
}

func (t *pdfFont) text(code int) string {
	if text, ok := t.unicode[code]; ok {
		return text
	}
	if t.utf16 {
		return string(rune(code))
	}
	if t.wide {
		return ""
	}
	if text, ok := t.names[code]; ok {
		return text
	}
	if t.symbols {
		return texSymbols[code]
	}
	if code < ' ' {
		return texLigatures[code]
	}
	return string(t.encoding.DecodeByte(byte(code)))
}

// texLigatures and texSymbols are characters of TeX fonts without an encoding, by code.
var (
	texLigatures = map[int]string{11: "ff", 12: "fi", 13: "fl", 14: "ffi", 15: "ffl"}
	texSymbols   = map[int]string{0: "−", 15: "•"}
)

// glyphs maps glyph names to text. It contains the names of ASCII, Latin-1 and common
// punctuation from the Adobe Glyph List.
var glyphs = func() map[string]string {
	m := map[string]string{}
	for _, block := range []struct {
		first rune
		names string
	}{
		{' ', "space exclam quotedbl numbersign dollar percent ampersand quotesingle parenleft parenright asterisk plus comma hyphen period slash zero one two three four five six seven eight nine colon semicolon less equal greater question at"},
		{'[', "bracketleft backslash bracketright asciicircum underscore grave"},
		{'{', "braceleft bar braceright asciitilde"},
		{0xa1, "exclamdown cent sterling currency yen brokenbar section dieresis copyright ordfeminine guillemotleft logicalnot softhyphen registered macron degree plusminus twosuperior threesuperior acute mu paragraph periodcentered cedilla onesuperior ordmasculine guillemotright onequarter onehalf threequarters questiondown Agrave Aacute Acircumflex Atilde Adieresis Aring AE Ccedilla Egrave Eacute Ecircumflex Edieresis Igrave Iacute Icircumflex Idieresis Eth Ntilde Ograve Oacute Ocircumflex Otilde Odieresis multiply Oslash Ugrave Uacute Ucircumflex Udieresis Yacute Thorn germandbls agrave aacute acircumflex atilde adieresis aring ae ccedilla egrave eacute ecircumflex edieresis igrave iacute icircumflex idieresis eth ntilde ograve oacute ocircumflex otilde odieresis divide oslash ugrave uacute ucircumflex udieresis yacute thorn ydieresis"},
		{0x3b1, "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu1 nu xi omicron pi rho sigma1 sigma tau upsilon phi chi psi omega"},
	} {
		for i, n := range strings.Fields(block.names) {
			m[n] = string(block.first + rune(i))
		}
	}
	for n, text := range map[string]string{
		"quoteright": "’", "quoteleft": "‘", "quotedblleft": "“", "quotedblright": "”", "quotesinglbase": "‚", "quotedblbase": "„",
		"endash": "–", "emdash": "—", "bullet": "•", "ellipsis": "…", "dagger": "†", "daggerdbl": "‡", "trademark": "™", "Euro": "€",
		"fi": "fi", "fl": "fl", "ff": "ff", "ffi": "ffi", "ffl": "ffl", "minus": "−", "fraction": "/", "perthousand": "‰", "nbspace": " ",
		"guilsinglleft": "‹", "guilsinglright": "›", "dotlessi": "ı", "lslash": "ł", "Lslash": "Ł", "OE": "Œ", "oe": "œ", "scaron": "š",
		"Scaron": "Š", "zcaron": "ž", "Zcaron": "Ž", "ccaron": "č", "Ccaron": "Č", "rcaron": "ř", "ecaron": "ě", "arrowright": "→", "arrowleft": "←", "lessequal": "≤", "greaterequal": "≥",
		"notequal": "≠", "infinity": "∞", "summation": "∑", "integral": "∫", "partialdiff": "∂", "element": "∈", "asteriskmath": "*", "sfthyphen": "-",
		"angbracketleft": "⟨", "angbracketright": "⟩", "visiblespace": "␣", "checkmark": "✓", "lozenge": "◊", "circlecopyrt": "©",
	} {
		m[n] = text
	}
	return m
}()

// glyphText returns the text of a glyph by its name, "" for an unknown name.
func glyphText(glyph string) string {
	glyph, _, _ = strings.Cut(glyph, ".")
	if text, ok := glyphs[glyph]; ok {
		return text
	}
	if utf8.RuneCountInString(glyph) == 1 {
		return glyph
	}
	hex, ok := strings.CutPrefix(glyph, "uni")
	if ok {
		hex = hex[:min(len(hex), 4)]
	} else {
		hex, ok = strings.CutPrefix(glyph, "u")
	}
	if n, err := strconv.ParseUint(hex, 16, 32); ok && err == nil && len(hex) >= 4 && n <= unicode.MaxRune {
		return string(rune(n))
	}
	if first, rest, ok := strings.Cut(glyph, "_"); ok && len(glyph) < 20 && first != "" {
		return glyphText(first) + glyphText(rest)
	}
	return ""
}
