package doctask

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"cairn/internal/task"
	"cairn/internal/text/fit"
	"cairn/internal/text/markdown"
)

// The operations on a section.
const (
	Replace      = "replace"       // replace its own text; keep its heading and subsections
	Append       = "append"        // add text at the end of its own text
	Prepend      = "prepend"       // add text directly below its heading
	InsertBefore = "insert_before" // add a section of the same level before it
	InsertAfter  = "insert_after"  // add a section of the same level after its subsections
	AppendChild  = "append_child"  // add a last subsection
	Remove       = "remove"        // remove it with its subsections
)

var operations = []string{Replace, Append, Prepend, InsertBefore, InsertAfter, AppendChild, Remove}

// maxOperations is the maximum number of operations in a call.
const maxOperations = 100

// Operation is one change of a section.
type Operation struct {
	Section   string `json:"section"`
	Operation string `json:"operation,omitempty" schema:"enum=replace|append|prepend|insert_before|insert_after|append_child|remove,default=replace"` // default replace
	Content   string `json:"content,omitempty"`
	Title     string `json:"title,omitempty" jsonschema:"Title of the new section"`
}

// SectionRequest holds the arguments of section.
type SectionRequest struct {
	Document   string      `json:"document" jsonschema:"Such as '/project/setup.md'"`
	Operations []Operation `json:"operations" schema:"min=1,max=100"`
	Precondition
}

// SectionAnswer is the answer of section. Each operation succeeds or fails independently.
// The file is written once, with the operations that succeeded.
type SectionAnswer struct {
	Success          bool              `json:"success"` // all operations succeeded
	Document         string            `json:"document"`
	Results          []OperationResult `json:"results"`
	SectionsModified int               `json:"sections_modified"`
	TotalOperations  int               `json:"total_operations"`
	Timestamp        string            `json:"timestamp"` // RFC 3339
	Hash             string            `json:"hash"`      // SHA-256 of the new file
	Mtime            string            `json:"mtime"`
}

// OperationResult is the result of one operation.
type OperationResult struct {
	Section        string   `json:"section"`
	Operation      string   `json:"operation"`
	Success        bool     `json:"success"`
	NewSection     string   `json:"new_section,omitempty"` // slug of a new section
	Depth          int      `json:"depth,omitempty"`       // its heading level
	RemovedContent string   `json:"removed_content,omitempty"`
	Error          string   `json:"error,omitempty"`
	Code           string   `json:"code,omitempty"`
	Context        evidence `json:"context,omitempty"`
}

// Section implements section: it edits sections by anchor. Each operation applies to the
// result of the previous one.
func (d *Docs) Section(ctx context.Context, r SectionRequest) (*SectionAnswer, error) {
	switch {
	case r.Operations == nil:
		return nil, refuse(task.MissingOperations, evidence{"parameter": "operations"}, "Parameter operations is required")
	case len(r.Operations) == 0:
		return nil, refuse(task.EmptyOperations, evidence{"parameter": "operations"}, "Parameter operations is empty")
	case len(r.Operations) > maxOperations:
		return nil, refuse(task.BatchTooLarge, evidence{"count": len(r.Operations), "max": maxOperations}, "Too many operations. Maximum %d allowed, got %d", maxOperations, len(r.Operations))
	}
	var a *SectionAnswer
	after, err := d.edit(ctx, r.Document, r.Precondition, func(doc *document) ([]byte, error) {
		a = &SectionAnswer{Success: true, Document: doc.address(), TotalOperations: len(r.Operations)}
		for _, op := range r.Operations {
			op.Operation = cmp.Or(op.Operation, Replace)
			next, result, err := doc.apply(op)
			if err != nil {
				e, ok := errors.AsType[*task.Error](err)
				if !ok {
					return nil, err // unreachable: apply returns only *Error
				}
				result = OperationResult{Error: e.Message, Code: e.Code, Context: e.Data}
				a.Success = false
			} else {
				result.Success = true
				a.SectionsModified++
				doc = next
			}
			result.Section, result.Operation = op.Section, op.Operation
			a.Results = append(a.Results, result)
		}
		return doc.src, nil
	})
	if err != nil {
		return nil, err
	}
	if len(a.Results) == 1 && !a.Success { // a single failed operation fails the call
		only := a.Results[0]
		return nil, &task.Error{Code: only.Code, Message: only.Error, Data: only.Context}
	}
	a.Timestamp = d.o.Now().UTC().Format(time.RFC3339)
	a.Hash, a.Mtime = after.hash(), after.mtime()
	return a, nil
}

