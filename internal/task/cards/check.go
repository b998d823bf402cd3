package cards

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"cairn/internal/task"
	"cairn/internal/task/files"
	"cairn/internal/text/markdown"
)

// kinds describes the kinds of problems. Those with repair have a single obvious repair.
var kinds = map[string]struct {
	fix             string
	isError, repair bool
}{
	task.BadYAML:       {fix: "quote values that hold \": \", \" #\" or begin with @, close every bracket, and end a merge whose marks are there", isError: true},
	task.NoFrontMatter: {fix: "begin the file with a block of \"key: value\" lines between two \"---\" lines", isError: true, repair: true},
	task.Unreadable:    {fix: "make it a readable UTF-8 file of at most 10 MB that is no symbolic link", isError: true},
	task.OddName:       {fix: "rename the file to six of a-z and 0-9, and the depends_on that name it"},
	task.Large:         {fix: "move the text into a document and name it in the card"},
	task.OtherID:       {fix: "remove id from the front matter: the file name is the id", repair: true},
	task.DuplicateID:   {fix: "remove id from the front matter: the file name is the id", isError: true, repair: true},
	task.NoTitle:       {fix: "add title: to the front matter", repair: true},
	task.OddStatus:     {fix: "set status to todo, active, done or archived", repair: true},
	task.OddPriority:   {fix: "set priority to low, medium, high or critical", repair: true},
	task.OddDate:       {fix: "write the time as 2026-01-02T10:43:00Z", repair: true},
	task.OddEstimate:   {fix: "write the estimate as hours, or as 90m, 1.5h, 2d, 1w"},
	task.MissingTask:   {fix: "remove the id from depends_on, or restore its card", isError: true},
	task.CycleOfTasks:  {fix: "remove one of these dependencies", isError: true},
	task.Orphan:        {fix: "set assignee, or status back to todo"},
	task.Stale:         {fix: "finish it, or set status back to todo"},
	task.SingleTag:     {fix: "possibly a typo: compare it with the other tags"},
}

// Repairable reports whether Repair fixes problems of a kind.
func Repairable(kind string) bool { return kinds[kind].repair }

// staleAfter is the time after which an active card without a change is stale.
const staleAfter = 90 * 24 * time.Hour

// Check returns the problems of all cards, sorted by path, for `cairn doctor`.
func (s *Store) Check() ([]task.Problem, error) {
	b, err := s.Board()
	if err != nil {
		return nil, err
	}
	all := b.All()
	problems := slices.Clone(b.Unusable)
	now := s.o.Now()
	tags, claimed := map[string][]*Card{}, map[string][]*Card{}
	for _, c := range b.Cards {
		problems = append(problems, c.Problems...)
		add := func(kind, format string, args ...any) { problems = append(problems, c.problem(kind, format, args...)) }
		for _, m := range all.Graph.Missing(c.ID) {
			p := c.problem(task.MissingTask, "depends on %s, which has no card", m)
			p.Line = c.dependsLine
			problems = append(problems, p)
		}
		if c.Status == task.InProgress {
			if c.Assignee == "" {
				add(task.Orphan, "active without an assignee")
			}
			last := c.ModTime
			if !c.Updated.IsZero() {
				last = c.Updated
			}
			if now.Sub(last) > staleAfter {
				add(task.Stale, "active and unchanged since %s", last.UTC().Format(time.DateOnly))
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
			problems = append(problems, cards[0].problem(task.SingleTag, "no other card has the tag %q", tag))
		}
	}
	for id, cards := range claimed {
		if owner, ok := b.byID[id]; ok {
			cards = append(cards, owner)
		}
		if len(cards) > 1 {
			for _, c := range cards {
				problems = append(problems, c.problem(task.DuplicateID, "%d cards say that they are %q", len(cards), id))
			}
		}
	}
	if cycle := all.Graph.Cycle(); cycle != nil {
		problems = append(problems, b.byID[cycle.Path[0]].problem(task.CycleOfTasks, "Circular dependency detected: %s", strings.Join(cycle.Path, " → ")))
	}
	slices.SortStableFunc(problems, func(a, b task.Problem) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Kind+a.Message, b.Kind+b.Message))
	})
	return problems, nil
}

