package term

import (
	"fmt"
	"slices"
	"strings"

	"cairn/internal/face/doctor"
	"cairn/internal/face/view"
	"cairn/internal/stage"
	"cairn/internal/task"
	"cairn/internal/task/cards"
	"cairn/internal/task/doctask"
	"cairn/internal/task/scene"
	"cairn/internal/task/taskgraph"
	"cairn/internal/text/markdown"
)

// Text writes the text of a document after a blank line.
func (o *Writer) Text(text string) {
	o.Printf("\n%s\n", plainLines(strings.TrimRight(text, "\n")))
}

// statusWord returns the status of a task as a status of cards, or blocked or failed, which
// cards do not have. It returns an unknown status unchanged.
func statusWord(status string) string {
	s, known := task.Parse(status)
	if !known || s == task.Blocked || s == task.Failed {
		return Plain(status)
	}
	return s.CardWord()
}

// Details writes a line per task. If waiting is set, a line has the number of waiting tasks.
func (o *Writer) Details(list []taskgraph.Detail, waiting bool) {
	var rows [][]string
	for _, d := range list {
		text := Plain(d.Title)
		if waiting && d.Unblocks != nil && *d.Unblocks > 0 {
			text = fmt.Sprintf("%s  (%d wait for it)", text, *d.Unblocks)
		}
		rows = append(rows, []string{Plain(d.ID), statusWord(d.Status), text})
	}
	o.Rows(rows)
}

// Leverage writes a line per task with the number of tasks that wait for it.
func (o *Output) Leverage(list []taskgraph.Detail) {
	if len(list) == 0 {
		o.Notes.Printf("no open tasks\n")
	}
	var rows [][]string
	for _, d := range list {
		waits := ""
		if d.Unblocks != nil {
			waits = fmt.Sprintf("%d wait", *d.Unblocks)
		}
		rows = append(rows, []string{Plain(d.ID), statusWord(d.Status), waits, Plain(d.Title)})
	}
	o.Rows(rows)
}

// Stats writes the numbers of a task graph.
func (o *Writer) Stats(n *taskgraph.Stats) {
	o.Rows([][]string{
		{"tasks", fmt.Sprintf("%d: %d ready, %d active, %d blocked, %d done", n.Nodes, n.Ready, n.InProgress, n.Blocked-n.InProgress, n.Completed)},
		{"dependencies", fmt.Sprintf("%d: %.2f a task", n.Edges, n.Degree)},
		{"ends", fmt.Sprintf("%s without dependencies, %s that nothing waits for", view.Count(n.Roots, "task"), view.Count(n.Leaves, "task"))},
		{"depth", view.Count(n.Depth, "task") + " in a row"},
	})
}

// Drawing writes a drawing. If cut is set, it cuts the lines to the width.
func (o *Writer) Drawing(text string, cut bool) {
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\n"); cut {
			line = Cut(line, o.tableWidth())
		}
		o.Printf("%s\n", line)
	}
}

// TaskList writes a line per task of a document.
func (o *Output) TaskList(list *doctask.TaskAnswer) {
	var rows [][]string
	if list.Tasks != nil {
		for _, l := range *list.Tasks {
			rows = append(rows, []string{Plain(l.Slug), statusWord(l.Status), Plain(l.Title)})
		}
	}
	o.Rows(rows)
	if list.NextTask != nil {
		o.Notes.Printf("next: cairn task start %s %s\n", list.Document, Plain(list.NextTask.Slug))
	}
}

// DocumentTasks writes tasks of a document.
func (o *Output) DocumentTasks(v *doctask.ViewTaskAnswer) {
	for i := range v.Tasks {
		if i > 0 {
			o.Printf("\n")
		}
		t := &v.Tasks[i]
		o.Printf("%s  %s\n", o.paint(bold, Plain(t.Slug)), statusWord(t.Status))
		o.Fields(15, "  parent", t.Parent, "  workflow", t.WorkflowName, "  main workflow", t.MainWorkflowName, "  links to", t.LinkedDocument)
		for _, r := range t.ReferencedDocuments {
			missing := ""
			if r.Missing {
				missing = " (there is none)"
			}
			o.Printf("  %-13s  %s%s\n", "refers to", strings.Repeat("  ", r.Depth)+Plain(r.Path), missing)
		}
		o.Text(t.Content)
	}
}

// StartedTask writes a task with its workflows and the documents it refers to.
func (o *Output) StartedTask(v *doctask.StartTaskAnswer) {
	t := &v.Task
	o.Printf("%s  %s\n", o.paint(bold, Plain(t.Slug)), statusWord(t.Status))
	o.Text(t.Content)
	for _, flow := range []*doctask.Workflow{t.Workflow, t.MainWorkflow} {
		if flow != nil {
			o.Printf("\n%s\n", o.paint(dim, "workflow "+Plain(flow.Name)))
			o.Text(flow.Content)
		}
	}
	o.loaded(t.ReferencedDocuments)
	o.Warnings(v.Warnings...)
}

