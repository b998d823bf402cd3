package cards

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"cairn/internal/task"
)

// Problem describes a problem of a card and its fix. If Error is true, the card may be
// missing from answers. Otherwise the problem is a warning.
type Problem struct {
	Path    string `json:"path"`
	Line    int    `json:"line,omitempty"` // from 1; 0 if unknown
	ID      string `json:"id"`
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Fix     string `json:"fix"`
	Error   bool   `json:"error"`
}

// The kinds of problems.
const (
	BadYAML       = "bad-yaml"
	NoFrontMatter = "no-front-matter"
	Unreadable    = "unreadable"
	OddName       = "name"
	Large         = "large"
	OtherID       = "other-id"
	DuplicateID   = "duplicate-id"
	NoTitle       = "no-title"
	OddStatus     = "status"
	OddPriority   = "priority"
	OddDate       = "date"
	OddEstimate   = "estimate"
	MissingTask   = "missing-dependency"
	CycleOfTasks  = "cycle"
	Orphan        = "active-without-assignee"
	Stale         = "stale"
	SingleTag     = "single-tag"
)

// errorKinds are the kinds of problems that are errors.
var errorKinds = map[string]bool{BadYAML: true, NoFrontMatter: true, Unreadable: true, DuplicateID: true, MissingTask: true, CycleOfTasks: true}

var fixes = map[string]string{
	BadYAML:       "quote values that hold \": \", \" #\" or begin with @, and close every bracket",
	NoFrontMatter: "begin the file with a block of \"key: value\" lines between two \"---\" lines",
	Unreadable:    "make it a readable UTF-8 file of at most 10 MB that is no symbolic link",
	OddName:       "rename the file to six of a-z and 0-9, and the depends_on that name it",
	Large:         "move the text into a document and name it in the card",
	OtherID:       "remove id from the front matter: the file name is the id",
	DuplicateID:   "remove id from the front matter: the file name is the id",
	NoTitle:       "add title: to the front matter",
	OddStatus:     "set status to todo, active, done or archived",
	OddPriority:   "set priority to low, medium, high or critical",
	OddDate:       "write the time as 2026-01-02T10:43:00Z",
	OddEstimate:   "write the estimate as hours, or as 90m, 1.5h, 2d, 1w",
	MissingTask:   "remove the id from depends_on, or restore its card",
	CycleOfTasks:  "remove one of these dependencies",
	Orphan:        "set assignee, or status back to todo",
	Stale:         "finish it, or set status back to todo",
	SingleTag:     "possibly a typo: compare it with the other tags",
}

// staleAfter is the time after which an active card without a change is stale.
const staleAfter = 90 * 24 * time.Hour

// Check returns the problems of all cards, sorted by path, for `cairn doctor`.
func (s *Store) Check() ([]Problem, error) {
	b, err := s.Board()
	if err != nil {
		return nil, err
	}
	g, err := b.Graph()
	if err != nil {
		return nil, err
	}
	problems := slices.Clone(b.unusable)
	now := s.now()
	tags, claimed := map[string][]*Card{}, map[string][]*Card{}
	for _, c := range b.Cards {
		problems = append(problems, c.Problems...)
		add := func(kind, format string, args ...any) { problems = append(problems, c.problem(kind, format, args...)) }
		for _, m := range g.Missing(c.ID) {
			p := c.problem(MissingTask, "depends on %s, which has no card", m)
			p.Line = c.dependsLine
			problems = append(problems, p)
		}
		if c.Status == task.InProgress {
			if c.Assignee == "" {
				add(Orphan, "active without an assignee")
			}
			last := c.ModTime
			if !c.Updated.IsZero() {
				last = c.Updated
			}
			if now.Sub(last) > staleAfter {
				add(Stale, "active and unchanged since %s", last.UTC().Format(time.DateOnly))
			}
		}
		for _, t := range c.Tags {
			tags[strings.ToLower(t)] = append(tags[strings.ToLower(t)], c)
		}
		if c.otherID != "" {
			claimed[c.otherID] = append(claimed[c.otherID], c)
		}
	}
	for tag, cards := range tags {
		if len(cards) == 1 && len(tags) > 1 {
			problems = append(problems, cards[0].problem(SingleTag, "no other card has the tag %q", tag))
		}
	}
	for id, cards := range claimed {
		if owner, ok := b.byID[id]; ok {
			cards = append(cards, owner)
		}
		if len(cards) > 1 {
			for _, c := range cards {
				problems = append(problems, c.problem(DuplicateID, "%d cards say that they are %q", len(cards), id))
			}
		}
	}
	if cycle := g.Cycle(); cycle != nil {
		problems = append(problems, b.byID[cycle.Path[0]].problem(CycleOfTasks, "Circular dependency detected: %s", strings.Join(cycle.Path, " → ")))
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Kind+a.Message, b.Kind+b.Message))
	})
	return problems, nil
}

func newProblem(path, id, kind, message string) Problem {
	return Problem{Path: path, ID: id, Kind: kind, Message: message, Fix: fixes[kind], Error: errorKinds[kind]}
}

func (c *Card) problem(kind, format string, args ...any) Problem {
	return newProblem(c.Path, c.ID, kind, fmt.Sprintf(format, args...))
}