func newProblem(path, id, kind, message string) task.Problem {
	return task.Problem{Path: path, ID: id, Kind: kind, Message: message, Fix: kinds[kind].fix, Error: kinds[kind].isError}
}

func (c *Card) problem(kind, format string, args ...any) task.Problem {
	return newProblem(c.Path, c.ID, kind, fmt.Sprintf(format, args...))
}

// Repair fixes the problems of cards that have a single obvious repair and returns a line
// about each. It creates missing front matter or a missing title from the first heading and
// removes an ID that contradicts the file name. It replaces an unknown status by todo, an
// unknown priority by the one that it counts as, and a time by RFC 3339, or by now if it is
// invalid. It changes nothing else in the files. Repair is idempotent.
func (s *Store) Repair(ctx context.Context) (done []string, err error) {
	problems, err := s.Check()
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, p := range problems {
		if Repairable(p.Kind) && (len(paths) == 0 || paths[len(paths)-1] != p.Path) { // by path, as Check sorts them
			paths = append(paths, p.Path)
		}
	}
	for _, p := range paths {
		var what []string
		_, err := s.files.Edit(ctx, p, func(old []byte, _ files.Stamp) ([]byte, error) {
			text, repaired, err := s.repaired(p, old)
			what = repaired
			return text, err
		})
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, files.ErrChanged) {
			continue // another program is editing it
		}
		if err != nil {
			return done, FileError(p, err)
		}
		for _, w := range what {
			done = append(done, p+": "+w)
		}
	}
	return done, nil
}

// repaired returns the text of a card after its repair, and a line about each repair.
func (s *Store) repaired(p string, text []byte) (out []byte, what []string, err error) {
	id := strings.TrimSuffix(path.Base(p), ".md")
	now := s.o.Now().UTC().Truncate(time.Second)
	fm := markdown.ReadFrontMatter(text)
	if fm.Err != nil {
		return text, nil, nil
	}
	if !fm.Found() {
		title, bom := cmp.Or(firstHeading(text[fm.End:]), id), []byte("\xef\xbb\xbf")
		rest, _ := bytes.CutPrefix(text, bom)
		head, err := markdown.NewFrontMatter(markdown.FieldEdit{Key: "title", Value: title}, markdown.FieldEdit{Key: "status", Value: "todo"},
			markdown.FieldEdit{Key: "priority", Value: defaultPriority}, markdown.FieldEdit{Key: "created", Value: now})
		if err != nil {
			return nil, nil, err
		}
		if bytes.Contains(rest, []byte("\r\n")) {
			head = bytes.ReplaceAll(head, []byte("\n"), []byte("\r\n"))
		}
		return append(head, rest...), []string{"front matter made, with the title " + strconv.Quote(title)}, nil
	}
	c, err := s.read(p, text)
	if err != nil {
		return nil, nil, err
	}
	var edits []markdown.FieldEdit
	for _, r := range c.repairs {
		line := fmt.Sprintf("%s %q is %v now", r.key, r.old, r.value)
		if at, ok := r.value.(time.Time); ok {
			if at.IsZero() {
				r.value, at = now, now
			}
			line = fmt.Sprintf("%s %q is %s now", r.key, r.old, at.Format(time.RFC3339))
		} else if r.value == nil {
			line = fmt.Sprintf("%s %q removed", r.key, r.old)
		} else if r.old == "" {
			line = fmt.Sprintf("%s %q from its heading or name", r.key, r.value)
		}
		edits, what = append(edits, markdown.FieldEdit{Key: r.key, Value: r.value}), append(what, line)
	}
	out, err = markdown.EditFrontMatter(text, edits...)
	if err != nil {
		return text, nil, nil // only the author can edit front matter of this form
	}
	return out, what, nil
}
