// Package cards stores tasks as cards: Markdown files with front matter, one per task.
// People edit them by hand, agents through the tools. The package does not index their
// text.
package cards

import (
	"cmp"
	"fmt"
	"io/fs"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"cairn/internal/task"
	"cairn/internal/text/markdown"
)

// Card is one card as read from its file. Missing keys have defaults: status todo,
// priority medium, and as the title the first heading or else the ID.
type Card struct {
	task.Task
	// Path is the workspace path of the file.
	Path     string
	Priority string // low, medium, high or critical
	Tags     []string
	Notes    string
	Ordinal  float64 // the place among cards ordered by hand, +Inf for none
	// CreatedText and UpdatedText are the dates as written, empty if absent. Updated is
	// the zero time if UpdatedText is not a date.
	CreatedText, UpdatedText string
	Updated                  time.Time
	ModTime                  time.Time // of the file
	// Problems lists what is wrong with the file, in the order of the keys.
	Problems []task.Problem

	// Body is the text of a task of Claude Code; that of a card is in its file.
	Body string

	claude      string // the name of the task file of Claude Code, "" for a card
	dependsLine int    // of depends_on, from 1; 0 for none
	otherID     string // the ID in the front matter if it differs from the file name
	repairs     []repair
}

// repair is the single obvious repair of a problem: a key with its old text, "" for none, and
// its new value, nil to remove it. A zero time becomes the time of the repair.
type repair struct {
	key, old string
	value    any
}

// prioritySynonyms maps the priorities of other systems to those of cards.
var prioritySynonyms = map[string]string{"urgent": "critical", "blocker": "critical", "highest": "critical", "p0": "critical", "major": "high", "p1": "high",
	"normal": "medium", "p2": "medium", "minor": "low", "lowest": "low", "p3": "low", "trivial": "low"}

// largeCard is the size in bytes above which a card is reported as too large.
const largeCard = 1 << 20

// idPattern matches the IDs that Create generates.
var idPattern = regexp.MustCompile(`^[a-z0-9]{6}$`)

// stemPattern matches the file names, without ".md", that are accepted as IDs. People may
// choose other names than Create does.
var stemPattern = regexp.MustCompile(`^[\p{L}\p{N}][\p{L}\p{N}._-]*$`)

// parse reads a card. If the file is not a card, c is nil and unusable says why.
func parse(id, file string, content []byte, info fs.FileInfo) (c *Card, unusable *task.Problem) {
	fm := markdown.ReadFrontMatter(content)
	switch {
	case fm.Err != nil:
		return nil, new(newProblem(file, id, task.BadYAML, fm.Err.Error()))
	case !fm.Found():
		return nil, new(newProblem(file, id, task.NoFrontMatter, "no front matter"))
	}
	c = &Card{Path: file, Priority: defaultPriority, ModTime: info.ModTime()}
	c.ID = id
	note := func(kind, format string, args ...any) {
		c.Problems = append(c.Problems, newProblem(file, id, kind, fmt.Sprintf(format, args...)))
	}
	repairable := func(key, old string, value any) { c.repairs = append(c.repairs, repair{key, old, value}) }
	if n := len(content); n > largeCard {
		note(task.Large, "the card has %.1f MB", float64(n)/1e6)
	}
	if !idPattern.MatchString(id) {
		note(task.OddName, "file name %q is no card id", id)
	}
	if own := fm.String("id"); own != "" && own != id {
		c.otherID = own
		note(task.OtherID, "the front matter says id %q, the file name %q", own, id)
		repairable("id", own, nil)
	}
	if c.Title = fm.String("title"); c.Title == "" {
		note(task.NoTitle, "no title")
		c.Title = cmp.Or(firstHeading(content[fm.End:]), id)
		repairable("title", "", c.Title)
	}
	known := true
	if c.Status, known = task.Parse(fm.String("status")); !known {
		note(task.OddStatus, "unknown status %q counts as todo", fm.String("status"))
		repairable("status", fm.String("status"), "todo")
	}
	if c.Status == task.Archived {
		c.ArchivedFrom = task.Archived
		if from := fm.String("archived_from"); from != "" {
			c.ArchivedFrom, _ = task.Parse(from)
		}
	}
	if p := fm.String("priority"); p != "" {
		if c.Priority = strings.ToLower(p); rank(p) == 0 {
			c.Priority = cmp.Or(prioritySynonyms[c.Priority], defaultPriority)
			note(task.OddPriority, "unknown priority %q counts as %s", p, c.Priority)
			repairable("priority", p, c.Priority)
		}
	}
	c.Assignee = fm.String("assignee")
	c.Tags = unique(fm.Strings("tags"))
	if c.DependsOn = dependencies(fm.Strings("depends_on")); len(c.DependsOn) > 0 {
		c.dependsLine = keyLine(content[:fm.End], "depends_on")
	}
	c.Notes = fm.String("notes")
	var err error
	if c.Ordinal, err = strconv.ParseFloat(fm.String("ordinal"), 64); err != nil || !(math.Abs(c.Ordinal) <= maxOrdinal) {
		c.Ordinal = math.Inf(1)
	}
	if c.Estimate, err = task.ParseEstimate(fm.String("estimate")); err != nil {
		note(task.OddEstimate, "%s", err)
	}
	c.CreatedText, c.UpdatedText = fm.String("created"), fm.String("updated")
	for _, d := range []struct {
		key, text string
		at        *time.Time
	}{{"created", c.CreatedText, &c.Created}, {"updated", c.UpdatedText, &c.Updated}} {
		var exact bool
		if *d.at, exact = parseTime(d.text); !exact && d.text != "" {
			note(task.OddDate, "%s is %q, want a time such as 2026-01-02T10:43:00Z", d.key, d.text)
			repairable(d.key, d.text, *d.at)
		}
	}
	return c, nil
}

// dependencies returns the IDs or titles that depends_on names. It replaces the name or
// path of a file by the ID, and omits "none".
func dependencies(names []string) []string {
	names = slices.DeleteFunc(names, func(n string) bool { return strings.EqualFold(strings.TrimRight(n, "."), "none") || n == "-" })
	for i, n := range names {
		if name, ok := strings.CutSuffix(n, ".md"); ok {
			names[i] = path.Base(name)
		}
	}
	return unique(names)
}

// keyLine returns the line of a top-level key of front matter, from 1, or 0 if it is
// absent.
func keyLine(head []byte, key string) int {
	n := 0
	for line := range strings.Lines(string(head)) {
		n++
		if rest, ok := strings.CutPrefix(strings.Trim(line, " \"'"), key); ok && strings.HasPrefix(strings.TrimLeft(rest, " \"'"), ":") {
			return n
		}
	}
	return 0
}

// firstHeading returns the text of the first heading in the first 4 KiB, "" for none.
func firstHeading(body []byte) string {
	for _, s := range markdown.Parse("", body[:min(len(body), 4<<10)]).Sections {
		if s.Heading != "" {
			return s.Heading
		}
	}
	return ""
}

// rank returns 1 for low to 4 for critical, ignoring case, and 0 for any other word.
func rank(priority string) int {
	return slices.IndexFunc(Priorities, func(p string) bool { return strings.EqualFold(p, priority) }) + 1
}

func unique(list []string) []string {
	seen := make(map[string]bool, len(list))
	return slices.DeleteFunc(list, func(s string) bool {
		twice := seen[s]
		seen[s] = true
		return twice
	})
}

// orNull returns nil, null in JSON, for an empty string.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
