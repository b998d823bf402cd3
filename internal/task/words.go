package task

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// synonyms maps words for a status, in lower case with "_" for blanks and hyphens.
var synonyms = map[string]Status{
	"pending": Pending, "todo": Pending, "to_do": Pending, "open": Pending, "backlog": Pending, "new": Pending, "not_started": Pending, "planned": Pending,
	"waiting":     Waiting,
	"in_progress": InProgress, "active": InProgress, "doing": InProgress, "wip": InProgress, "started": InProgress, "ongoing": InProgress,
	"blocked":   Blocked,
	"completed": Completed, "complete": Completed, "done": Completed, "closed": Completed, "finished": Completed,
	"failed":    Failed,
	"cancelled": Cancelled, "canceled": Cancelled, "aborted": Cancelled,
	"archived": Archived,
}

// symbols maps symbols that denote a status without a word.
var symbols = map[string]Status{"✅": Completed, "✔": Completed, "☑": Completed, "❌": Failed, "🚫": Blocked, "🚧": InProgress, "🔄": InProgress}

// Parse parses a status in any vocabulary, ignoring case. It ignores markup and symbols
// around the word and a remark after it: "done ✅", "**In progress** (Ann)". An unknown word
// counts as Pending with known false. An empty word is Pending with known true.
func Parse(word string) (s Status, known bool) {
	word = strings.ToLower(strings.TrimSpace(word))
	if word == "" {
		return Pending, true
	}
	from := strings.IndexFunc(word, isLetter)
	if from < 0 {
		s, known = symbols[strings.Trim(word, " \ufe0f")]
		return s, known
	}
	word = word[from:]
	if end := strings.IndexFunc(word, func(r rune) bool { return !isLetter(r) && r != ' ' && r != '-' && r != '_' }); end >= 0 {
		word = word[:end]
	}
	word, _, _ = strings.Cut(word, " - ")
	s, known = synonyms[strings.NewReplacer(" ", "_", "-", "_").Replace(strings.Trim(word, " -_"))]
	return s, known
}

func isLetter(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// cardWords maps statuses to the vocabulary of cards. The default is todo.
var cardWords = map[Status]string{InProgress: "active", Completed: "done", Cancelled: "archived", Archived: "archived"}

// CardWord returns the status in the vocabulary of cards: todo, active, done or archived.
func (s Status) CardWord() string { return cmp.Or(cardWords[s], "todo") }

// GraphWord returns the status in the vocabulary of the graph tools: pending,
// assigned (pending with an assignee), in_progress, blocked, completed, failed or
// cancelled.
func (t Task) GraphWord() string {
	switch {
	case t.Done():
		return "completed"
	case t.Status == Archived:
		return "cancelled"
	case t.Status != Pending && t.Status != Waiting:
		return t.Status.String()
	case t.Assignee != "":
		return "assigned"
	}
	return "pending"
}

// The hours of work in a day and a week of an estimate.
const (
	hoursPerDay  = 8
	hoursPerWeek = 5 * hoursPerDay
)

// maxEstimate is the maximum estimate in hours, about fifty working years. It keeps sums
// finite.
const maxEstimate = 100_000

// quantity matches a number and its unit.
var quantity = regexp.MustCompile(`^([0-9.]+) *([mhdw]?) *`)

// ParseEstimate parses an estimate of work and returns it in hours. The text is a number of
// hours, or a sequence of numbers with the units m, h, d (8 hours) and w (5 days), such as
// "90m", "1.5h" or "1w 2d". An empty text gives 0, which means unknown.
func ParseEstimate(text string) (hours float64, err error) {
	for rest := strings.ToLower(strings.TrimSpace(text)); rest != ""; {
		m := quantity.FindStringSubmatch(rest)
		if m == nil {
			return 0, badEstimate(text)
		}
		rest = rest[len(m[0]):]
		v, err := strconv.ParseFloat(m[1], 64)
		switch m[2] {
		case "m":
			v /= 60
		case "d":
			v *= hoursPerDay
		case "w":
			v *= hoursPerWeek
		}
		if hours += v; err != nil || m[2] == "" && rest != "" || hours > maxEstimate {
			return 0, badEstimate(text)
		}
	}
	return hours, nil
}

func badEstimate(text string) error {
	return fmt.Errorf("estimate %q, want hours or a number with m, h, d or w such as \"2d\"", text)
}

// Slugs is a list of slugs. In JSON it is a string, an array of strings, or such an array
// encoded as a string.
type Slugs []string

// UnmarshalJSON implements json.Unmarshaler.
func (s *Slugs) UnmarshalJSON(text []byte) error {
	many := []string{}
	var one string
	if err := json.Unmarshal(text, &one); err != nil {
		err = json.Unmarshal(text, &many)
		*s = many
		return err
	}
	if *s = (Slugs{one}); strings.HasPrefix(strings.TrimSpace(one), "[") && json.Unmarshal([]byte(one), &many) == nil {
		*s = many
	}
	return nil
}
