package catalog

import (
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"cairn/internal/text/fit"
	"cairn/internal/text/invisible"
)

// Flag is a sign that a tool's text addresses the model that reads it rather than the user.
// Kind is "instructions" or a kind of invisible.Find.
type Flag = invisible.Flag

// attacks lists phrasings of known attacks by tool descriptions: instructions to ignore
// other instructions or to hide something from the user, forged turns of a conversation,
// and names of files with secrets. The patterns match lower-case text without invisible
// characters and with single blanks. A pattern is tried only if the text has one of its
// words, because patterns are slow and most texts have no such word. Phrases such as "use
// this tool first" are not in the list, because many honest descriptions have them.
var attacks = []struct {
	words   []string
	pattern *regexp.Regexp
}{
	{[]string{"ignore", "disregard", "forget", "override", "bypass"},
		regexp.MustCompile(`(?:ignore|disregard|forget|override|bypass)(?: all| any| every| of| the| your| these| those| my)* (?:previous|prior|above|earlier|preceding|other|existing|safety|system) (?:instruction|prompt|rule|direction|command|guideline|message|tool)s?`)},
	{[]string{"the user", "the human", "the operator"},
		regexp.MustCompile(`(?:do not|don't|never|must not) (?:tell|inform|notify|alert|mention (?:this|it|that) to|reveal (?:this|it|that)? ?to|show (?:this|it|that) to|ask) the (?:user|human|operator)|` +
			`without (?:telling|informing|notifying|alerting|asking|the knowledge of) the (?:user|human|operator)|` +
			`(?:hide|conceal|keep) (?:this|it|that)(?: step| secret| hidden)? from the (?:user|human|operator)`)},
	{[]string{"<", "[inst]", "[/inst]"},
		regexp.MustCompile(`<\|?(?:im_start|im_end|system|endoftext)\|?>|\[/?inst\]|<</?sys>>|</?(?:system|important|secret|instructions?|hidden)>`)},
	{[]string{"instruction"}, regexp.MustCompile(`(?:new|updated|real|actual|secret) (?:system )?instructions? ?:`)},
	{[]string{"you are now"}, regexp.MustCompile(`you are now (?:a|an|in|the|dan)\b`)},
	{[]string{"system prompt"}, regexp.MustCompile(`(?:reveal|print|repeat|output|leak|send)(?: me| us)?(?: the| your| its)?(?: full| entire| hidden)? system prompt`)},
	{[]string{"conversation", "chat history", "key", "credentials", "password", "secret", "environment variables"},
		regexp.MustCompile(`(?:send|forward|post|upload|exfiltrate|leak|pass)(?: all| the| your| its| their| any| full| entire| whole)* (?:conversation|chat history|api keys?|private keys?|credentials|passwords?|secrets|environment variables)`)},
	{[]string{"~/.", "id_rsa", "id_ed25519", ".aws/", "/etc/"},
		regexp.MustCompile(`~/\.(?:ssh|cursor|claude|config)\b|\bid_rsa\b|\bid_ed25519\b|\.aws/credentials|/etc/(?:passwd|shadow)\b`)},
}

// Scan returns the signs of hostile text, each kind once, sorted by Kind.
func Scan(text string) []Flag {
	var flags []Flag
	visible := strings.Map(func(r rune) rune {
		if invisible.Kind(r) != "" {
			return -1
		}
		return r
	}, text)
	if len(visible) != len(text) {
		flags = invisible.Find(text)
	}
	lower := strings.ToLower(oneLine(norm.NFKC.String(visible))) // NFKC replaces full-width letters
	at := attack(lower)
	if at == "" && strings.ContainsAny(lower, disguises) {
		at = attack(undisguised.Replace(lower))
	}
	if at != "" {
		flags = append(flags, Flag{Kind: "instructions", Evidence: shorten(at)})
	}
	slices.SortFunc(flags, func(a, b Flag) int { return strings.Compare(a.Kind, b.Kind) })
	return flags
}

// disguises lists digits and signs that replace letters, as in "1gn0r3".
const disguises = "013457@$"

var undisguised = strings.NewReplacer("0", "o", "1", "i", "3", "e", "4", "a", "5", "s", "7", "t", "@", "a", "$", "s")

// attack returns the text that matches the first pattern of attacks, "" if none matches.
func attack(text string) string {
	for _, a := range attacks {
		if !slices.ContainsFunc(a.words, func(w string) bool { return strings.Contains(text, w) }) {
			continue
		}
		if at := a.pattern.FindString(text); at != "" {
			return at
		}
	}
	return ""
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func shorten(s string) string { return fit.Cut(oneLine(clean(s, MaxName)), 80) }
