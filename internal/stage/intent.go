package stage

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Intent is the output of intent_analysis: by rules, or with By by a language model.
type Intent struct {
	// Category is one of eight: people, how_to, troubleshooting, comparison,
	// configuration, definition, status, general.
	Category string `json:"category"`
	// Complexity is very_low, low, medium, high or very_high.
	Complexity string `json:"complexity"`
	Words      int    `json:"words"`
	// Keywords are the distinct words that are not stop words, in order.
	Keywords []string `json:"keywords"`
	// Expansions are aliases of words in the query.
	Expansions []string `json:"expansions"`
	// SearchQuery is the query for embedding_lookup.
	SearchQuery string `json:"search_query"`
	By          string `json:"by,omitempty"`
}

// maxTerms bounds the keywords and the expansions of an Analyst.
const maxTerms = 8

// improve takes over what an Analyst has found, as far as it is valid.
func (in *Intent) improve(query string, found *Intent) {
	if slices.ContainsFunc(categories, func(c category) bool { return c.name == found.Category }) {
		in.Category = found.Category
	}
	terms := func(list []string) []string {
		kept := []string{}
		for _, t := range list[:min(len(list), maxTerms)] {
			if t = strings.Join(strings.Fields(clip(t, 60)), " "); t != "" && !strings.ContainsAny(t, `"-`) {
				kept = append(kept, t)
			}
		}
		return kept
	}
	if k := terms(found.Keywords); len(k) > 0 {
		in.Keywords = k
	}
	in.Expansions, in.By = terms(found.Expansions), clip(found.By, 100)
	in.SearchQuery = searchQuery(query, *in)
}

type category struct {
	name  string
	words []string
}

// categories are the categories in the order in which Analyze tries them.
var categories = []category{
	{"comparison", []string{"compare", "comparison", "difference", "differences", "differ", "versus", "vs", "better than", "instead of"}},
	{"troubleshooting", []string{"error", "errors", "fail", "fails", "failed", "failing", "broken", "fix", "crash", "crashes", "debug", "not working", "doesn't work", "stuck", "slow", "problem", "issue", "timeout"}},
	{"people", []string{"who", "whom", "whose", "team", "members", "owner", "contact", "on call", "responsible", "maintainer"}},
	{"how_to", []string{"how do", "how to", "how can", "steps", "guide", "tutorial", "install", "create", "set up", "deploy", "rotate", "restore", "upgrade"}},
	{"configuration", []string{"configure", "configuration", "config", "setting", "settings", "option", "parameter", "variable", "flag", "limit", "default"}},
	{"status", []string{"when", "status", "schedule", "date", "deadline", "latest", "current", "version", "today"}},
	{"definition", []string{"what is", "what are", "define", "definition", "meaning", "mean", "explain", "overview", "stand for"}},
}

// indicators are words of queries whose answers need several sections.
var indicators = []string{"compare", "difference", "versus", "vs", "why", "explain", "analyze", "analyse", "relationship", "impact", "between", "trade-off", "trade-offs", "tradeoff", "and", "all", "every", "multiple", "architecture", "strategy", "evaluate"}

// aliases are pairs of a short and a long name. Each expands to the other.
var aliases = [][2]string{
	{"sre", "site reliability engineering"}, {"k8s", "kubernetes"}, {"db", "database"}, {"auth", "authentication"}, {"config", "configuration"},
	{"env", "environment"}, {"repo", "repository"}, {"ci", "continuous integration"}, {"api", "interface"}, {"ops", "operations"}, {"prod", "production"},
	{"vm", "virtual machine"}, {"docs", "documentation"}, {"admin", "administrator"}, {"perf", "performance"}, {"tls", "certificate"}, {"2fa", "two-factor authentication"},
}

// stop is the list of stop words.
var stop = strings.Fields("a an the and or of to in on at by for from with is are was were be been do does did can could should would will shall may might i me my we our you your he she it its they them their this that these those what which who whom whose when where why how there here not no if then than as about into over")

// maxExpanded is the maximum length of an expanded query in runes.
const maxExpanded = 200

// Analyze returns the intent of a query.
func Analyze(query string) Intent {
	words := strings.FieldsFunc(strings.ToLower(query), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_'./", r)
	})
	for i, w := range words {
		words[i] = strings.Trim(w, "-_'./")
	}
	words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
	spaced := " " + strings.Join(words, " ") + " "
	has := func(phrase string) bool { return strings.Contains(spaced, " "+phrase+" ") }
	in := Intent{Category: "general", Words: len(words), Keywords: []string{}, Expansions: []string{}}
	for _, c := range categories {
		if slices.ContainsFunc(c.words, has) {
			in.Category = c.name
			break
		}
	}
	marks := 0
	for _, w := range indicators {
		if has(w) {
			marks++
		}
	}
	in.Complexity = complexity(len(words), marks)
	for _, w := range words {
		if !slices.Contains(stop, w) && !slices.Contains(in.Keywords, w) && len(in.Keywords) < 32 {
			in.Keywords = append(in.Keywords, w)
		}
	}
	for _, a := range aliases {
		switch short, long := has(a[0]), has(a[1]); {
		case short && !long:
			in.Expansions = append(in.Expansions, a[1])
		case long && !short:
			in.Expansions = append(in.Expansions, a[0])
		}
	}
	in.SearchQuery = searchQuery(query, in)
	return in
}

// complexity returns the complexity of a query for its numbers of words and indicators, by
// the table of the specification.
func complexity(words, marks int) string {
	switch {
	case words < 5:
		return "very_low"
	case words < 10 && marks == 0:
		return "low"
	case words < 20 && marks <= 1:
		return "medium"
	case words < 40 || marks <= 2:
		return "high"
	}
	return "very_high"
}

// searchQuery returns the query with as many expansions as fit into maxExpanded.
func searchQuery(query string, in Intent) string {
	text := strings.Join(strings.Fields(query), " ")
	if utf8.RuneCountInString(text) > maxExpanded {
		return strings.TrimSpace(query)
	}
	for _, w := range in.Expansions {
		if longer := text + " " + w; utf8.RuneCountInString(longer) <= maxExpanded {
			text = longer
		}
	}
	return text
}
