package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cairn/retriever"
)

// Notes returns remarks about an answer to a search: what it lacks, which part of the query
// was searched for, and what to do next. They do not name the next page.
func Notes(a *retriever.Answer) []string {
	var notes []string
	hint := commandNames.Replace(a.Hint)
	switch {
	case len(a.Results) > 0:
	case hint == "":
		notes = append(notes, "nothing found")
	default:
		notes = append(notes, "nothing found: "+strings.TrimPrefix(hint, "nothing matches: "))
	}
	if a.Fuzzy {
		notes = append(notes, "nothing matches the words as typed; these results match near spellings")
	}
	if a.Searched != "" {
		notes = append(notes, "the query is long; the search used this part of it: "+strings.Join(strings.Fields(a.Searched), " "))
	}
	for _, d := range a.Degraded {
		notes = append(notes, lack(a, d))
	}
	if hint != "" && len(a.Results) > 0 && a.Unlikely() {
		notes = append(notes, hint)
	}
	if a.OmittedCount > 0 {
		notes = append(notes, fmt.Sprintf("%d more did not fit the token budget", a.OmittedCount))
	}
	return notes
}

// lack describes a value of Answer.Degraded.
func lack(a *retriever.Answer, what string) string {
	switch what {
	case "files":
		return fmt.Sprintf("%s of the folder are not indexed yet and were not searched; `cairn index` indexes the rest", Count(a.Index.Unindexed, "file"))
	case "vectors":
		return fmt.Sprintf("%d of %d pieces have no vector yet and were found by keyword only; `cairn index` makes the rest", a.Index.Pending, a.Index.Pending+a.Index.Embedded)
	case "owner":
		return "the index was read without the process that updates it, which does not answer: `cairn status` names it; later changes of files were not searched"
	case "rerank":
		return "the re-ranker had no time for all passages; the others keep their place"
	case "stale":
		return "some of these files have changed since they were indexed; `cairn index` brings them up to date"
	}
	return "incomplete: " + what
}

// commandNames replaces the names of tools in a hint with commands.
var commandNames = strings.NewReplacer("call the tool index, or run `cairn index`", "run `cairn index`", "call the tool index", "run `cairn index`", "the tool status", "`cairn status`")

// Trail returns the headings above a result, or else the title of its document.
func Trail(r *retriever.Result) []string {
	if len(r.Headings) == 0 && r.Title != "" {
		return []string{r.Title}
	}
	return r.Headings
}

// Count returns a number with its noun, with a plural s unless the number is 1.
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// Kinds returns the numbers of files by kind, as in index.Status, in one line.
func Kinds(counts map[string]int) string {
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		kinds = append(kinds, fmt.Sprintf("%d %s", counts[kind], kind))
	}
	return strings.Join(kinds, ", ")
}
