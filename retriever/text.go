package retriever

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"

	"cairn/internal/text/invisible"
)

// Text returns the answer as text for a model: its notes, the sections with text, and a
// line for each further one, as in
//
//	@@ docs/a.md:10-19 #anchor  A > B  0.66
//
// A line of a document never begins with the mark "@@", so a document cannot imitate an
// entry.
func (a *Answer) Text() string {
	var b strings.Builder
	for _, note := range a.Notes() {
		fmt.Fprintf(&b, "note: %s\n", oneLine(strings.Fields(printed(note)), maxNote))
	}
	for _, f := range a.Folders {
		fmt.Fprintf(&b, "folder %s: %s\n", printed(f.Path), printed(f.Context))
	}
	further := ""
	for i := range a.Results {
		r := &a.Results[i]
		if r.Content == "" {
			further += r.Line() + "\n"
			continue
		}
		WriteSection(&b, r.entry(r.Passage), r.Content)
		writeOutdated(&b, r.Outdated)
		for j := range r.More {
			m := &r.More[j]
			one := Result{Path: r.Path, Headings: []string{m.Heading}, Anchor: m.Anchor, Score: m.Score}
			WriteSection(&b, one.entry(*m.Passage), m.Content)
		}
	}
	if further != "" {
		b.WriteString("@@ further\n" + further)
	}
	if a.NextCursor != nil {
		fmt.Fprintf(&b, "@@ next cursor %s\n", *a.NextCursor)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Line returns the place, the headings and the score of a result in one line.
func (r *Result) Line() string { return r.entry(r.LineRange) }

// maxNote bounds a note in a text, in runes.
const maxNote = 400

// Text returns the reading as text for a model: its place, the content, and how to
// continue.
func (r *Reading) Text() string {
	var b strings.Builder
	r.write(&b)
	writeDegraded(&b, r.Degraded)
	return strings.TrimSuffix(b.String(), "\n")
}

func writeDegraded(b *strings.Builder, degraded []string) {
	if len(degraded) > 0 { // "owner" is the only value for a reading
		b.WriteString("@@ read without the process that owns the folder, which does not answer: the tool status names it\n")
	}
}

func (r *Reading) write(b *strings.Builder) {
	at := r.Path
	if r.LineRange != nil {
		at += fmt.Sprintf(":%d-%d", r.LineRange.Start, r.LineRange.End)
	}
	if r.Anchor != nil {
		at += " #" + strings.TrimPrefix(*r.Anchor, "#")
	}
	if r.Mark != "" {
		at += " @" + r.Mark
	}
	if len(r.Headings) > 0 {
		at += "  " + strings.Join(r.Headings, " > ")
	}
	WriteSection(b, at+Flagged(r.Flags), r.Content)
	writeOutdated(b, r.Outdated)
	if r.Next != "" {
		fmt.Fprintf(b, "@@ next %s\n", r.Next)
	}
}

// Text returns the readings as text for a model, and the places that were not read.
func (r *Readings) Text() string {
	var b strings.Builder
	for i := range r.Documents {
		r.Documents[i].write(&b)
	}
	for _, f := range r.Failed {
		fmt.Fprintf(&b, "@@ failed %s: %s\n", printed(f.Path), printed(f.Error))
	}
	for _, o := range r.Omitted {
		fmt.Fprintf(&b, "@@ omitted %s: %d tokens\n", printed(o.Path), o.Tokens)
	}
	if r.More > 0 {
		fmt.Fprintf(&b, "@@ %d more places were not read\n", r.More)
	}
	writeDegraded(&b, r.Degraded)
	return strings.TrimSuffix(b.String(), "\n")
}

// Flagged describes flags in the line of an entry.
func Flagged(flags []invisible.Flag) (text string) {
	for _, f := range flags {
		text += fmt.Sprintf("  contains %s (%s)", f.Kind, f.Evidence)
	}
	return text
}

// WriteSection writes the line of an entry and the content below it, if there is any.
func WriteSection(b *strings.Builder, entry, content string) {
	b.WriteString(mark + " " + printed(entry) + "\n")
	if content != "" {
		b.WriteString(quoted(content) + "\n")
	}
}

const mark = "@@"

// quoted returns text with a blank before each line that begins with the mark.
func quoted(text string) string {
	if strings.HasPrefix(text, mark) {
		text = " " + text
	}
	return strings.ReplaceAll(text, "\n"+mark, "\n "+mark)
}

// entry returns the line of a result: place, anchor, headings, score, and what a reader
// should know about it.
func (r *Result) entry(lines Lines) string {
	at := fmt.Sprintf("%s:%d-%d", r.Path, lines.Start, lines.End)
	if r.Anchor != "" {
		at += " #" + r.Anchor
	}
	trail := cmp.Or(strings.Join(r.Headings, " > "), r.Title)
	if trail != "" {
		at += "  " + trail
	}
	at += fmt.Sprintf("  %.2f", r.Score)
	if r.Stale {
		at += "  changed since it was indexed"
	}
	if len(r.Outdated) > 0 {
		at += "  outdated"
	}
	if len(r.Duplicates) > 0 {
		at += "  nearly the same: " + strings.Join(r.Duplicates, ", ")
	}
	return printed(at + Flagged(r.Flags))
}

// printed replaces the control characters of text, such as line breaks, by blanks.
func printed(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// Notes returns remarks about an answer: what it lacks, which part of the query was
// searched for, and what to do next.
func (a *Answer) Notes() []string {
	var notes []string
	switch {
	case a.Hint != "" && (len(a.Results) > 0 || a.Index.State == "building" && a.Index.Unindexed > 0):
		notes = append(notes, a.Hint)
	case len(a.Results) > 0:
	case a.Hint == "":
		notes = append(notes, "nothing found")
	default:
		notes = append(notes, "nothing found: "+strings.TrimPrefix(a.Hint, "nothing matches: "))
	}
	if a.Fuzzy {
		notes = append(notes, "nothing matches the words as typed; these results match near spellings")
	}
	if a.Searched != "" {
		notes = append(notes, "the query is long; the search used this part of it: "+strings.Join(strings.Fields(a.Searched), " "))
	}
	for _, d := range a.Degraded {
		notes = append(notes, a.lack(d))
	}
	if a.OmittedCount > 0 {
		notes = append(notes, fmt.Sprintf("%d more did not fit the token budget", a.OmittedCount))
	}
	return notes
}

// lack describes a value of Degraded.
func (a *Answer) lack(what string) string {
	switch what {
	case "files":
		files := "1 file"
		if a.Index.Unindexed != 1 {
			files = fmt.Sprintf("%d files", a.Index.Unindexed)
		}
		return files + " of the folder are not indexed yet and were not searched; the tool index indexes the rest"
	case "vectors":
		return fmt.Sprintf("%d of %d pieces have no vector yet and were found by keyword only; the tool index makes the rest", a.Index.Pending, a.Index.Pending+a.Index.Embedded)
	case "owner":
		return "the index was read without the process that updates it, which does not answer: the tool status names it; later changes of files were not searched"
	case "rerank":
		return "the re-ranker had no time for all passages; the others keep their place"
	case "stale":
		return "some of these files have changed since they were indexed; the tool index brings them up to date"
	}
	return "incomplete: " + what
}