// CompletedTask writes the task that was completed, and the next one.
func (o *Output) CompletedTask(v *doctask.CompleteTaskAnswer) {
	o.Printf("%s  completed %s\n", Plain(v.CompletedTask.Slug), v.CompletedTask.CompletedDate)
	o.Warnings(v.Warnings...)
	if v.NextTask != nil {
		o.Printf("next: %s  %s\n", Plain(v.NextTask.Slug), Plain(v.NextTask.Title))
	} else if len(v.Warnings) == 0 {
		o.Printf("nothing left to do in this document\n")
	}
}

func (o *Writer) loaded(list []*doctask.LoadedDocument) {
	for _, d := range list {
		o.Printf("\n%s\n", o.paint(dim, Plain(d.Path)))
		switch {
		case d.Missing:
			o.Printf("(there is no such document)\n")
		case d.Omitted:
			o.Printf("(left out: the answer is full)\n")
		default:
			o.Text(d.Content)
		}
		o.loaded(d.Children)
	}
}

// QuestionTask writes the state of a question task, its log and its answer.
func (o *Writer) QuestionTask(s *stage.State, log []stage.Entry) {
	o.Printf("%s  %s at %s, %d%%, of %s\n%s\n", Plain(s.ID), s.Status, s.Current, s.Progress, Plain(s.UserID), plainLines(s.Query))
	for _, p := range s.Plan {
		mark := " "
		switch {
		case slices.Contains(s.Completed, p):
			mark = "x"
		case p == s.Current && !s.Status.Final():
			mark = ">"
		case p == s.Current:
			mark = "!"
		}
		o.Printf("  [%s] %s\n", mark, p)
	}
	if s.Error != nil {
		o.Printf("error: %s\n", Plain(*s.Error))
	}
	for _, e := range log {
		line := fmt.Sprintf("%s  %-8s  %-18s", Time(e.At), e.Action, e.Stage)
		if e.Detail != "" {
			line += "  " + Cut(OneLine(e.Detail), 120)
		}
		o.Printf("%s\n", line)
	}
	if s.Response != nil {
		o.Printf("\n")
		o.Response(s.Response)
	}
}

// Response writes the answer of a question task with its sources.
func (o *Writer) Response(r *stage.Response) {
	o.Printf("%s\n", plainLines(r.Answer))
	if len(r.Sources) > 0 {
		o.Printf("\n")
	}
	for i, s := range r.Sources {
		line := fmt.Sprintf("[%d] %s", i+1, Plain(strings.TrimPrefix(s.ID, "doc:")))
		if s.Title != "" {
			line += "  " + Plain(s.Title)
		}
		o.Printf("%s\n", line)
	}
	if r.Support != nil {
		for _, s := range r.Support.Unsupported() {
			o.Printf("\nunsupported: %s\n", Cut(OneLine(s.Text), o.tableWidth()))
			for _, p := range s.Problems {
				o.Printf("  %s\n", Cut(OneLine(p), o.tableWidth()))
			}
		}
	}
	what := ""
	if r.NotFound {
		what = " that the answer is not in these documents"
	}
	o.Printf("\nconfidence %.2f%s\n", r.Confidence, what)
	for _, line := range r.How {
		o.Printf("  %s\n", Plain(line))
	}
}

// maxBriefLines bounds the lines of the passages in a brief for a person, so that the whole
// has at most 60. A passage is shown if at least minPassageLines are left.
const (
	maxBriefLines   = 44
	minPassageLines = 5
)

// Brief writes the brief with which a person or model works on a stage.
func (o *Writer) Brief(b *stage.Brief) {
	if b.Unlikely {
		o.Printf("Not found: these documents do not seem to have an answer (probability %.2f). The nearest passages:\n\n", *b.Answerable)
	}
	o.Printf("task %s waits for %s\n\n%s\n\nQuery: %s\n", b.TaskID, b.Stage, b.Instructions, plainLines(b.Query))
	for _, p := range b.Problems {
		o.Printf("Refused before: %s\n", Plain(p))
	}
	left := maxBriefLines
	for i, p := range b.Passages {
		lines := strings.Split(strings.TrimRight(plainLines(p.Text), "\n"), "\n")
		if left < minPassageLines {
			o.Printf("\n%s\n", view.Count(len(b.Passages)-i, "further passage")+"; --json prints all")
			break
		}
		if n := left - 2; len(lines) > n {
			lines = append(lines[:n-1], "…")
		}
		left -= len(lines) + 2
		o.Printf("\n--- %s  %s\n%s\n", Plain(p.ID), Plain(p.Heading), strings.Join(lines, "\n"))
	}
	for _, id := range b.Omitted {
		o.Printf("\n--- %s  (left out: beyond --max-tokens)\n", Plain(id))
	}
	if b.Stage == stage.ExecutorReasoning {
		o.Printf("\nTo answer: cairn plan answer %s\n", Plain(b.TaskID))
	}
}

