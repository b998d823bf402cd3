package notes

import (
	"context"
	"regexp"
	"slices"
	"time"

	"cairn/internal/task"
	"cairn/internal/text/markdown"
	"cairn/internal/text/receipt"
)

// edit returns the text of a note after a correction or a confirmation. It keeps what the
// request does not name to the byte, such as fields that people have added.
func (s *Store) edit(ctx context.Context, r Request, text []byte, cited []receipt.Full) ([]byte, error) {
	front := markdown.ReadFrontMatter(text)
	if !front.Found() {
		text, front = slices.Concat([]byte("---\n---\n"), text), markdown.FrontMatter{End: len("---\n---\n")}
	}
	head, rest := text[:front.End:front.End], text[front.End:]
	if len(cited) > 0 {
		head = withReceipts(receiptList.ReplaceAll(head, nil), cited)
	}
	if r.Text != "" {
		rest = []byte(body(r))
	}
	text, err := s.renew(ctx, slices.Concat(head, rest))
	if err != nil {
		return nil, err
	}
	edits := []markdown.FieldEdit{{Key: "confirmed", Value: s.o.Now().UTC().Truncate(time.Second)}}
	if r.Title != "" || r.Text != "" {
		edits = append(edits, markdown.FieldEdit{Key: "title", Value: titleOf(r)})
	}
	if len(r.Tags) > 0 {
		edits = append(edits, markdown.FieldEdit{Key: "tags", Value: r.Tags})
	}
	if text, err = markdown.EditFrontMatter(text, edits...); err != nil {
		return nil, task.Invalid("%s", err)
	}
	return text, nil
}

// receiptList matches the lines that withReceipts writes.
var receiptList = regexp.MustCompile(`(?m)^(receipts:[ \t]*|[ \t]*- \{"receipt":.*)\r?\n`)

// renew replaces the receipts in a note by those of the present lines. It fails if lines are
// removed.
func (s *Store) renew(ctx context.Context, text []byte) ([]byte, error) {
	cited := receipt.In(text, 10*MaxReceipts)
	list := make([]receipt.Full, len(cited))
	for i := range cited {
		list[i] = cited[i].Full
	}
	findings, err := receipt.Check(ctx, s.o.Source, list)
	if err != nil {
		return nil, err
	}
	for i, f := range findings {
		if f.Status == receipt.Same {
			continue
		}
		section, err := s.receipt(receipt.Receipt{Path: f.Receipt.Path, Anchor: f.Receipt.Anchor})
		known := f.Receipt.Anchor == "" || err == nil || f.Status == receipt.Moved
		if f.Now == nil || !known {
			return nil, task.Invalid("the lines of %s are removed: name in rests_on what the note rests on now, or drop it", f.Receipt)
		}
		now := f.Now.Receipt
		if f.Status == receipt.Changed && section != nil && (now.Start < section.Receipt.Start || now.End > section.Receipt.End) {
			now = section.Receipt // what is around has changed, too
		}
		if findings[i].Now, err = s.receipt(now); err != nil {
			return nil, err
		}
	}
	text, _, err = receipt.Repair(text, cited, findings, receipt.Moved, receipt.Changed)
	return text, err
}

// cite returns the receipts of places. Lines with a mark must still be there.
func (s *Store) cite(ctx context.Context, places []string) ([]receipt.Full, error) {
	cited := make([]receipt.Full, len(places))
	for i, p := range places {
		var r receipt.Receipt
		if r.UnmarshalText([]byte(p)) == nil {
			findings, err := receipt.Check(ctx, s.o.Source, []receipt.Full{{Receipt: r}})
			if err != nil {
				return nil, err
			}
			switch f := findings[0]; f.Status {
			case receipt.Moved:
				r = f.Now.Receipt
			case receipt.Changed, receipt.Removed:
				return nil, task.Invalid("rests_on: the lines of %s are not what they were: read them again", p)
			}
		} else {
			var err error
			r.Path, r.Anchor, r.Start, r.End, err = markdown.SplitPlace(p, func(path string) bool { _, err := s.o.Source.Text(path); return err == nil })
			if err != nil || r.Anchor == "" && r.Start == 0 {
				return nil, task.Invalid("rests_on: %.200q names no lines; want docs/a.md#anchor or docs/a.md:3-9", p)
			}
		}
		full, err := s.receipt(r)
		if err != nil {
			return nil, err
		}
		cited[i] = *full
	}
	return cited, nil
}

// receipt returns the receipt of the lines of r, or of its section if it has none. It fails if
// they have secrets, because receipts hold text.
func (s *Store) receipt(r receipt.Receipt) (*receipt.Full, error) {
	text, err := s.o.Source.Text(r.Path)
	if err != nil {
		return nil, task.Invalid("rests_on: %s cannot be read: %s", r.Path, err)
	}
	if r.Start == 0 { // the section
		doc := markdown.Parse(r.Path, text)
		i, ok := markdown.Resolve(doc, r.Anchor)
		if !ok {
			return nil, task.Invalid("rests_on: %s has no section %.100q", r.Path, r.Anchor)
		}
		r.Anchor, r.Start, r.End = doc.Sections[i].Anchor, doc.Sections[i].StartLine, doc.Sections[i].EndLine
	}
	full, err := receipt.Make(r.Path, r.Anchor, text, r.Start, r.End)
	if err != nil {
		return nil, task.Invalid("rests_on: %s", err)
	}
	masked, _ := s.o.Masks.Mask(text)
	if other, err := receipt.Make(r.Path, r.Anchor, masked, r.Start, r.End); err != nil || other.SHA256 != full.SHA256 {
		return nil, task.Invalid("rests_on: the lines %d-%d of %s have a secret; cite other lines", r.Start, r.End, r.Path)
	}
	return &full, nil
}
