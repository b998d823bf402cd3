package retriever

import (
	"regexp"
	"strings"
)

// complaint matches the frame of a question that says what its asker did not
// manage: "why can't I", "can't", "I am unable to", with the pronouns and
// articles after it.
var complaint = regexp.MustCompile(`(?i)^(?:why\s+)?(?:(?:i|we)\s+)?` +
	`(?:can't|cant|cannot|can\s+not|couldn't|couldnt|could\s+not|(?:(?:i'm|we're|am|are)\s+(?:(?:i|we)\s+)?)?(?:unable|not\s+able)\s+to)` +
	`(?:\s+(?:i|we|you|my|our|your|the|an?|some|any))*\s+`)

// topic is what of a query is embedded: the query without the frame of a
// complaint. Pages say how a thing is done, not that it cannot be, and a
// sentence encoder takes the frame for a part of the meaning: without it the
// vector leg rises from .25 to .32 nDCG@10 on the 31 such questions of an
// evaluation set, hybrid search from .35 to .38 (benchmarks/quality.md). Other
// queries are embedded as they are, and the keyword leg is given all words. A
// frame with less than two words after it is kept.
func topic(query string) string {
	// Typographic apostrophes are as common as plain ones.
	plain := strings.ReplaceAll(query, "\u2019", "'")
	rest := plain[len(complaint.FindString(plain)):]
	if len(rest) == len(plain) || len(strings.Fields(rest)) < 2 {
		return query
	}
	return rest
}