// apply makes one change and returns the changed document.
func (d *document) apply(op Operation) (after *document, r OperationResult, err error) {
	if !slices.Contains(operations, op.Operation) {
		return nil, r, refuse(task.InvalidOperation, evidence{"operation": clip(op.Operation)}, "Unknown operation %q, want {%s}", clip(op.Operation), strings.Join(operations, ","))
	}
	slug, err := d.parseSlug(op.Section, task.InvalidSlug)
	if err != nil {
		return nil, r, err
	}
	i, ok := d.find(slug)
	if !ok {
		return nil, r, d.sectionNotFound(slug)
	}
	if err := checkContent(op.Content); err != nil {
		return nil, r, err
	}
	s, body := d.md().Sections[i], d.lines(op.Content)
	switch op.Operation {
	case Remove:
		r.RemovedContent = d.text(s)
		end := d.subtreeEnd(i)
		after, err = d.checkShape(splice(d.src, s.Start, s.End, ""), i, end, 0)
		return after, r, err
	case InsertBefore, InsertAfter, AppendChild:
		return d.insertSection(i, op)
	case Replace:
		after, err = d.checkShape(d.replaceOwn(i, body), i+1, i+1, s.Level)
		return after, r, err
	}
	if err := required(op.Operation, "content", body); err != nil {
		return nil, r, err
	}
	src := d.appendOwn(i, body)
	if op.Operation == Prepend {
		src = d.prependOwn(i, body)
	}
	// Headings in the content become subsections.
	after, err = d.checkShape(src, i+1, i+1, s.Level)
	return after, r, err
}

// insertSection adds a section before, after or below section i.
func (d *document) insertSection(i int, op Operation) (after *document, r OperationResult, err error) {
	if err := required(op.Operation, "title", op.Title); err != nil {
		return nil, r, err
	}
	title, err := checkTitle(op.Title)
	if err != nil {
		return nil, r, err
	}
	s := d.md().Sections[i]
	level, parent := s.Level, s.Parent
	if op.Operation == AppendChild {
		level, parent = s.Level+1, i
	}
	if level > maxLevel {
		return nil, r, refuse(task.InvalidOperation, evidence{"section": s.Anchor, "depth": level}, "A section below #%s would have depth %d, want at most %d", s.Anchor, level, maxLevel)
	}
	if err := d.duplicate(parent, level, title); err != nil {
		return nil, r, err
	}
	text := d.heading(level, title, op.Content)
	at, offset := d.subtreeEnd(i), d.lastLineEnd(s.Start, s.End)
	if op.Operation == InsertBefore {
		at, offset, text = i, s.Start, text+d.eol()
	}
	if after, err = d.checkShape(d.insert(offset, text), at, at, level-1); err != nil {
		return nil, r, err
	}
	fresh := after.md().Sections[at : at+len(after.md().Sections)-len(d.md().Sections)]
	if len(fresh) == 0 || fresh[0].Level != level {
		return nil, r, refuse(task.InvalidTitle, evidence{"title": clip(title)}, "Title does not make a heading here: %s", clip(title))
	}
	for _, n := range fresh[1:] { // the subsections in the content
		if n.Level <= level {
			return nil, r, refuse(task.InvalidSectionContent, evidence{"document": d.address()}, "Content of %q holds a heading of level %d, want a deeper one", title, n.Level)
		}
	}
	r.NewSection, r.Depth = fresh[0].Anchor, fresh[0].Level
	return after, r, nil
}

// replaceOwn replaces section i's own text.
func (d *document) replaceOwn(i int, body string) []byte {
	s := d.md().Sections[i]
	from, eol := d.bodyStart(i), d.eol()
	head := d.src[:from]
	text := ""
	if len(head) > 0 && head[len(head)-1] != '\n' && head[len(head)-1] != '\r' {
		text = eol
	}
	if body != "" {
		// A field such as "* Status: x" stays directly below its heading.
		if d.startsAtOnce(i) && isItem(body) {
			text += body + eol
		} else {
			text += eol + body + eol
		}
	}
	if s.OwnEnd < len(d.src) {
		text += eol
	}
	return splice(d.src, from, s.OwnEnd, text)
}

// startsAtOnce reports whether no blank line follows section i's heading.
func (d *document) startsAtOnce(i int) bool {
	from, end := d.bodyStart(i), d.md().Sections[i].OwnEnd
	return from < end && d.src[from] != '\n' && d.src[from] != '\r'
}

// prependOwn inserts text directly below the heading of section i.
func (d *document) prependOwn(i int, body string) []byte {
	s := d.md().Sections[i]
	from, eol := d.bodyStart(i), d.eol()
	rest := d.src[from:s.OwnEnd]
	if len(strings.TrimSpace(string(rest))) == 0 {
		return d.replaceOwn(i, body)
	}
	if !d.startsAtOnce(i) {
		body = eol + body
		rest := strings.TrimLeft(string(rest), " \t")
		if strings.HasPrefix(rest, eol) {
			return splice(d.src, from, from, body+eol)
		}
	}
	first, _ := lineEnd(d.src, from, s.OwnEnd)
	if isItem(string(d.src[from:first])) && isItem(body) {
		return splice(d.src, from, from, body+eol)
	}
	return splice(d.src, from, from, body+eol+eol)
}

