package retriever

import (
	"path"
	"regexp"
	"strings"

	"cairn/internal/store"
)

// Weights of scores that follow from the kind of the question and of the file. A question
// in plain words is about what the manual says, unless it asks where; a description such as
// "parse a header" may be one of code.
const (
	questionWeight = 0.8  // of code in the answer to a plain question that finds documents too
	asideWeight    = 0.85 // of documents that aside reports
	cardWeight     = 0.7  // of cards, which repeat the words of a manual in their titles
)

var (
	plain      = regexp.MustCompile(`(?i)^(how|what|when|why|who|which|can|could|does?|is|are|may|should|must)\s`)
	identifies = regexp.MustCompile(`\p{Ll}\p{Lu}|[_(){}#]|::|\w\.\w`)
)

// isQuestion reports whether a query is a question in plain words, without a name of code.
func isQuestion(query string) bool { return plain.MatchString(query) && !identifies.MatchString(query) }

// asideNames are the names of folders and, without extension, of files that repeat the words
// of a manual: tests and their data, examples, lists of changes and tables of contents.
var asideNames = map[string]bool{
	"test": true, "tests": true, "testdata": true, "fixtures": true, "example": true, "examples": true, "samples": true,
	"changes": true, "changelog": true, "whatsnew": true, "contents": true, "toc": true, "genindex": true,
	"mkdocs": true, "_sidebar": true, "sidebars": true, "_toc": true, // of generators of manuals
}

// aside reports whether a document or one of its folders has one of asideNames or a name that
// begins with a date, as records have, and the query does not have the name. A card is
// aside unless the query is about cards or tasks.
func aside(file, query string) bool {
	if store.KindOf(file) == store.Cards {
		return !strings.Contains(query, "card") && !strings.Contains(query, "task")
	}
	name := strings.ToLower(strings.TrimSuffix(file, path.Ext(file)))
	for name != "" {
		var first string
		first, name, _ = strings.Cut(name, "/")
		dated := len(first) >= len("2006-01-02") && first[4] == '-' && first[7] == '-' && strings.Trim(first[:10], "0123456789-") == ""
		if (dated || asideNames[first]) && !strings.Contains(query, strings.TrimSuffix(first, "s")) {
			return true
		}
	}
	return false
}
