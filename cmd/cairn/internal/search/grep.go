package search

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/face/view"
	"cairn/internal/folder/scan"
	"cairn/internal/folder/workspace"
)

// maxPrinted bounds the text of matching lines in bytes.
const maxPrinted = 64 << 20

// grepFlags are the flags of grep.
type grepFlags struct {
	scan.Request
	fixed bool
	lines int // before and after
}

func (a *app) grepCommand() *cli.Command {
	var f grepFlags
	cmd := cli.NewCommand("grep [flags] PATTERN [PATH]", "Print every line that matches a regular expression, as grep does",
		a.Command(func(ctx context.Context, args []string) error {
			if n, err := strconv.Atoi(a.Dir); err == nil && n >= 0 {
				if _, err := os.Stat(a.Dir); err != nil {
					f.lines, a.Dir = n, "" // -C as in grep
				}
			}
			f.Pattern, f.Regexp = args[0], !f.fixed
			if len(args) > 1 {
				f.PathPrefix = args[1]
			}
			f.Before, f.After = max(f.Before, f.lines), max(f.After, f.lines)
			return a.grep(ctx, "grep", f.Request)
		}))
	cmd.Args = func(_ *cli.Command, args []string) error {
		if len(args) < 1 || len(args) > 2 {
			return cli.BadUsage("want a pattern and at most one path, as in: cairn grep 'timeout_(ms|seconds)' docs/")
		}
		return nil
	}
	fs := cmd.Flags()
	fs.BoolVarP(&f.fixed, "fixed-strings", "F", false, "the pattern is a text, not a regular expression (RE2)")
	fs.BoolVarP(&f.IgnoreCase, "ignore-case", "i", false, "upper and lower case are equal")
	fs.VarP(cli.Bounded(&f.After, 0, cli.NoBound), "after-context", "A", "print this many lines after each match")
	fs.VarP(cli.Bounded(&f.Before, 0, cli.NoBound), "before-context", "B", "print this many lines before each match")
	cli.IntVar(fs, &f.lines, "context", 0, 0, cli.NoBound, "print this many lines before and after each match; -C N if no folder is named N")
	cli.ChoiceVar(fs, &f.Kind, "kind", "docs, code (source code), cards, notes or all", "docs", "code", "cards", "notes", "all")
	cli.IntVar(fs, &f.MaxLines, "limit", 0, 1, cli.NoBound, "most matching lines")
	return cmd
}

// grep prints the lines that match in the current files. As JSON, the answer to the command
// grep has the events of ripgrep.
func (a *app) grep(ctx context.Context, command string, r scan.Request) (err error) {
	m, err := r.Matcher()
	if err != nil {
		return cli.BadUsage("%w", err)
	}
	w, err := a.Open(ctx, command, workspace.Reading, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	p, path := a.Paths(w.Selection()), r.PathPrefix
	r.PathPrefix, r.MaxBytes = p.Folder(path), maxPrinted
	found, err := w.Scan(ctx, r)
	if err != nil {
		return err
	}
	if err := a.foundIn(w, path, found.Total); err != nil {
		return err
	}
	a.Out.Warnings(found.Warnings(p.Shown)...)
	if a.Out.JSON && command == "grep" {
		return a.grepEvents(found, m, p.Shown)
	}
	return a.Out.Print(found, func() {
		for i, l := range found.Found {
			if i > 0 && r.Before+r.After > 0 && (l.Path != found.Found[i-1].Path || l.Number != found.Found[i-1].Number+1) {
				a.Out.Printf("--\n")
			}
			sign, text := "-", l.Text
			if l.Match {
				sign, text = ":", a.Out.Marked(l.Text, m.Spans(l.Text))
			}
			a.Out.Printf("%s%s%d%s%s\n", p.Shown(l.Path), sign, l.Number, sign, text)
		}
		a.Out.Notes.Dim(fmt.Sprintf("%s in %d of %s%s", view.Count(found.Total, "line"), found.Matching, view.Count(found.Searched, "file"), found.NotSearched()))
		if found.Truncated {
			a.Out.Notes.Warn("not complete: %s", found.Reason)
		}
	})
}

// The events of ripgrep's --json.
type (
	grepEvent struct {
		Type string    `json:"type"` // begin, match, context, end or summary
		Data grepEntry `json:"data"`
	}
	grepText struct {
		Text string `json:"text"`
	}
	grepEntry struct {
		Path       *grepText  `json:"path,omitempty"`
		Lines      *grepText  `json:"lines,omitempty"`
		Number     int        `json:"line_number,omitempty"`
		Offset     *int       `json:"absolute_offset,omitempty"`
		Submatches []grepSpan `json:"submatches,omitzero"`
		Stats      *grepStats `json:"stats,omitempty"`
	}
	grepSpan struct {
		Match grepText `json:"match"`
		Start int      `json:"start"`
		End   int      `json:"end"`
	}
	grepStats struct {
		Searches int            `json:"searches"`
		Files    int            `json:"searches_with_match"`
		Lines    int            `json:"matched_lines"`
		Matches  int            `json:"matches"`
		Not      map[string]int `json:"not_searched,omitempty"` // files, by the reason
	}
)

func (a *app) grepEvents(found *scan.Answer, m *scan.Matcher, shown func(string) string) (err error) {
	all := grepStats{Searches: found.Searched, Files: found.Matching, Lines: found.Total, Not: found.Unsearched}
	write := func(kind string, data grepEntry) {
		if err == nil {
			err = a.Out.Encode(grepEvent{kind, data})
		}
	}
	for i := 0; i < len(found.Found); {
		path := found.Found[i].Path
		name, stats := &grepText{shown(path)}, grepStats{Searches: 1, Files: 1}
		write("begin", grepEntry{Path: name})
		for ; i < len(found.Found) && found.Found[i].Path == path; i++ {
			l, kind, spans := found.Found[i], "context", []grepSpan{}
			if l.Match {
				kind = "match"
				stats.Lines++
				for _, s := range m.Spans(l.Text) {
					spans = append(spans, grepSpan{grepText{l.Text[s[0]:s[1]]}, s[0], s[1]})
				}
				stats.Matches += len(spans)
			}
			write(kind, grepEntry{Path: name, Lines: &grepText{l.Text + "\n"}, Number: l.Number, Offset: &l.Offset, Submatches: spans})
		}
		all.Matches += stats.Matches
		write("end", grepEntry{Path: name, Stats: &stats})
	}
	write("summary", grepEntry{Stats: &all})
	return err
}
