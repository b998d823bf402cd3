// Package drift finds statements of documents that the folder contradicts: names of files,
// symbols, flags, commands, keys and environment variables that the folder had, and has not
// any more, and links that led to something once.
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
	"slices"
	"strings"
	"time"

	"cairn/internal/face/doctor"
	"cairn/internal/folder/workspace"
	"cairn/internal/text/git"
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
	// Sure is an estimate of the probability that the statement is wrong: .9 if a commit made
	// it so, and .5 if the folder never declared the name, or never had the target of the link.
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
	// All includes the findings that are not sure.
	All bool
	// Progress receives what Check does; it may be nil.
	Progress func(stage string)
}

// The values of Finding.Sure.
const (
	sure     = .9
	unproven = .5
)

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
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	f.progress = o.Progress
	var all []*claim
	programs := f.programs()
	for _, doc := range f.docs {
		if text, err := t.Text(doc); err == nil {
			all = append(all, claims(doc, text, programs)...)
		}
	}
	links, err := links(ctx, t)
	if err != nil {
		return nil, err
	}
	all = append(all, links...)
	r.Claims = len(all)
	if err := f.scan(ctx, all); err != nil {
		return nil, err
	}
	if f.head != nil {
		if err := r.past(ctx, f, all, until); err != nil {
			return nil, err
		}
	}
	for _, c := range links {
		if c.evidence == nil && until == nil && !c.found {
			r.Findings = append(r.Findings, c.finding(unproven, c.fix))
		}
	}
	if !o.All {
		r.Findings = slices.DeleteFunc(r.Findings, func(n *Finding) bool { return n.Sure < sure })
	}
	slices.SortStableFunc(r.Findings, func(a, b *Finding) int { return cmp.Or(strings.Compare(a.Path, b.Path), a.Line-b.Line) })
	return r, r.leaveOut(dir, t)
}

func (c *claim) finding(sure float64, folder string) *Finding {
	return &Finding{Path: c.doc, Line: c.line, Anchor: c.anchor, Kind: c.kind, Says: c.text, Folder: folder, Sure: sure, ID: id(c.doc, c.kind, c.text, c.full)}
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
	sections := map[string][]*claim{}
	for _, c := range all {
		sections[c.doc+"#"+c.anchor] = append(sections[c.doc+"#"+c.anchor], c)
	}
	for _, c := range absent {
		e := c.evidence
		if e == nil {
			continue
		}
		if err := p.date(c); err != nil {
			return err
		}
		ok, err := p.stated(c)
		if err != nil {
			return err
		}
		if !ok {
			c.evidence = nil
			continue
		}
		certain, err := p.certain(c, sections[c.doc+"#"+c.anchor])
		if err != nil {
			return err
		}
		n := c.finding(unproven, "was in "+e.file.Path)
		if certain {
			n.Sure = sure
		}
		switch c.kind {
		case Path:
			n.Folder = "was " + e.file.Path
		case Sample:
			n.Folder = "parsed before"
		case Link, Anchor:
			n.Folder = c.fix
		}
		if c.fix == "" {
			if n.Now, err = p.now(c); err != nil {
				return err
			}
		}
		if e.since != nil {
			n.Since = &Since{e.since.Hash.String(), e.since.Time, e.since.Subject}
		}
		r.Findings = append(r.Findings, n)
	}
	return nil
}

// links returns the claims of the broken links between documents.
func links(ctx context.Context, t *workspace.Tasks) (claims []*claim, err error) {
	list, err := doctor.Links(ctx, t)
	for _, l := range list {
		if !l.Error || records.MatchString(l.Path) {
			continue
		}
		c := &claim{doc: l.Path, line: l.Line, kind: Link, text: l.Message, path: l.Target, fix: l.Fix}
		if l.Kind == "broken-anchor" {
			c.kind = Anchor
			_, c.value, _ = strings.Cut(l.Message, " has no section #")
			text, err := t.Text(l.Target) // an attribute of a tag can be the anchor, too
			c.found = err == nil && strings.Contains(string(text), `="`+c.value+`"`)
		}
		claims = append(claims, c)
	}
	return claims, err
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
