package cards

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"cairn/internal/task"
	"cairn/internal/task/files"
	"cairn/internal/text/markdown"
)

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
			return done, fileError(p, err)
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
	now := s.now().UTC().Truncate(time.Second)
	fm := markdown.ReadFrontMatter(text)
	if fm.Err != nil {
		return text, nil, nil
	}
	title := firstHeading(text[fm.End:])
	if title == "" {
		title = id
	}
	if !fm.Found() {
		bom := []byte("\xef\xbb\xbf")
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
	set := func(key string, value any, format string, args ...any) {
		edits, what = append(edits, markdown.FieldEdit{Key: key, Value: value}), append(what, fmt.Sprintf(format, args...))
	}
	for _, problem := range c.Problems {
		switch problem.Kind {
		case task.NoTitle:
			set("title", title, "title %q from its heading or name", title)
		case task.OtherID:
			set("id", nil, "id %q removed", fm.String("id"))
		case task.OddStatus:
			set("status", "todo", "status %q is todo now", fm.String("status"))
		case task.OddPriority:
			set("priority", c.Priority, "priority %q is %s now", fm.String("priority"), c.Priority)
		case task.OddDate:
			key, _, _ := strings.Cut(problem.Message, " ")
			at := anyTime(fm.String(key))
			if at.IsZero() {
				at = now
			}
			set(key, at, "%s %q is %s now", key, fm.String(key), at.Format(time.RFC3339))
		}
	}
	if len(edits) == 0 {
		return text, nil, nil
	}
	out, err = markdown.EditFrontMatter(text, edits...)
	if err != nil {
		return text, nil, nil // only the author can edit front matter of this form
	}
	return out, what, nil
}

// anyTime parses a time like parseTime, and also accepts seconds since 1970. An invalid text
// gives the zero time.
func anyTime(text string) time.Time {
	if at, _ := parseTime(text); !at.IsZero() {
		return at
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 100_000_000 && n < 1<<35 {
		return time.Unix(n, 0).UTC()
	}
	return time.Time{}
}
