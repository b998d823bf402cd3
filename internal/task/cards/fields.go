package cards

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/task"
)

// The vocabulary of cards.
var (
	Statuses = []string{"todo", "active", "done", "archived"}
	// Priorities are sorted from the least to the most urgent.
	Priorities = []string{"low", "medium", "high", "critical"}
)

const defaultPriority = "medium"

// field is a key of the front matter that the tools write.
type field struct {
	key   string
	words []string // the possible values; nil for any
	max   int      // characters of a text, or elements of a list
	// An optional text may be empty or null, which removes the key. A long one may have
	// several lines.
	optional, long bool
	// element checks an element of a list, whose elements are called plural. It is nil for
	// a text.
	element func(string) (string, error)
	plural  string
	of      func(*Card) any // the value of a card: a string or a []string
}

// schema lists the keys in the order of the schema of update_task, extensions last. The
// limits of title, assignee and notes are from the specification.
var schema = []field{
	{key: "status", words: Statuses, of: func(c *Card) any { return c.Status.CardWord() }},
	{key: "assignee", max: 50, optional: true, of: func(c *Card) any { return c.Assignee }},
	{key: "priority", words: Priorities, of: func(c *Card) any { return c.Priority }},
	{key: "notes", max: 500, optional: true, long: true, of: func(c *Card) any { return c.Notes }},
	{key: "tags", max: 100, element: checkTag, plural: "tags", of: func(c *Card) any { return c.Tags }},
	{key: "depends_on", max: 1000, element: func(id string) (string, error) { return id, checkID("depends_on", id) }, plural: "dependencies",
		of: func(c *Card) any { return c.DependsOn }},
	{key: "title", max: 200, of: func(c *Card) any { return c.Title }},
}

// changes holds the new values of a card by key: a string or a []string. An empty string
// removes the key. The key ordinal, a float64, is a new place among cards ordered by hand.
type changes map[string]any

// check trims the values and returns an error if one of them is invalid. where precedes the
// keys in the error.
func (ch changes) check(where string) (err error) {
	for _, f := range schema {
		switch v := ch[f.key].(type) {
		case string:
			ch[f.key], err = f.check(where, v)
		case []string:
			ch[f.key], err = f.checkList(v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkList returns the checked elements of a field, each once.
func (f *field) checkList(list []string) (out []string, err error) {
	if len(list) > f.max {
		return nil, task.Invalid("%d %s, want at most %d", len(list), f.plural, f.max)
	}
	for _, e := range list {
		if e, err = f.element(e); err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return unique(out), nil
}

func checkTag(tag string) (string, error) {
	tag, err := oneLine("tag", tag, 100)
	if err == nil && tag == "" {
		err = task.Invalid("a tag is empty")
	}
	return tag, err
}

// check returns the trimmed text of a field.
func (f *field) check(where, text string) (string, error) {
	switch {
	case f.words != nil:
		if !slices.Contains(f.words, text) {
			return "", task.Invalid("%s%s %.50q, want {%s}", where, f.key, text, strings.Join(f.words, ","))
		}
		return text, nil
	case f.long:
		if n := utf8.RuneCountInString(text); n > f.max {
			return "", task.Invalid("%s%s has %d characters, want at most %d", where, f.key, n, f.max)
		}
		return strings.TrimSpace(text), nil
	}
	text, err := oneLine(f.key, text, f.max)
	if err == nil && text == "" && !f.optional {
		err = task.Invalid("%s is empty, want 1 to %d characters", f.key, f.max)
	}
	return text, err
}

// oneLine trims a text. It returns an error if the text is too long or not a single line.
func oneLine(key, text string, limit int) (string, error) {
	text = strings.TrimSpace(text)
	switch n := utf8.RuneCountInString(text); {
	case !utf8.ValidString(text):
		return "", task.Invalid("%s is not valid UTF-8", key)
	case n > limit:
		return "", task.Invalid("%s has %d characters, want at most %d", key, n, limit)
	case strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }) >= 0:
		return "", task.Invalid("%s holds a line break or control character", key)
	}
	return text, nil
}

// checkID returns an error if id cannot be an ID. It accepts the names of cards that people
// create, although the published pattern is narrower.
func checkID(key, id string) error {
	if len(id) > 100 || !stemPattern.MatchString(id) || strings.Contains(id, "..") {
		return task.Invalid("%s %.100q, want six of a-z and 0-9", key, id)
	}
	return nil
}
