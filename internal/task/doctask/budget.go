package doctask

import (
	"bytes"
	"errors"
	"fmt"

	"cairn/internal/task"
	"cairn/internal/text/fit"
)

// Limit is the maximum number of tokens of an answer. Texts that do not fit are cut between
// lines, and the field content_rest is the argument of read_doc for the rest.
type Limit struct {
	MaxTokens *int `json:"max_tokens,omitempty" schema:"min=200" jsonschema:"Limit of the answer"` // nil is Options.Budget
}

// minTokens is the smallest valid max_tokens.
const minTokens = 200

// budget returns the budget of a request.
func (d *Docs) budget(l Limit) (fit.Budget, error) {
	b := d.o.Budget
	if l.MaxTokens == nil || b.Count == nil {
		return b, nil
	}
	if b.Tokens = *l.MaxTokens; b.Tokens < minTokens {
		return b, refuse(task.InvalidParameter, evidence{"parameter": "max_tokens", "value": b.Tokens, "min": minTokens}, "Parameter max_tokens is %d, want at least %d", b.Tokens, minTokens)
	}
	return b, nil
}

// view loads the document that a request for texts names, and returns the budget of the
// answer.
func (d *Docs) view(address string, l Limit) (*document, fit.Budget, error) {
	b, err := d.budget(l)
	if err != nil {
		return nil, b, err
	}
	doc, err := d.open(address)
	return doc, b, err
}

// viewTasks is view for a document with tasks.
func (d *Docs) viewTasks(address string, l Limit) (*document, []docTask, fit.Budget, error) {
	doc, b, err := d.view(address, l)
	if err != nil {
		return nil, nil, b, err
	}
	all, err := doc.openTasks()
	return doc, all, b, err
}

// shorten shortens an answer to a budget.
func shorten(b fit.Budget, answer any, parts []fit.Part) error {
	err := b.Fit(answer, parts)
	if small, ok := errors.AsType[*fit.TooSmallError](err); ok {
		return refuse(task.ResourceExhausted, evidence{"parameter": "max_tokens", "value": small.Limit, "need": small.Need}, "%s", small)
	}
	return err
}

// place is the start of a text of an answer.
type place struct {
	path string
	line int
}

// at returns the place of an offset of the document.
func (d *document) at(offset int) place {
	head := d.src[:offset]
	return place{d.path, 1 + bytes.Count(head, []byte("\n")) + bytes.Count(head, []byte("\r")) - bytes.Count(head, []byte("\r\n"))}
}

// text returns the part for a text that begins at p. Keep sets *rest to the argument of
// read_doc for the rest of the text.
func (p place) text(text, rest *string) fit.Part {
	end := p.line + bytes.Count([]byte(*text), []byte("\n"))
	return fit.Lines(text, func(kept, all int) {
		if *rest = ""; kept < all {
			*rest = fmt.Sprintf("%s:%d-%d", p.path, p.line+kept, end)
		}
	})
}

// shortened returns the part for a list. Keep sets *cut to the number of omitted entries.
func shortened[E any](all *[]E, cut *int) fit.Part {
	whole := *all
	return fit.Part{
		Units: len(whole),
		Unit:  func(i int) any { return whole[i] },
		Keep:  func(n int) { *all, *cut = whole[:n:n], len(whole)-n },
	}
}

// parts returns the parts of a task, the most important first.
func (t *TaskToWork) parts() []fit.Part {
	parts := []fit.Part{t.place.text(&t.Content, &t.Rest)}
	for _, w := range []*Workflow{t.Workflow, t.MainWorkflow} {
		if w != nil {
			parts = append(parts, fit.Lines(&w.Content, func(kept, all int) {
				if w.Rest = ""; kept < all {
					w.Rest = w.path
				}
			}))
		}
	}
	nodes := preorder(nil, t.ReferencedDocuments)
	parts = append(parts, t.nodes(nodes))
	for _, n := range nodes {
		text := n.place.text(&n.Content, &n.Rest)
		keep := text.Keep
		text.Keep = func(k int) {
			keep(k)
			n.Omitted = k == 0 && text.Units > 0
		}
		text.Absent, text.Share = func() bool { return n.dropped }, true
		if n.Content != "" {
			parts = append(parts, text)
		}
	}
	return parts
}

// preorder appends the documents, each before its children.
func preorder(list, docs []*LoadedDocument) []*LoadedDocument {
	for _, n := range docs {
		list = preorder(append(list, n), n.Children)
	}
	return list
}

// nodes returns the part for the list of documents without their texts.
func (t *TaskToWork) nodes(nodes []*LoadedDocument) fit.Part {
	truncated := t.ReferencesTruncated
	return fit.Part{
		Half:  true, // the other half is for their texts
		Units: len(nodes),
		Unit: func(i int) any {
			return &LoadedDocument{Path: nodes[i].Path, Title: nodes[i].Title, Namespace: nodes[i].Namespace, Omitted: true, Rest: nodes[i].Path, Children: []*LoadedDocument{}}
		},
		Keep: func(n int) {
			t.ReferencedDocuments, t.ReferencesTruncated = nil, truncated || n < len(nodes)
			for i, node := range nodes {
				node.Children, node.dropped = []*LoadedDocument{}, i >= n
			}
			for _, node := range nodes[:n] { // each after its parent
				list := &t.ReferencedDocuments
				if node.Depth > 0 {
					list = &node.parent.Children
				}
				*list = append(*list, node)
			}
		},
	}
}
