package stage

import (
	"math"
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
	if slices.ContainsFunc(words, func(w string) bool { return profanities[w] }) {
		against("profanity", .3, "the answer has swear words")
	}
	if v.Spam > spamLimit {
		against("spam", .4, "the answer reads like spam")
	}
	if urls(d.Answer) > urlLimit {
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
	profanities = set("fuck fucking fucked shit shitty bullshit asshole bastard bitch cunt dickhead motherfucker wanker")
	insults     = set("idiot idiots moron morons scum")
	belittling  = set("stupid dumb loser losers worthless pathetic") // insults only of a person
	threats     = []string{"kill you", "kill yourself", "hurt you", "i hate you", "you should die", "shut up"}
	spamPhrases = []string{"click here", "buy now", "limited offer", "act now", "100% free", "free money", "earn money", "winner", "congratulations you", "risk free", "special promotion", "subscribe now", "viagra", "casino"}
	hedges      = []string{"maybe", "perhaps", "possibly", "might", "could be", "i think", "i believe", "not sure", "unclear", "probably", "seems", "appears", "likely", "unsure"}
)

func set(list string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(list) {
		m[w] = true
	}
	return m
}

func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' })
}

// spam returns a score in [0, 1] for phrases of advertisements, for capital letters and
// exclamation marks, and for repetition.
func spam(text string, words []string) float64 {
	lower, score := strings.ToLower(text), 0.0
	found := 0
	for _, p := range spamPhrases {
		if strings.Contains(lower, p) {
			found++
		}
	}
	score += min(.3*float64(found), .6)
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

// insultReach is how many words before an insult may name the reader.
const insultReach = 4

// toxicity returns a score in [0, 1]: .8 for each threat and insult, and .3 for a word that
// would be an insult of a person.
func toxicity(text string, words []string) float64 {
	lower, score := strings.Join(strings.Fields(strings.ToLower(text)), " "), 0.0
	for _, t := range threats {
		if strings.Contains(lower, t) {
			score += .8
		}
	}
	for i, w := range words {
		before := words[max(0, i-insultReach):i]
		switch {
		case insults[w], belittling[w] && slices.ContainsFunc(before, func(b string) bool { return b == "you" || b == "your" || b == "you're" }):
			score += .8
		case belittling[w]:
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

func urls(text string) int { return strings.Count(text, "://") }

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
