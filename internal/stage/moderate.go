package stage

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"cairn/internal/stage/support"
)

// Draft is an answer with its citations, as the executor submits it.
type Draft struct {
	Answer string `json:"answer"`
	// Citations are ids of hits ("doc:path#anchor"), or URLs that web_search found.
	Citations []string `json:"citations"`
	// NotFound states that the passages do not contain the answer. Such a draft needs no
	// citation.
	NotFound bool `json:"not_found,omitempty"`
}

// Verdict is the result of moderation.
type Verdict struct {
	// Confidence is 1 less .3 for profanity, .4 for spam, .2 for many URLs, .5
	// for toxicity and .2 for low quality, at least 0.
	Confidence float64 `json:"confidence"`
	Approved   bool    `json:"approved"` // not blocked, and Confidence at least .7
	Blocked    bool    `json:"blocked"`
	// Flags are the codes of the problems found. Problems are their descriptions for the
	// next attempt.
	Flags    []string `json:"flags"`
	Problems []string `json:"problems"`
	Spam     float64  `json:"spam_score"`
	Toxicity float64  `json:"toxicity_score"`
	Quality  float64  `json:"quality_score"`
	// Support is the comparison of the answer with its sources, nil without citations.
	Support *support.Report `json:"support,omitempty"`
}

// The limits of a draft. A score beyond its limit lowers the confidence.
const (
	spamLimit     = .8 // maximum
	toxicLimit    = .7 // maximum
	qualityLimit  = .5 // minimum
	urlLimit      = 5  // maximum
	maxCitations  = 50
	maxAnswerText = 64 << 10 // bytes
)

// Moderate checks a draft by rules. allowed are the ids that it may cite.
func Moderate(d Draft, allowed []string) Verdict {
	v := Verdict{Confidence: 1, Flags: []string{}, Problems: []string{}}
	words := wordsOf(d.Answer)
	v.Spam, v.Toxicity, v.Quality = spam(d.Answer, words), toxicity(d.Answer, words), quality(d.Answer, words)
	against := func(flag string, weight float64, problem string) {
		v.Flags, v.Problems = append(v.Flags, flag), append(v.Problems, problem)
		v.Confidence -= weight
	}
	block := func(flag, problem string) {
		against(flag, 0, problem)
		v.Blocked = true
	}
	if slices.ContainsFunc(words, func(w string) bool { return slices.Contains(profanities, w) }) {
		against("profanity", .3, "the answer has swear words")
	}
	if v.Spam > spamLimit {
		against("spam", .4, "the answer reads like spam")
	}
	if strings.Count(d.Answer, "://") > urlLimit {
		against("many_urls", .2, "the answer has many URLs")
	}
	if v.Toxicity > toxicLimit {
		against("toxicity", .5, "the answer is hostile")
		v.Blocked = true
	}
	if v.Quality < qualityLimit {
		against("low_quality", .2, "the answer says too little")
	}
	if strings.TrimSpace(d.Answer) == "" {
		block("empty", "there is no answer")
	}
	if len(allowed) > 0 && len(d.Citations) == 0 && !d.absent() {
		block("no_sources", "the answer cites no source; if the passages do not contain the answer, set not_found")
	}
	for _, c := range d.Citations {
		if !slices.Contains(allowed, citation(c)) {
			block("unknown_citation", "it cites "+clip(c, 200)+", which was not found; cite the ids of passages")
			break
		}
	}
	v.Confidence = math.Round(max(v.Confidence, 0)*1000) / 1000 // avoids .69999… for .7
	v.Approved = !v.Blocked && v.Confidence >= threshold
	return v
}

// citation converts an id into the form of hits.
func citation(c string) string {
	c = strings.TrimSpace(c)
	if strings.Contains(c, "://") || strings.HasPrefix(c, hitPrefix) {
		return c
	}
	return hitPrefix + c
}

