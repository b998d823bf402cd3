package receipt

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"cairn/internal/text/markdown"
)

// Source reads the documents of a folder.
type Source interface {
	// Text returns the text of a document. It wraps fs.ErrNotExist if there is none.
	Text(path string) ([]byte, error)
	// Documents returns the paths of all documents.
	Documents(ctx context.Context) ([]string, error)
}

// Status is what became of cited lines.
type Status string

const (
	Same    Status = "same"    // the same bytes are at the same place
	Moved   Status = "moved"   // the same text is elsewhere, or its white space differs
	Changed Status = "changed" // another text is at the place
	Removed Status = "removed" // the folder has no such text
)

// Finding says what became of the lines of a receipt.
type Finding struct {
	Receipt Receipt `json:"receipt"`
	Status  Status  `json:"status"`
	// Now is the receipt of the present lines: of Moved, and of Changed if they are known.
	Now *Full `json:"now,omitempty"`
	// Spacing reports that the white space of moved lines differs.
	Spacing bool `json:"spacing,omitempty"`
	// Diff shows the removed and the added lines of Changed, if the receipt has its text.
	Diff string `json:"diff,omitempty"`
	// Reason says why the document of Removed cannot be read.
	Reason string `json:"reason,omitempty"`
}

// Holds reports whether the cited text is still there, alone in its lines: an addition to a
// line may change what it says.
func (f *Finding) Holds() bool {
	was := f.Receipt.Mark
	return f.Status == Same || f.Status == Moved && f.Now.Receipt.Mark.spaced() == was.spaced() && f.Now.Receipt.Mark.length() == was.length()
}

// minElsewhere is the least length, without white space, of a text that counts as moved
// when another document has it. Shorter texts occur by chance.
const minElsewhere = 24

// maxHashed bounds the bytes that a search for moved lines hashes in a document.
const maxHashed = 32 << 20

// Check finds out what became of the lines of receipts, in the order of the receipts. It
// reads each document once, and the other documents of the folder only if lines are
// missing from theirs.
func Check(ctx context.Context, s Source, receipts []Full) ([]Finding, error) {
	c := checker{receipts: receipts, findings: make([]Finding, len(receipts))}
	byPath := map[string][]int{}
	for i := range receipts {
		c.findings[i].Receipt = receipts[i].Receipt
		byPath[receipts[i].Receipt.Path] = append(byPath[receipts[i].Receipt.Path], i)
	}
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		text, err := s.Text(path)
		if err != nil {
			for _, i := range byPath[path] {
				if c.findings[i].Status = Removed; !errors.Is(err, fs.ErrNotExist) {
					c.findings[i].Reason = err.Error()
				}
			}
			c.missing = append(c.missing, byPath[path]...)
			continue
		}
		d := newDocument(text)
		for _, i := range byPath[path] {
			c.check(i, d)
		}
	}
	return c.findings, c.elsewhere(ctx, s)
}

type checker struct {
	receipts []Full
	findings []Finding
	missing  []int // receipts to look for in other documents
}

// check compares a receipt with its document.
func (c *checker) check(i int, d *document) {
	f, r := &c.findings[i], &c.receipts[i]
	at := r.Receipt
	if at.End <= d.lines() && r.matches(d.raw(at.Start, at.End)) {
		f.Status = Same
		return
	}
	if c.moved(i, at.Path, d, true) {
		return
	}
	start, end, sure := r.around(d)
	if start == 0 && !sure {
		start, end = sectionOf(at.Path, at.Anchor, d)
	}
	if f.Status = Changed; start > 0 {
		if now, err := d.full(at.Path, at.Anchor, start, end); err == nil {
			f.Now, f.Diff = &now, diff(r.Text, d.raw(start, end))
		}
	}
	if f.Now == nil && sure {
		f.Status = Removed
	}
	// Lines between the same neighbours were edited, unless another document has them.
	if f.Now == nil || !sure || r.Text != "" && !alike(r.Text, d.raw(start, end)) {
		c.missing = append(c.missing, i)
	}
}

// matches reports whether lines are those of a receipt.
func (r *Full) matches(lines []byte) bool {
	if r.SHA256 != "" {
		sum := sha256.Sum256(lines)
		return hex.EncodeToString(sum[:]) == strings.ToLower(r.SHA256)
	}
	return exactOf(lines) == r.Receipt.Mark.exact()
}

