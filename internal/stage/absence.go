package stage

import (
	"regexp"
	"strings"
)

// absence matches a statement that the passages do not contain the answer. It matches only
// common English sentences. In other languages a draft must set NotFound.
var absence = regexp.MustCompile(`(?i)` + strings.Join([]string{
	`\b(?:is|are|was|were)(?: not|n['’]t) (?:\w+ly )?(?:here|there|found|stated|mentioned|covered|described|documented|explained|included|answered|specified|given|available|(?:in|part of) (?:the|these|this|any|your) (?:\w+ )?(?:documents?|docs|documentation|folder|passages?|sections?|texts?|sources?|files?|notes?|handbook))\b`,
	`\b(?:documents?|docs|documentation|folder|passages?|sections?|texts?|sources?|files?|notes?|handbook|they|it)\b[^.!?]{0,40}\b(?:do|does|did)(?: not|n['’]t) (?:\w+ly )?(?:say|state|mention|hold|contain|cover|describe|document|explain|include|answer|specify|have|give|provide|tell)\b`,
	`\b(?:there is|i found|i find|found|contains?|holds?|have|has|provides?) (?:no (?:\w+ ){0,2}(?:information|mention|answer|details?|passages?|sections?|documents?)|nothing (?:here|there|about|on))\b`,
	`^(?:no|nothing|none|neither)\b[^.!?]{0,80}\b(?:documents?|docs|documentation|folder|passages?|sections?|texts?|sources?|files?|notes?|handbook)\b`,
	`\b(?:can ?not|can['’]t|could not|couldn['’]t) (?:be )?(?:find|found|answer|answered|determined?)\b`,
	`\bnot found\b`,
}, `|`))

// maxAbsence is the maximum length in bytes of a statement of absence without NotFound. A
// longer answer contains further statements, which need sources.
const maxAbsence = 300

// absent reports whether a draft states that the passages do not contain the answer.
func (d *Draft) absent() bool {
	return d.NotFound || len(d.Citations) == 0 && len(d.Answer) <= maxAbsence && absence.MatchString(strings.TrimSpace(d.Answer))
}

// absenceText is the answer of a draft that sets NotFound without a text.
const absenceText = "It is not in these documents."