// ViewSectionRequest holds the arguments of view_section.
type ViewSectionRequest struct {
	Document string     `json:"document" jsonschema:"Such as '/project/setup.md'"`
	Section  task.Slugs `json:"section" jsonschema:"Anchors, such as '#overview' or 'setup/config'"`
	Limit
}

// ViewSectionAnswer is the answer of view_section. Hash and Mtime can be the precondition
// of a write.
type ViewSectionAnswer struct {
	Document string         `json:"document"`
	Sections []SectionData  `json:"sections"`
	Failed   []Failed       `json:"failed,omitempty"` // sections that cannot be shown
	Summary  SectionSummary `json:"summary"`
	Hash     string         `json:"hash"`
	Mtime    string         `json:"mtime"`
}

// SectionData is one section in full.
type SectionData struct {
	Slug                string    `json:"slug"`
	Title               string    `json:"title"`
	Content             string    `json:"content"`
	Rest                string    `json:"content_rest,omitempty"` // argument of read_doc
	Depth               int       `json:"depth"`
	FullPath            string    `json:"full_path"`
	Parent              string    `json:"parent,omitempty"`
	WordCount           int       `json:"word_count"`
	Links               []string  `json:"links"` // targets of links and references, each once
	LinksOmitted        int       `json:"links_omitted,omitempty"`
	HierarchicalContext *evidence `json:"hierarchical_context"`
}

// SectionSummary holds counts of the sections viewed.
type SectionSummary struct {
	TotalSections     int  `json:"total_sections"`
	TotalWords        int  `json:"total_words"`
	HasContent        bool `json:"has_content"`
	HierarchicalStats struct {
		MaxDepth             int      `json:"max_depth"`
		Namespaces           []string `json:"namespaces"`
		FlatSections         int      `json:"flat_sections"`
		HierarchicalSections int      `json:"hierarchical_sections"`
	} `json:"hierarchical_stats"`
}

// ViewSection implements view_section: it returns the requested sections in the given order,
// each once.
func (d *Docs) ViewSection(_ context.Context, r ViewSectionRequest) (*ViewSectionAnswer, error) {
	if err := checkSlugs(r.Section, "section", task.TooManySections); err != nil {
		return nil, err
	}
	doc, budget, err := d.view(r.Document, r.Limit)
	if err != nil {
		return nil, err
	}
	var places []place
	a := &ViewSectionAnswer{Document: doc.address(), Sections: []SectionData{}, Hash: doc.hash(), Mtime: doc.mtime()}
	a.Summary.HierarchicalStats.Namespaces = []string{}
	seen := map[int]bool{}
	var first error
	for _, text := range r.Section {
		slug, err := doc.parseSlug(text, task.InvalidSlug)
		i, ok := doc.find(slug)
		if err == nil && !ok {
			err = doc.sectionNotFound(slug)
		}
		if err != nil {
			first, a.Failed = cmp.Or(first, err), append(a.Failed, Failed{clip(text), err.Error()})
			continue
		}
		if seen[i] {
			continue
		}
		seen[i] = true
		s := doc.md().Sections[i]
		content := doc.text(s)
		v := SectionData{Slug: s.Anchor, Title: s.Heading, Content: content, Depth: s.Level, FullPath: doc.address() + "#" + s.Anchor,
			WordCount: len(strings.Fields(content)), Links: targets([]byte(content))}
		if s.Parent >= 0 {
			v.Parent = doc.md().Sections[s.Parent].Anchor
		}
		stats := &a.Summary.HierarchicalStats
		if at := strings.LastIndexByte(slug, '/'); at >= 0 {
			v.HierarchicalContext = &evidence{"full_path": slug, "parent_path": slug[:at], "section_name": slug[at+1:], "depth": strings.Count(slug, "/") + 1}
			stats.HierarchicalSections++
			stats.MaxDepth = max(stats.MaxDepth, strings.Count(slug, "/")+1)
			if !slices.Contains(stats.Namespaces, slug[:at]) {
				stats.Namespaces = append(stats.Namespaces, slug[:at])
			}
		} else {
			stats.FlatSections++
			stats.MaxDepth = max(stats.MaxDepth, 1)
		}
		a.Sections, places = append(a.Sections, v), append(places, doc.at(s.Start))
		a.Summary.TotalSections++
		a.Summary.TotalWords += v.WordCount
		a.Summary.HasContent = a.Summary.HasContent || v.WordCount > 0
	}
	if len(a.Sections) == 0 {
		return nil, first
	}
	var texts, links []fit.Part
	for i := range a.Sections {
		s := &a.Sections[i]
		texts, links = append(texts, places[i].text(&s.Content, &s.Rest)), append(links, shortened(&s.Links, &s.LinksOmitted))
	}
	return a, shorten(budget, a, append(texts, links...))
}

// targets returns the targets of the links and references in a text, in order, each once.
func targets(text []byte) []string {
	out := []string{}
	add := func(t string) {
		if t != "" && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	for _, l := range markdown.Links(text) {
		add(l.Raw)
	}
	for _, r := range markdown.References(text) {
		add(r.Raw)
	}
	return out
}
