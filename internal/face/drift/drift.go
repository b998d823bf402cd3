// Package drift finds statements of documents that the folder contradicts: names of files,
// symbols, flags, commands, keys and environment variables that the folder had, and has not
// any more, and broken links.
//
// A document states names in code spans, code blocks and links. Most names that a folder
// lacks are somebody else's. A name is drift only if a commit had it outside of the
// documents while the document stated it, and nothing in the folder has it now. A value is
// drift if the line that had it next to its name has another one. Nothing is executed.
package drift

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"cairn/internal/face/doctor"
	"cairn/internal/folder/workspace"
	"cairn/internal/text/git"
	"cairn/internal/text/markdown"
)

// Kind is what a statement is about.
type Kind string

const (
	Path        Kind = "path"
	Link        Kind = "link"
	Anchor      Kind = "anchor"
	Symbol      Kind = "symbol"
	Flag        Kind = "flag"
	Command     Kind = "command"
	Environment Kind = "environment"
	Key         Kind = "key"
	Value       Kind = "value"
	Signature   Kind = "signature"
	Sample      Kind = "sample"
)

// Finding is a statement that the folder contradicts.
type Finding struct {
	Path   string `json:"path"`
	Line   int    `json:"line"` // from 1
	Anchor string `json:"anchor,omitempty"`
	Kind   Kind   `json:"kind"`
	Says   string `json:"says"`
	Folder string `json:"folder"`        // what the folder has
	Now    string `json:"now,omitempty"` // the name that took the place
	Since  *Since `json:"since,omitempty"`
	// Sure is an estimate of the probability that the statement is wrong: .9, or .7 if no
	// commit declared the name.
	Sure float64 `json:"sure"`
	// ID identifies the statement by its document, its kind, its text and the whole line.
	ID string `json:"id"`
}

// Since is the commit from which on a statement is wrong.
type Since struct {
	Commit  string    `json:"commit"`
	Time    time.Time `json:"time"`
	Subject string    `json:"subject"`
}

// Report is the result of Check.
type Report struct {
	Documents int        `json:"documents"`
	Claims    int        `json:"claims"`
	Findings  []*Finding `json:"findings"`
	// Accepted and Ignored count the findings that the list of the folder has.
	Accepted int `json:"accepted"`
	Ignored  int `json:"ignored"`
	Opened   int `json:"opened,omitempty"` // cards
}

// Options configures Check.
type Options struct {
	// Since names a commit; only what came to differ after it is reported.
	Since string
}

// Check compares the documents of the folder at dir with its files and its history.
func Check(ctx context.Context, dir string, t *workspace.Tasks, o Options) (*Report, error) {
	f, err := open(ctx, dir, t)
	if err != nil {
		return nil, err
	}
	defer f.close()
	r := &Report{Documents: len(f.docs), Findings: []*Finding{}}
	var until *git.Commit
	if o.Since != "" {
		if f.head == nil {
			return nil, fmt.Errorf("--since %s: %w", o.Since, git.ErrNone)
		}
		if until, err = f.repo.Named(o.Since); err != nil {
			return nil, err
		}
	}
	var all []*claim
	programs := f.programs()
	for _, doc := range f.docs {
		if text, err := t.Text(doc); err == nil {
			all = append(all, claims(doc, text, programs)...)
		}
	}
	r.Claims = len(all)
	if err := f.scan(ctx, all); err != nil {
		return nil, err
	}
	if f.head != nil {
		if err := r.past(ctx, f, all, until); err != nil {
			return nil, err
		}
	}
	if err := r.links(ctx, f, t, until); err != nil {
		return nil, err
	}
	slices.SortStableFunc(r.Findings, func(a, b *Finding) int { return cmp.Or(strings.Compare(a.Path, b.Path), a.Line-b.Line) })
	return r, r.leaveOut(dir, t)
}

