package convert

import (
	"bytes"
	"io"
	"slices"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// checkTree panics if html.Parse would build a tree of more than maxTags elements and
// attributes. The parser repeats the formatting elements that are still open, such as <b>,
// in each block that follows: a page of 200 KB had a tree of 1 GB.
func checkTree(w *writer, data []byte) {
	r := &tagReader{data: data}
	z := html.NewTokenizer(r)
	var open []string // the tags of formatting elements
	for n := 0; ; {
		kind := z.Next()
		raw := z.Raw()
		r.start += len(raw)
		w.spend(100 + len(open))
		switch kind {
		case html.ErrorToken:
			return
		case html.StartTagToken, html.SelfClosingTagToken, html.EndTagToken:
			name, more := z.TagName()
			for ; more; n++ {
				_, _, more = z.TagAttr()
			}
			tag := atom.Lookup(name)
			switch {
			case !formatting[tag]:
				n += 1 + len(open)
			case kind == html.EndTagToken:
				open = closed(open, name)
			default:
				n++
				open = opened(open, name, string(raw))
			}
		}
		if n > maxTags {
			panic(errTags)
		}
	}
}

// opened adds the tag of a formatting element. The parser repeats at most three equal
// elements and one link, and does not nest more than 512 elements.
func opened(open []string, name []byte, tag string) []string {
	same := 0
	for _, other := range open {
		if other == tag {
			same++
		}
	}
	if string(name) == "a" {
		open = closed(open, name)
	}
	if same < 3 && len(open) < 512 {
		open = append(open, tag)
	}
	return open
}

// closed removes the last element with a name.
func closed(open []string, name []byte) []string {
	for i := len(open) - 1; i >= 0; i-- {
		if tag := open[i]; len(tag) > len(name)+1 && bytes.EqualFold([]byte(tag[1:1+len(name)]), name) && bytes.IndexByte([]byte(" \t\r\n\f/>"), tag[1+len(name)]) >= 0 {
			return slices.Delete(open, i, i+1)
		}
	}
	return open
}

var formatting = map[atom.Atom]bool{
	atom.A: true, atom.B: true, atom.Big: true, atom.Code: true, atom.Em: true, atom.Font: true, atom.I: true, atom.Nobr: true,
	atom.S: true, atom.Small: true, atom.Strike: true, atom.Strong: true, atom.Tt: true, atom.U: true,
}

// tagReader panics before the tokenizer reads a tag of more than maxTags/4 attributes,
// because it allocates them all. The caller sets start to the offset of the current token.
type tagReader struct {
	data         []byte
	start, given int
}

func (r *tagReader) Read(b []byte) (int, error) {
	if tag := r.data[r.start:r.given]; len(tag) > maxTags/4 && tag[0] == '<' {
		separators := 0
		for _, c := range tag {
			if isSpace(c) || c == '/' || c == '"' || c == '\'' {
				separators++
			}
		}
		if separators > maxTags/4 && (tag[1]|0x20 >= 'a' && tag[1]|0x20 <= 'z') {
			panic(errTags)
		}
	}
	n := copy(b, r.data[r.given:])
	if r.given += n; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// TagAnchors returns the anchors of the HTML tag at the start of text: its id and, for an
// <a>, its name. length is the length of the tag in bytes, 0 if there is none.
func TagAnchors(text []byte) (anchors []string, length int) {
	z := html.NewTokenizer(bytes.NewReader(text))
	switch z.Next() {
	case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken:
	default:
		return nil, 0
	}
	length = len(z.Raw())
	name, more := z.TagName()
	isLink := string(name) == "a"
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		if string(key) == "id" || isLink && string(key) == "name" {
			anchors = append(anchors, string(value))
		}
	}
	return anchors, length
}
