package toolsearch

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// kindPattern is a value in an intent and the words for its kind.
type kindPattern struct {
	pattern *regexp.Regexp
	kind    string
}

// kindPatterns are compiled when first used, because that takes a millisecond.
var kindPatterns = sync.OnceValue(func() []kindPattern {
	return []kindPattern{
		{regexp.MustCompile("\"[^\"\n]{1,400}\"|“[^”\n]{1,400}”|`[^`\n]{1,400}`|(?:^|\\B)'[^'\n]{1,400}'(?:$|\\B)"), ""},
		{regexp.MustCompile(`\bhttps?://\S+`), "web page"},
		{regexp.MustCompile(`[\p{L}\d._%+-]+@[\p{L}\d-]+(?:\.[\p{L}\d-]+)+`), "email address"},
		{regexp.MustCompile(`(?:^|\B)#\p{L}[\w-]*`), "channel"},
		{regexp.MustCompile(`(?:^|\B)@\p{L}[\w.-]*`), "person"},
		{regexp.MustCompile(`(?:~|\.{1,2})?/[\w.@~-]+(?:/[\w.@~-]*)*|\b[\w-]+(?:/[\w.-]+)*\.(?:md|txt|json|ya?ml|toml|csv|pdf|docx?|xlsx?|pptx?|png|jpe?g|log|sql|db|go|py|js|ts)\b`), "file"},
	}
})

// contentWords begin the content of what a part of an intent makes, writes or sends, as in
// "open an issue about the login page" and "tell the team that the build is red".
var contentWords = []string{"about", "that", "saying", "asking", "reading", "called", "named", "titled", "entitled", "regarding", "because"}

// requestOf returns Part.Request of a text.
func requestOf(part string) string {
	text := part
	for _, k := range kindPatterns() {
		text = k.pattern.ReplaceAllString(text, k.kind)
	}
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
		for i, w := range words {
			if i > 0 && slices.Contains(contentWords, bare(w)) {
				words = words[:i]
				break
			}
		}
	}
	return strings.Join(words, " ")
}
