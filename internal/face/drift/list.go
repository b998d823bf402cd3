package drift

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"cairn/internal/folder/config"
	"cairn/internal/folder/workspace"
	"cairn/internal/task/cards"
)

// Verdict is what a person says of a finding.
type Verdict string

const (
	Accepted Verdict = "accepted" // the statement is wrong, and stays for now
	Ignored  Verdict = "ignored"  // the statement is right
)

// listOf returns the path of the file with the verdicts: a line for each, with the ID, the
// statement and the reason.
func listOf(dir string) string {
	marker, _ := config.Find(dir)
	if marker == "" {
		marker = ".cairn"
	}
	return path.Base(marker) + "/drift.txt"
}

// leaveOut removes the findings that have a verdict.
func (r *Report) leaveOut(dir string, t *workspace.Tasks) error {
	text, err := t.Text(listOf(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	verdicts := map[string]Verdict{}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 {
			verdicts[fields[1]] = Verdict(fields[0])
		}
	}
	left := []*Finding{}
	for _, f := range r.Findings {
		switch verdicts[f.ID] {
		case Accepted:
			r.Accepted++
		case Ignored:
			r.Ignored++
		default:
			left = append(left, f)
		}
	}
	r.Findings = left
	return err
}

// Judge writes a verdict on the findings with the IDs, and removes them from r.
func (r *Report) Judge(ctx context.Context, dir string, t *workspace.Tasks, v Verdict, ids []string, reason string) error {
	var b strings.Builder
	for _, id := range ids {
		i := slices.IndexFunc(r.Findings, func(f *Finding) bool { return f.ID == id })
		if i < 0 {
			return fmt.Errorf("no finding has the ID %.40q", id)
		}
		found := r.Findings[i]
		line := fmt.Sprintf("%s %s %s: %s %s: %s", v, id, found.Path, found.Kind, found.Says, reason)
		fmt.Fprintln(&b, strings.Join(strings.Fields(line), " "))
	}
	if b.Len() == 0 {
		return nil
	}
	if err := t.Append(ctx, listOf(dir), b.String()); err != nil {
		return err
	}
	return r.leaveOut(dir, t)
}

// Cards creates a card for each finding that has none, and returns how many.
func (r *Report) Cards(ctx context.Context, t *workspace.Tasks) (made int, err error) {
	const tag = "drift"
	list, _, err := t.Cards.List(cards.ListRequest{Tags: []string{tag}})
	if err != nil {
		return 0, err
	}
	var titles strings.Builder
	for _, c := range list {
		titles.WriteString(c.Title + "\n")
	}
	for _, f := range r.Findings {
		if strings.Contains(titles.String(), f.ID) {
			continue
		}
		says := []rune(strings.Join(strings.Fields(fmt.Sprintf("%s:%d: %s %s", f.Path, f.Line, f.Kind, f.Says)), " "))
		title := fmt.Sprintf("Correct %s [%s]", string(says[:min(len(says), 170)]), f.ID)
		if _, err := t.Cards.Create(ctx, cards.CreateRequest{Title: title, Tags: []string{tag}}); err != nil {
			return made, err
		}
		made++
	}
	return made, nil
}
