package workspace

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"cairn/internal/task/files"
	"cairn/internal/text/receipt"
)

// maxReceipts bounds the receipts of one document that are checked.
const maxReceipts = 100_000

// CheckedReceipt is a receipt in a document, and what became of the lines it cites.
type CheckedReceipt struct {
	In   string `json:"in,omitempty"` // document with the receipt; "" for a text that is none
	Line int    `json:"line,omitempty"`
	receipt.Finding
}

// ReceiptReport lists receipts in the order of the documents with them.
type ReceiptReport struct {
	Receipts []CheckedReceipt       `json:"receipts"`
	Counts   map[receipt.Status]int `json:"counts"`
	// Fixed is the number of receipts that have their present place now.
	Fixed int `json:"fixed,omitempty"`
}

// CheckReceipts checks the receipts in documents; those of all documents of the folder if
// there are none. With fix it writes the present place of moved lines into the documents,
// but never changes a receipt whose text differs. It fails with *InvalidReceiptError if a
// given document cannot be read.
func (t *Tasks) CheckReceipts(ctx context.Context, documents []string, fix bool) (*ReceiptReport, error) {
	paths := documents
	if len(paths) == 0 {
		all, err := t.Paths(ctx, false, nil)
		if err != nil {
			return nil, err
		}
		paths = all
	}
	var cited []receipt.Full
	report := &ReceiptReport{Receipts: []CheckedReceipt{}}
	for _, path := range paths {
		text, err := t.Text(path)
		if err != nil && len(documents) > 0 {
			return nil, &InvalidReceiptError{err}
		}
		line, at := 1, 0
		for _, c := range receipt.In(text, maxReceipts) {
			line, at = line+strings.Count(string(text[at:c.Start]), "\n"), c.Start
			report.Receipts = append(report.Receipts, CheckedReceipt{In: path, Line: line})
			cited = append(cited, c.Full)
		}
	}
	if err := t.check(ctx, report, cited); err != nil {
		return nil, err
	}
	for _, path := range paths {
		if !fix || !slices.ContainsFunc(report.Receipts, func(c CheckedReceipt) bool { return c.In == path && c.Status == receipt.Moved }) {
			continue
		}
		n, err := t.fixReceipts(ctx, path)
		if err != nil {
			return nil, fmt.Errorf("writing %s: %w", path, err)
		}
		report.Fixed += n
	}
	return report, nil
}

// fixReceipts replaces the receipts of moved lines in a document.
func (t *Tasks) fixReceipts(ctx context.Context, path string) (n int, err error) {
	_, err = t.files.Edit(ctx, path, func(old []byte, _ files.Stamp) ([]byte, error) {
		cited := receipt.In(old, maxReceipts)
		list := make([]receipt.Full, len(cited))
		for i := range cited {
			list[i] = cited[i].Full
		}
		findings, err := receipt.Check(ctx, receipts{t}, list)
		if err != nil {
			return nil, err
		}
		var text []byte
		text, n, err = receipt.Repair(old, cited, findings, receipt.Moved)
		return text, err
	})
	return n, err
}

// InvalidReceiptError reports a text that is not a receipt, or a document that cannot be
// read.
type InvalidReceiptError struct{ err error }

func (e *InvalidReceiptError) Error() string { return e.err.Error() }

func (e *InvalidReceiptError) Unwrap() error { return e.err }

// CheckReceiptList checks receipts that are in no document. It fails with
// *InvalidReceiptError if one is none.
func (t *Tasks) CheckReceiptList(ctx context.Context, list []string) (*ReceiptReport, error) {
	full := make([]receipt.Full, len(list))
	for i := range list {
		if err := full[i].Receipt.UnmarshalText([]byte(list[i])); err != nil {
			return nil, &InvalidReceiptError{err}
		}
	}
	report := &ReceiptReport{Receipts: make([]CheckedReceipt, len(full))}
	return report, t.check(ctx, report, full)
}

// check sets what became of the receipts of a report.
func (t *Tasks) check(ctx context.Context, report *ReceiptReport, cited []receipt.Full) error {
	findings, err := receipt.Check(ctx, receipts{t}, cited)
	report.Counts = map[receipt.Status]int{}
	for i, f := range findings {
		report.Receipts[i].Finding = f
		report.Counts[f.Status]++
	}
	return err
}

// Receipt returns the receipt of lines of a document.
func (t *Tasks) Receipt(path, anchor string, start, end int) (receipt.Full, error) {
	text, err := t.Text(path)
	if err != nil {
		return receipt.Full{}, err
	}
	return receipt.Make(path, anchor, text, start, end)
}

// Holds reports whether each receipt is the same, or has its present place now.
func (r *ReceiptReport) Holds() bool {
	return len(r.Receipts) == r.Counts[receipt.Same]+r.Fixed
}

// Text returns a line for each receipt that is not the same, with the lines that differ,
// and the counts.
func (r *ReceiptReport) Text() string {
	var b strings.Builder
	for _, c := range r.Receipts {
		if c.Status == receipt.Same {
			continue
		}
		if c.In != "" {
			fmt.Fprintf(&b, "%s:%d: ", c.In, c.Line)
		}
		fmt.Fprintf(&b, "%s %s", c.Status, c.Receipt)
		if c.Now != nil {
			fmt.Fprintf(&b, ", now %s", c.Now.Receipt)
		}
		if c.Spacing {
			b.WriteString(", with other white space")
		}
		if c.Reason != "" {
			b.WriteString(": " + c.Reason)
		}
		b.WriteString("\n")
		switch {
		case c.Diff != "":
			b.WriteString(c.Diff)
		case c.Status == receipt.Changed && c.Now != nil:
			b.WriteString("+" + strings.ReplaceAll(c.Now.Text, "\n", "\n+") + "\n")
		}
	}
	counts := []string{}
	for _, s := range []receipt.Status{receipt.Same, receipt.Moved, receipt.Changed, receipt.Removed} {
		if n := r.Counts[s]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, s))
		}
	}
	if len(counts) == 0 {
		counts = []string{"no receipts"}
	}
	b.WriteString(strings.Join(counts, ", "))
	if r.Fixed > 0 {
		fmt.Fprintf(&b, ", %d fixed", r.Fixed)
	}
	return b.String()
}

// receipts is the receipt.Source of a folder.
type receipts struct{ *Tasks }

// Text returns the text of a document or of source code. It reads no other file, because a
// difference shows text.
func (r receipts) Text(path string) ([]byte, error) {
	if err := r.selected(context.Background(), r.indexed, path); err != nil {
		return nil, err
	}
	return r.Tasks.Text(path)
}

// Documents returns the paths of the documents and the source code.
func (r receipts) Documents(ctx context.Context) ([]string, error) { return r.Paths(ctx, true, nil) }