// These lists are deliberately short. Rules cannot judge tone, and a false positive sends
// the task back to the executor.
var (
	profanities = strings.Fields("fuck fucking fucked shit shitty bullshit asshole bastard bitch cunt dickhead motherfucker wanker")
	insults     = strings.Fields("idiot idiots moron morons scum")
	belittling  = strings.Fields("stupid dumb loser losers worthless pathetic") // insults only of a person
	threats     = []string{"kill you", "kill yourself", "hurt you", "i hate you", "you should die", "shut up"}
	spamPhrases = []string{"click here", "buy now", "limited offer", "act now", "100% free", "free money", "earn money", "winner", "congratulations you", "risk free", "special promotion", "subscribe now", "viagra", "casino"}
	hedges      = []string{"maybe", "perhaps", "possibly", "might", "could be", "i think", "i believe", "not sure", "unclear", "probably", "seems", "appears", "likely", "unsure"}
)

func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' })
}

// spam returns a score in [0, 1] for phrases of advertisements, for capital letters and
// exclamation marks, and for repetition.
func spam(text string, words []string) float64 {
	score := min(.3*count(strings.ToLower(text), spamPhrases), .6)
	letters, upper := 0, 0
	for _, r := range text {
		if unicode.IsLetter(r) {
			letters++
			if unicode.IsUpper(r) {
				upper++
			}
		}
	}
	if letters >= 20 && float64(upper) > .6*float64(letters) {
		score += .25
	}
	if strings.Count(text, "!") >= 5 {
		score += .2
	}
	if len(words) >= 20 {
		distinct := map[string]bool{}
		for _, w := range words {
			distinct[w] = true
		}
		if float64(len(distinct)) < .2*float64(len(words)) {
			score += .85
		}
	}
	return min(score, 1)
}

// count returns the number of the phrases that a text contains.
func count(text string, phrases []string) (n float64) {
	for _, p := range phrases {
		if strings.Contains(text, p) {
			n++
		}
	}
	return n
}

// insultReach is how many words before an insult may name the reader.
const insultReach = 4

// toxicity returns a score in [0, 1]: .8 for each threat and insult, and .3 for a word that
// would be an insult of a person.
func toxicity(text string, words []string) float64 {
	score := .8 * count(strings.Join(strings.Fields(strings.ToLower(text)), " "), threats)
	for i, w := range words {
		before := words[max(0, i-insultReach):i]
		switch {
		case slices.Contains(insults, w), slices.Contains(belittling, w) && slices.ContainsFunc(before, func(b string) bool { return b == "you" || b == "your" || b == "you're" }):
			score += .8
		case slices.Contains(belittling, w):
			score += .3
		}
	}
	return min(score, 1)
}

// quality returns a score in [0, 1]. It is low for fewer than three words and for text with
// hardly any letters.
func quality(text string, words []string) float64 {
	score, letters, marks := 1.0, 0, 0
	for _, r := range text {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			letters++
		case !unicode.IsSpace(r):
			marks++
		}
	}
	// In scripts without spaces a text may consist of few long words.
	if len(words) < 3 && letters < 12 {
		score -= .6
	}
	if marks > letters {
		score -= .6
	}
	return max(score, 0)
}

// executorConfidence is .5 + min(.1·citations, .3) + .2·mean relevance −
// min(.05·hedge words, .2), within [0, 1]. relevances are the scores of the
// cited hits, in [0, 1].
func executorConfidence(d Draft, relevances []float64) float64 {
	mean := 0.0
	for _, r := range relevances {
		mean += r / float64(len(relevances))
	}
	// With two blanks between words, adjacent matches do not overlap.
	spaced, hedged := " "+strings.Join(wordsOf(d.Answer), "  ")+" ", 0
	for _, h := range hedges {
		hedged += strings.Count(spaced, " "+strings.ReplaceAll(h, " ", "  ")+" ")
	}
	c := .5 + min(.1*float64(len(d.Citations)), .3) + .2*mean - min(.05*float64(hedged), .2)
	return min(max(c, 0), 1)
}

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