// moved looks for the text of a receipt in a document, at the beginning of each line or of
// each word, and records the match that is the same to the byte, or else the nearest.
func (c *checker) moved(i int, path string, d *document, words bool) bool {
	r := &c.receipts[i]
	m, hashed := r.Receipt.Mark, 0
	if m.length() == maxLength {
		return false // the length is not known
	}
	d.pack()
	power := powerOf(m.length())
	var best Finding
	try := func(at int) (more bool) {
		to := at + m.length()
		if to > len(d.solid) || hashed > maxHashed {
			return false
		}
		if d.rolled(at, to, power) != m.rolled() {
			return true
		}
		if hashed += m.length(); spacedOf(d.solid[at:to]) != m.spaced() {
			return true
		}
		start, end := d.line(at), d.line(to-1)
		spacing := !r.matches(d.raw(start, end))
		if best.Now != nil && (spacing && !best.Spacing || spacing == best.Spacing && distance(start, r.Receipt.Start) >= distance(best.Now.Receipt.Start, r.Receipt.Start)) {
			return true
		}
		if now, err := d.full(path, "", start, end); err == nil {
			best = Finding{Receipt: r.Receipt, Status: Moved, Now: &now, Spacing: spacing}
		}
		return true
	}
	for line := range d.lines() {
		if !try(d.inner[line]) {
			break
		}
	}
	for w := 0; words && best.Now == nil && w < len(d.words) && try(d.words[w]); w++ {
	}
	if best.Now == nil {
		return false
	}
	if path == r.Receipt.Path {
		best.Now.Receipt.Anchor = r.Receipt.Anchor
	}
	c.findings[i] = best
	return true
}

func distance(a, b int) int { return max(a-b, b-a) }

// around returns the lines between the neighbours of a receipt, or next to the one that is
// there; 0 if there are none. It reports whether the document has both neighbours.
func (r *Full) around(d *document) (start, end int, both bool) {
	if r.SHA256 == "" {
		return 0, 0, false // the short form has no neighbours
	}
	at, height := r.Receipt, r.Receipt.End-r.Receipt.Start+1
	above, below := 0, d.lines()+1
	for n := 1; n <= d.lines() && r.Before != ""; n++ {
		if d.neighbour(n) == r.Before && (above == 0 || distance(n, at.Start-1) < distance(above, at.Start-1)) {
			above = n
		}
	}
	expected := at.End + 1
	if above > 0 {
		expected = above + height + 1
	}
	for n := above + 1; n <= d.lines() && r.After != ""; n++ {
		if d.neighbour(n) == r.After && (below > d.lines() || distance(n, expected) < distance(below, expected)) {
			below = n
		}
	}
	hasAbove, hasBelow := above > 0 || r.Before == "", below <= d.lines() || r.After == ""
	switch start, end = above+1, below-1; {
	case hasAbove && !hasBelow:
		end = min(above+height, d.lines())
	case hasBelow && !hasAbove:
		start = max(1, below-height)
	case !hasAbove:
		return 0, 0, false
	}
	for start <= end && len(d.packed(start, start)) == 0 {
		start++
	}
	for start <= end && len(d.packed(end, end)) == 0 {
		end--
	}
	if start > end || hasAbove && r.closed(d, above+1) && !alike(r.Text, d.raw(start, end)) {
		start, end = 0, 0
	}
	return start, end, hasAbove && hasBelow
}

// closed reports whether the first line from n that is not blank is the one that followed
// the cited lines: nothing is left between the neighbours.
func (r *Full) closed(d *document, n int) bool {
	for n <= d.lines() && d.neighbour(n) == "" {
		n++
	}
	return n <= d.lines() && d.neighbour(n) == r.After
}

// sectionOf returns the lines of the section with an anchor; 0 if there is none.
func sectionOf(path, anchor string, d *document) (start, end int) {
	if anchor == "" {
		return 0, 0
	}
	doc := markdown.Parse(path, d.text)
	i, ok := markdown.Resolve(doc, anchor)
	if !ok {
		return 0, 0
	}
	return doc.Sections[i].StartLine, doc.Sections[i].EndLine
}

// elsewhere looks for the missing receipts in the other documents.
func (c *checker) elsewhere(ctx context.Context, s Source) error {
	c.missing = slices.DeleteFunc(c.missing, func(i int) bool { return c.receipts[i].Receipt.Mark.length() < minElsewhere })
	if len(c.missing) == 0 {
		return nil
	}
	paths, err := s.Documents(ctx)
	for _, path := range paths {
		if len(c.missing) == 0 || ctx.Err() != nil {
			break
		}
		text, err := s.Text(path)
		if err != nil {
			continue // removed meanwhile, or not a document
		}
		d := newDocument(text)
		c.missing = slices.DeleteFunc(c.missing, func(i int) bool {
			before := c.findings[i]
			if path == c.receipts[i].Receipt.Path {
				return false
			}
			found := c.moved(i, path, d, false)
			if found && c.findings[i].Spacing && before.Status == Moved {
				c.findings[i] = before
			}
			return found && !c.findings[i].Spacing
		})
	}
	return errors.Join(err, ctx.Err())
}
