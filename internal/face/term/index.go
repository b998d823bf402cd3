package term

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cairn/internal/base/home"
	"cairn/internal/face/view"
	"cairn/internal/folder/index"
	"cairn/internal/text/markdown"
	"cairn/internal/text/walk"
	"cairn/retriever"
)

// Overview describes a folder.
type Overview struct {
	Root  string         `json:"root"`
	Files map[string]int `json:"files"` // by extension
	Cards int            `json:"cards"`
	Index string         `json:"index"` // its state
	// Try lists headings of the folder that can serve as queries.
	Try []string `json:"try"`
}

// Overview writes what a folder contains, the state of its index, and commands to try.
func (o *Writer) Overview(v *Overview, state retriever.IndexState) {
	files := 0
	var kinds []string
	for _, ext := range slices.Sorted(maps.Keys(v.Files)) {
		files += v.Files[ext]
		kinds = append(kinds, cmp.Or(Plain(ext), "other"))
	}
	o.Printf("%s\n", Plain(v.Root))
	if files == 0 {
		o.Printf("no documents: cairn reads %s\n", strings.Join(markdown.Extensions(), " "))
	} else {
		o.Printf("%s (%s), %s\n", view.Count(files, "document"), strings.Join(kinds, " "), view.Count(v.Cards, "card"))
	}
	switch {
	case files == 0:
	case state.State == "missing":
		o.Printf("not indexed yet: the first search indexes the folder\n")
	case state.Pending > 0:
		o.Printf("indexed except for %s\n", view.Count(state.Pending, "vector"))
	default:
		o.Printf("index: %s, %s\n", state.State, view.Count(state.Sections, "section"))
	}
	o.Printf("\n")
	for _, q := range v.Try {
		o.Printf("  cairn search %q\n", q)
	}
	o.Printf("  cairn connect   lets your coding agents search here\n  cairn help      lists all commands\n")
}

// Status writes the state of an index, where its files are, and the skipped files, which
// may be nil.
func (o *Writer) Status(s *index.Status, place home.Place, skipped []index.SkippedFile) {
	row := func(name, format string, args ...any) {
		o.Printf("%-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("workspace", "%s (%s)", s.Workspace.Root, s.Workspace.Rule)
	if s.Store != "" {
		row("store", "%s", s.Store)
	}
	if place.Index != "" {
		row("index", "%s", place.Index)
		row("records", "%s", place.Records)
	}
	row("state", "%s", s.State)
	if s.Progress != nil {
		row("progress", "%s", s.Progress)
	}
	row("files", "%d with %s", s.Files, view.Count(s.Sections, "section"))
	if len(s.Kinds) > 0 {
		row("kinds", "%s", view.Kinds(s.Kinds))
	}
	if s.Notes > 0 {
		row("notes", "%d, %d outdated", s.Notes, s.Outdated)
	}
	for _, path := range s.OutdatedNotes {
		row("", "  %s", Plain(path))
	}
	row("vectors", "%d made, %d pending", s.Embedded, s.Pending)
	row("model", "%s", s.Model)
	if k := s.Kernels; k != nil {
		row("kernel", "%s made the vectors, this process uses %s: scores differ by up to .004", k.Vectors, k.Process)
	}
	if s.BuiltAt != "" {
		row("built", "%s", s.BuiltAt)
	}
	if s.Owner != nil {
		row("owner", "process %d, %s, since %s", s.Owner.PID, s.Owner.Command, s.Owner.StartedAt.Local().Format("15:04:05"))
	}
	for _, reason := range slices.Sorted(maps.Keys(s.Skipped)) {
		row("skipped", "%s: %s", view.Count(s.Skipped[reason], "file"), walk.WithAdvice(reason))
		for _, f := range skipped {
			if f.Reason == reason {
				row("", "  %s", Plain(f.Path))
			}
		}
	}
	if message, fix := s.Language(); message != "" {
		row("language", "%s; %s", message, fix)
	}
	if s.Problem != "" {
		row("problem", "%s", s.Problem)
	}
	if s.State == "missing" {
		row("next", "cairn index")
	}
}

// Verified writes the files whose checksums were compared.
func (o *Writer) Verified(v *index.Verified) {
	for _, f := range v.Files {
		state := "ok"
		switch {
		case f.Repaired != "":
			state = "repaired"
		case f.Outdated:
			state = "outdated"
		case len(f.Problems) > 0:
			state = "DAMAGED"
		}
		o.Printf("%-8s  %-14s %8.1f MB\n", state, Plain(f.Name), float64(f.Bytes)/1e6)
		for _, problem := range f.Problems {
			o.Printf("          %s\n", Plain(problem))
		}
		if f.Repaired != "" {
			o.Printf("          %s\n", Plain(f.Repaired))
		}
	}
	if len(v.Files) == 0 {
		o.Printf("there is nothing to verify: the folder has no index and no records\n")
	}
}

// EventLine describes a change of the index in one line, "" for an event without a change.
func EventLine(e index.WatchEvent) string {
	var what []string
	count := func(n int, word string) {
		if n > 0 {
			what = append(what, fmt.Sprintf("%d %s", n, word))
		}
	}
	count(e.Changed, "new or changed")
	count(e.Removed, "removed")
	count(e.Embedded, "texts embedded")
	if e.Problem != "" {
		what = append(what, "problem: "+Plain(e.Problem))
	}
	if len(what) == 0 {
		return ""
	}
	line := e.At.Local().Format("15:04:05") + "  " + strings.Join(what, ", ")
	if !e.First.IsZero() {
		line += fmt.Sprintf(", found by keyword after %.2f s", e.At.Sub(e.First).Seconds())
	}
	if len(e.Paths) > 0 {
		line += "  " + Plain(strings.Join(e.Paths, " "))
	}
	return Cut(line, 200)
}
