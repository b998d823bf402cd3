package doctask

import (
	"context"
	"strings"

	"cairn/internal/markdown"
)

// node is a referenced document or section.
type node struct {
	path     string // "/a.md" or "/a.md#slug"
	depth    int    // 0 for a reference of the task itself
	refs     []string
	title    string
	content  string
	missing  bool
	children []*node
}

// budget bounds what references cost in one answer.
type budget struct {
	nodes, bytes int
	truncated    bool
}

func (d *Docs) newBudget() *budget { return &budget{nodes: d.o.MaxNodes, bytes: d.o.MaxContent} }

// follow loads what a text of a document refers to, and what that refers to,
// breadth first: each place once, as near to the text as there is a way. It stops
// at the depth, the number of documents and the time of the options; cycles
// end because a place is loaded once.
func (d *Docs) follow(ctx context.Context, doc *document, text []byte, b *budget) []*node {
	ctx, cancel := context.WithTimeout(ctx, d.o.Timeout)
	defer cancel()
	seen := map[string]bool{}
	root := &node{depth: -1}
	type step struct {
		at   *node
		doc  *document
		refs []markdown.Reference
	}
	queue := []step{{root, doc, markdown.References(text)}}
	for k := 0; k < len(queue); k++ {
		s := queue[k]
		for _, ref := range s.refs {
			path, slug := ref.Path, ref.Anchor
			if path == "" {
				path = s.doc.path
			}
			name := "/" + path
			if slug != "" {
				name += "#" + slug
			}
			if seen[name] {
				continue
			}
			seen[name] = true
			if b.nodes == 0 || ctx.Err() != nil {
				b.truncated = true
				return root.children
			}
			b.nodes--
			n := &node{path: name, depth: s.at.depth + 1, refs: []string{}}
			s.at.children = append(s.at.children, n)
			target, part, ok := d.place(s.doc, path, slug)
			if !ok {
				n.missing = true
				continue
			}
			n.title, n.content = target.md.Title, part
			if slug != "" {
				i, _ := target.find(slug)
				n.title = target.md.Sections[i].Heading
			}
			refs := markdown.References([]byte(part))
			for _, r := range refs {
				n.refs = append(n.refs, r.Raw)
			}
			if n.depth+1 < d.o.Depth {
				queue = append(queue, step{n, target, refs})
			}
		}
	}
	return root.children
}

// place loads the document or section a reference means.
func (d *Docs) place(from *document, path, slug string) (doc *document, text string, ok bool) {
	if doc = from; path != from.path {
		clean, err := parseAddress(path)
		if err != nil {
			return nil, "", false
		}
		if doc, err = d.load(clean); err != nil {
			return nil, "", false
		}
	}
	if slug == "" {
		return doc, strings.TrimSpace(string(doc.src[doc.md.FrontMatter.End:])), true
	}
	slug, err := doc.parseSlug(slug, InvalidSlug)
	if err != nil {
		return nil, "", false
	}
	i, found := doc.find(slug)
	if !found {
		return nil, "", false
	}
	return doc, doc.text(doc.md.Sections[i]), true
}

// ReferencedDocument is a reference of a task, listed and not loaded.
type ReferencedDocument struct {
	Path       string   `json:"path"`
	Depth      int      `json:"depth"` // 0 for a reference of the task itself
	References []string `json:"references"`
	Missing    bool     `json:"missing,omitempty"` // there is no such document or section
}

// flat lists nodes, each before what it refers to.
func flat(nodes []*node) []ReferencedDocument {
	var out []ReferencedDocument
	for _, n := range nodes {
		out = append(out, ReferencedDocument{n.path, n.depth, n.refs, n.missing})
		out = append(out, flat(n.children)...)
	}
	return out
}

// LoadedDocument is a reference of a task with its text.
type LoadedDocument struct {
	Path      string           `json:"path"`
	Title     string           `json:"title"`
	Content   string           `json:"content"`
	Depth     int              `json:"depth"`
	Namespace string           `json:"namespace"`
	Children  []LoadedDocument `json:"children"`
	Missing   bool             `json:"missing,omitempty"`
	// Omitted is whether the text was left out because the answer is full;
	// view_section gives it.
	Omitted bool `json:"content_omitted,omitempty"`
}

// loaded nests nodes with their texts as far as the budget goes.
func loaded(nodes []*node, b *budget) []LoadedDocument {
	out := []LoadedDocument{}
	for _, n := range nodes {
		l := LoadedDocument{Path: n.path, Title: n.title, Content: n.content, Depth: n.depth, Namespace: namespace(n.path), Missing: n.missing}
		if len(n.content) > b.bytes {
			l.Content, l.Omitted = "", true
		}
		b.bytes -= len(l.Content)
		l.Children = loaded(n.children, b)
		out = append(out, l)
	}
	return out
}

// namespace is the folder a document is in, without slashes at its ends.
func namespace(address string) string {
	address, _, _ = strings.Cut(address, "#")
	at := strings.LastIndexByte(address, '/')
	if at <= 0 {
		return ""
	}
	return strings.TrimPrefix(address[:at], "/")
}
