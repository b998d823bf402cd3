package toolsearch

import (
	"slices"
	"strings"
)

// contentWords begin the content of what a part of an intent makes, writes or sends, as in
// "open an issue about the login page" and "tell the team that the build is red".
var contentWords = []string{"about", "that", "saying", "asking", "reading", "called", "named", "titled", "entitled", "regarding", "because"}

// requestOf returns Part.Request of a text.
func requestOf(part string) string {
	text, from := "", 0
	for _, l := range Literals(part) {
		switch l.Kind {
		case Date, Code, Number, Phrase:
			continue
		case List, Quoted:
			text += part[from:l.from]
		default:
			text += part[from:l.from] + string(l.Kind)
		}
		from = l.to
	}
	text += part[from:]
	var words []string
	for _, f := range fields(text) {
		if long, ok := abbreviated[bare(f.text)]; ok && bare(f.text) != "pull" {
			words = append(words, long...)
		} else {
			words = append(words, f.text)
		}
	}
	if len(words) == 0 {
		return part
	}
	if RequestedActions(strings.Join(words, " "))&(Making|Writing|Sending) != 0 {
		content := func(w string) bool { return slices.Contains(contentWords, bare(w)) }
		if i := slices.IndexFunc(words[1:], content); i >= 0 {
			words = words[:i+1]
		}
	}
	return strings.Join(words, " ")
}
