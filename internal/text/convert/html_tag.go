package convert

import (
	"bytes"

	"golang.org/x/net/html"
)

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