// Scene writes the documents of a scene with their weights.
func (o *Writer) Scene(s *scene.Scene) {
	var rows [][]string
	for _, i := range s.Items {
		mark := ""
		if !i.Included {
			mark = "  does not fit"
		}
		rows = append(rows, []string{fmt.Sprintf("%g", i.Weight), fmt.Sprintf("%6d", i.Tokens), Plain(i.Path) + mark})
	}
	o.Rows(rows)
	o.Printf("%d tokens of %d, %s masked\n", s.Tokens, s.Limit, view.Count(s.Masked, "secret"))
}

// maxFindings bounds the findings shown to a person.
const maxFindings = 200

// Report writes what doctor found.
func (o *Writer) Report(r *doctor.Report) {
	width := o.tableWidth() - 9
	for _, line := range r.Repaired {
		o.Printf("%s %s\n", o.paint(bold, "repaired"), Cut(Plain(line), width))
	}
	for i, f := range r.Findings {
		if i == maxFindings {
			o.Printf("and %d more; --json shows all\n", len(r.Findings)-i)
			break
		}
		word := o.paint(dim, "warning ")
		if f.Error {
			word = o.paint(match, "error   ")
		}
		place := Plain(f.Path)
		if f.Line > 0 {
			place = fmt.Sprintf("%s:%d", place, f.Line)
		}
		o.Printf("%s %s\n", word, o.paint(bold, strings.TrimSpace(place+"  "+f.Check)))
		fix := f.Fix
		if f.Repairable && !strings.Contains(fix, "--repair") {
			fix += " (--repair does it)"
		}
		for _, text := range []string{f.Message, "fix: " + fix} {
			for _, line := range wrap(Plain(text), width) {
				o.Printf("         %s\n", Cut(line, width))
			}
		}
	}
	o.Printf("checked %s, %s, %s: %s, %s\n", view.Count(r.Cards, "card"), view.Count(r.Documents, "document"), view.Count(r.Links, "link"),
		view.Count(r.Errors, "error"), view.Count(r.Warnings, "warning"))
}

// Cards writes a line per card.
func (o *Output) Cards(list []cards.ListItem) {
	if len(list) == 0 {
		o.Notes.Printf("no cards match; create one with `cairn card new`\n")
	}
	var rows [][]string
	for _, c := range list {
		title := Plain(c.Title)
		if c.Assignee != nil {
			title += "  " + Plain(*c.Assignee)
		}
		rows = append(rows, []string{c.ID, c.Status, c.Priority, title})
	}
	o.Rows(rows)
}

// Card is a card with the cards it waits for and those that wait for it.
type Card struct {
	ID        string          `json:"id"`
	Path      string          `json:"path"`
	Title     string          `json:"title"`
	Status    string          `json:"status"`
	Priority  string          `json:"priority"`
	Assignee  string          `json:"assignee,omitempty"`
	Tags      []string        `json:"tags,omitempty"`
	Notes     string          `json:"notes,omitempty"`
	Created   string          `json:"created,omitempty"`
	DependsOn []cards.TaskRef `json:"depends_on"`
	Missing   []string        `json:"missing,omitempty"`
	Needed    []cards.TaskRef `json:"needed_by"`
	Problems  []task.Problem  `json:"problems,omitempty"`
	Body      string          `json:"body"`
}

// NewCard returns the output for a card: needs are the cards it waits for, needed
// those that wait for it, text is its file.
func NewCard(c *cards.Card, needs, needed *cards.DependenciesAnswer, text []byte) *Card {
	return &Card{
		ID: c.ID, Path: c.Path, Title: c.Title, Status: c.Status.CardWord(), Priority: c.Priority, Assignee: c.Assignee, Tags: c.Tags,
		Notes: c.Notes, Created: c.CreatedText, DependsOn: needs.Tasks, Missing: needs.Missing, Needed: needed.Tasks, Problems: c.Problems, Body: strings.TrimSpace(string(text[markdown.ReadFrontMatter(text).End:])),
	}
}

// Card writes one card.
func (o *Writer) Card(c *Card) {
	o.Printf("%s  %s\n", o.paint(bold, c.ID), Cut(Plain(c.Title), minWidth-8))
	fields := []string{"  status", c.Status + ", " + c.Priority, "  assignee", c.Assignee, "  tags", strings.Join(c.Tags, ", "), "  notes", c.Notes, "  created", c.Created, "  file", c.Path}
	for _, d := range c.DependsOn {
		fields = append(fields, "  waits for", d.ID+" "+d.Status+"  "+d.Title)
	}
	for _, id := range c.Missing {
		fields = append(fields, "  waits for", id+" (there is no such card)")
	}
	for _, d := range c.Needed {
		fields = append(fields, "  needed by", d.ID+" "+d.Status+"  "+d.Title)
	}
	for _, p := range c.Problems {
		fields = append(fields, "  problem", p.Message)
	}
	o.Fields(12, fields...)
	if c.Body != "" {
		o.Text(c.Body)
	}
}