// past adds the findings that the history proves.
func (r *Report) past(ctx context.Context, f *folder, all []*claim, until *git.Commit) error {
	var absent []*claim
	for _, c := range all {
		if !c.found && (c.kind != Signature || c.count >= 0) {
			absent = append(absent, c)
		}
	}
	p := &past{folder: f}
	if err := p.search(ctx, absent, until); err != nil {
		return err
	}
	for _, c := range absent {
		e := c.evidence
		if e == nil {
			continue
		}
		if err := p.date(c); err != nil {
			return err
		}
		if ok, err := p.stated(c); err != nil || !ok {
			if err != nil {
				return err
			}
			continue
		}
		now, err := p.now(c)
		if err != nil {
			return err
		}
		n := &Finding{Path: c.doc, Line: c.line, Anchor: c.anchor, Kind: c.kind, Says: c.text, Now: now, Sure: .9, ID: id(c.doc, c.kind, c.text, c.full)}
		if !e.declared {
			n.Sure = .7
		}
		n.Folder = "was in " + e.file.Path
		switch c.kind {
		case Path:
			n.Folder = "was " + e.file.Path
		case Sample:
			n.Folder = "parsed before"
		}
		if e.since != nil {
			n.Since = &Since{e.since.Hash.String(), e.since.Time, e.since.Subject}
		}
		r.Findings = append(r.Findings, n)
	}
	return nil
}

// links adds the broken links between documents; with until those that led to something then.
func (r *Report) links(ctx context.Context, f *folder, t *workspace.Tasks, until *git.Commit) error {
	list, err := doctor.Links(ctx, t)
	for _, l := range list {
		if !l.Error || records.MatchString(l.Path) || f.served(l) {
			continue
		}
		if until != nil {
			before, err := f.content(until, l.Target)
			if err != nil {
				return err
			}
			_, anchor, _ := strings.Cut(l.Message, "#")
			anchor, _, _ = strings.Cut(anchor, ":")
			if _, ok := markdown.Resolve(markdown.Parse(l.Target, before), anchor); before == nil || l.Kind == "broken-anchor" && !ok {
				continue
			}
		}
		n := &Finding{Path: l.Path, Line: l.Line, Kind: Link, Says: l.Message, Folder: l.Fix, Sure: .9}
		if l.Kind == "broken-anchor" {
			n.Kind = Anchor
		}
		n.ID = id(n.Path, n.Kind, l.Message, "")
		r.Findings = append(r.Findings, n)
	}
	return err
}

// served reports whether a link can lead to a page of the site that is made from the
// documents, or to what only a generator of documents knows.
func (f *folder) served(l doctor.Finding) bool {
	target, anchor, _ := strings.Cut(strings.TrimSuffix(strings.Fields(l.Message)[0], ":"), "#")
	name := strings.TrimSuffix(path.Base(target), ".html")
	if l.Kind == "broken-anchor" {
		text, err := f.read(l.Target)
		// An attribute of a tag can be the anchor, too.
		return err != nil || squeezed(text, anchor) || strings.Contains(string(text), `="`+anchor+`"`)
	}
	return strings.ContainsAny(target, ":`{}$<>") || strings.HasSuffix(target, "/") || path.Ext(target) == ".html" ||
		strings.HasPrefix(target, "@") && path.Ext(target) != "" && path.Ext(target) != ".md" ||
		path.Ext(target) == "" && (f.names[name] || f.names[name+".md"] || strings.Contains(target, "/") && !f.names[path.Dir(target)])
}

// squeezed reports whether a heading of a text has the letters and digits of an anchor.
func squeezed(text []byte, anchor string) bool {
	squeeze := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return unicode.ToLower(r)
			}
			return -1
		}, s)
	}
	want := squeeze(anchor)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(strings.TrimLeft(line, " >"), "#") && strings.HasSuffix(squeeze(line), want) {
			return true
		}
	}
	return want == ""
}

// id returns the identity of a statement.
func id(doc string, kind Kind, text, line string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{doc, string(kind), text, strings.Join(strings.Fields(line), " ")}, "\x00")))
	return hex.EncodeToString(sum[:6])
}

// Text returns a line for each finding, and the counts.
func (r *Report) Text() string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s:%d: %s %s: %s", f.Path, f.Line, f.Kind, f.Says, f.Folder)
		if f.Now != "" {
			fmt.Fprintf(&b, ", now %s", f.Now)
		}
		if f.Since != nil {
			fmt.Fprintf(&b, ", since %.9s %s (%s)", f.Since.Commit, f.Since.Time.Format(time.DateOnly), f.Since.Subject)
		}
		fmt.Fprintf(&b, " [%s, sure %.2g]\n", f.ID, f.Sure)
	}
	fmt.Fprintf(&b, "%d of %d statements in %d documents differ", len(r.Findings), r.Claims, r.Documents)
	if r.Accepted+r.Ignored > 0 {
		fmt.Fprintf(&b, "; %d accepted, %d ignored", r.Accepted, r.Ignored)
	}
	if r.Opened > 0 {
		fmt.Fprintf(&b, "; %d cards", r.Opened)
	}
	return b.String()
}
