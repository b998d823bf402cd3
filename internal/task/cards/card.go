// Package cards keeps task cards: Markdown files with front matter, one a task,
// that people edit by hand and agents through the tools. It finds, creates and
// changes them and answers what depends on what.
//
// It does not index their text and knows no graph algorithm: taskdag does.
package cards

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"time"

	"cairn/internal/markdown"
	"cairn/internal/task"
)

// Card is one card as its file says. A card without the keys it should have
// has their defaults: status todo, priority medium, and for a title its first heading, else its id.
type Card struct {
	task.Task
	// Path is the workspace path of the file.
	Path     string
	Priority string // low, medium, high or critical
	Tags     []string
	Notes    string
	// CreatedText and UpdatedText are the dates as written, empty when absent;
	// Updated is the zero time when UpdatedText is none.
	CreatedText, UpdatedText string
	Updated                  time.Time
	// ModTime is that of the file.
	ModTime time.Time
	// Problems are what is wrong with the file, in the order of the keys.
	Problems []Problem
}

// priorities from the least to the most urgent.
var priorities = []string{"low", "medium", "high", "critical"}

const defaultPriority = "medium"

// largeCard in bytes is beyond what anybody reads as a card.
const largeCard = 1 << 20

// idPattern is that of the ids given out.
var idPattern = regexp.MustCompile(`^[a-z0-9]{6}$`)

// stemPattern is that of file names taken for cards: people name files freely.
var stemPattern = regexp.MustCompile(`^[\p{L}\p{N}][\p{L}\p{N}._-]*$`)

// parse reads a card. broken says why the file is none.
func parse(id, path string, content []byte, info fs.FileInfo) (c *Card, broken *Problem) {
	fm := markdown.ReadFrontMatter(content)
	problem := func(kind, format string, args ...any) Problem {
		return Problem{Path: path, ID: id, Kind: kind, Message: fmt.Sprintf(format, args...), Fix: fixes[kind], Error: errorKinds[kind]}
	}
	switch {
	case fm.Err != nil:
		p := problem(BadYAML, "%s", fm.Err)
		return nil, &p
	case !fm.Found():
		p := problem(NoFrontMatter, "no front matter")
		return nil, &p
	}
	c = &Card{Path: path, Priority: defaultPriority, ModTime: info.ModTime()}
	c.ID = id
	note := func(kind, format string, args ...any) {
		c.Problems = append(c.Problems, problem(kind, format, args...))
	}
	if n := len(content); n > largeCard {
		note(Large, "the card has %.1f MB", float64(n)/1e6)
	}
	if !idPattern.MatchString(id) {
		note(OddName, "file name %q is no card id", id)
	}
	if own := fm.String("id"); own != "" && own != id {
		note(OtherID, "the front matter says id %q, the file name %q", own, id)
	}
	if c.Title = fm.String("title"); c.Title == "" {
		note(NoTitle, "no title")
		if c.Title = firstHeading(content[fm.End:]); c.Title == "" {
			c.Title = id
		}
	}
	known := true
	if c.Status, known = task.Parse(fm.String("status")); !known {
		note(OddStatus, "unknown status %q counts as todo", fm.String("status"))
	}
	if c.Status == task.Archived {
		c.ArchivedFrom = task.Archived
		if from := fm.String("archived_from"); from != "" {
			c.ArchivedFrom, _ = task.Parse(from)
		}
	}
	if p := fm.String("priority"); p != "" {
		if rank(p) == 0 {
			note(OddPriority, "unknown priority %q counts as medium", p)
		} else {
			c.Priority = strings.ToLower(p)
		}
	}
	c.Assignee = fm.String("assignee")
	c.Tags = unique(fm.Strings("tags"))
	c.DependsOn = unique(fm.Strings("depends_on"))
	c.Notes = fm.String("notes")
	var err error
	if c.Estimate, err = task.ParseEstimate(fm.String("estimate")); err != nil {
		note(OddEstimate, "%s", err)
	}
	c.CreatedText, c.UpdatedText = fm.String("created"), fm.String("updated")
	for _, d := range []struct {
		key, text string
		at        *time.Time
	}{{"created", c.CreatedText, &c.Created}, {"updated", c.UpdatedText, &c.Updated}} {
		var exact bool
		if *d.at, exact = parseTime(d.text); !exact && d.text != "" {
			note(OddDate, "%s is %q, want a time such as 2026-01-02T10:43:00Z", d.key, d.text)
		}
	}
	return c, nil
}

// firstHeading is the text of the first heading line near the top.
func firstHeading(body []byte) string {
	for line := range strings.Lines(string(body[:min(len(body), 4<<10)])) {
		line = strings.TrimSpace(line)
		if text := strings.TrimLeft(line, "#"); len(text) < len(line) && strings.HasPrefix(text, " ") {
			text = strings.TrimSpace(text)
			if open := strings.TrimRight(text, "#"); strings.HasSuffix(open, " ") { // a closing row
				text = strings.TrimSpace(open)
			}
			return text
		}
	}
	return ""
}

// rank is 1 for low to 4 for critical, in any case, 0 for any other word.
func rank(priority string) int {
	for i, p := range priorities {
		if strings.EqualFold(p, priority) {
			return i + 1
		}
	}
	return 0
}

func unique(list []string) []string {
	seen := make(map[string]bool, len(list))
	out := list[:0]
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// orNull is what the wire shows of a text that may be absent.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// orEmpty is a list that the wire shows as [] rather than null.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
