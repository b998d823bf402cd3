package doctask

import (
	"cmp"
	"context"
	"path"
	"strings"

	"cairn/internal/task"
	"cairn/internal/text/markdown"
)

// LoadedDocument is a document or section that a task refers to, with its text.
type LoadedDocument struct {
	Path      string            `json:"path"` // "/a.md" or "/a.md#slug"
	Title     string            `json:"title"`
	Content   string            `json:"content"`
	Depth     int               `json:"depth"` // 0 for a reference of the task itself
	Namespace string            `json:"namespace"`
	Children  []*LoadedDocument `json:"children"`
	Missing   bool              `json:"missing,omitempty"` // the document or section does not exist
	// Omitted reports that the text did not fit into the answer. Rest is the argument of
	// read_doc for the missing text.
	Omitted bool   `json:"content_omitted,omitempty"`
	Rest    string `json:"content_rest,omitempty"`

	refs    []string        // the references in its text, as written
	place   place           // of Content
	dropped bool            // not part of the answer
	parent  *LoadedDocument // whose text refers to it
}

// ReferencedDocument is a LoadedDocument without its text.
type ReferencedDocument struct {
	Path       string   `json:"path"`
	Depth      int      `json:"depth"`
	References []string `json:"references"`
	Missing    bool     `json:"missing,omitempty"`
}

// follower limits the references of one answer.
type follower struct {
	nodes     int // documents that may still be loaded
	truncated bool
}

// follow loads the documents and sections to which a text of a document refers, directly or
// indirectly. It searches breadth first and loads each one once, at its smallest depth. It
// stops at the depth, number of documents and time of the options.
func (d *Docs) follow(ctx context.Context, doc *document, text []byte, f *follower) []*LoadedDocument {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	seen := map[string]bool{}
	root := &LoadedDocument{Depth: -1}
	type step struct {
		at   *LoadedDocument
		doc  *document
		refs []markdown.Target
	}
	queue := []step{{root, doc, markdown.References(text)}}
	for k := 0; k < len(queue); k++ {
		s := queue[k]
		for _, ref := range s.refs {
			path, slug := ref.Path, ref.Anchor
			path = cmp.Or(path, s.doc.path)
			name := "/" + path
			if slug != "" {
				name += "#" + slug
			}
			if seen[name] {
				continue
			}
			seen[name] = true
			if f.nodes == 0 || ctx.Err() != nil {
				f.truncated = true
				return root.Children
			}
			f.nodes--
			n := &LoadedDocument{Path: name, Depth: s.at.Depth + 1, Namespace: namespace(name), Children: []*LoadedDocument{}, refs: []string{}, parent: s.at}
			s.at.Children = append(s.at.Children, n)
			target, ok := d.place(s.doc, path, slug, n)
			if !ok {
				n.Missing = true
				continue
			}
			refs := markdown.References([]byte(n.Content))
			for _, r := range refs {
				n.refs = append(n.refs, r.Raw)
			}
			if n.Depth+1 < d.o.Depth {
				queue = append(queue, step{n, target, refs})
			}
		}
	}
	return root.Children
}

// place loads the document or section of a reference into n.
func (d *Docs) place(from *document, path, slug string, n *LoadedDocument) (doc *document, ok bool) {
	if doc = from; path != from.path {
		clean, err := parseAddress(path)
		if err != nil {
			return nil, false
		}
		if doc, err = d.load(clean); err != nil {
			return nil, false
		}
	}
	if slug == "" {
		text := strings.TrimSpace(string(doc.src[doc.md().FrontMatter.End:]))
		n.Title, n.Content = doc.md().Title, text
		n.place = doc.at(doc.md().FrontMatter.End + strings.Index(string(doc.src[doc.md().FrontMatter.End:]), text))
		return doc, true
	}
	slug, err := doc.parseSlug(slug, task.InvalidSlug)
	if err != nil {
		return nil, false
	}
	i, ok := doc.find(slug)
	if ok {
		n.Title, n.Content, n.place = doc.md().Sections[i].Heading, doc.text(doc.md().Sections[i]), doc.at(doc.md().Sections[i].Start)
	}
	return doc, ok
}

// flat lists documents without their texts, each before its children.
func flat(docs []*LoadedDocument) []ReferencedDocument {
	var out []ReferencedDocument
	for _, n := range docs {
		out = append(out, ReferencedDocument{n.Path, n.Depth, n.refs, n.Missing})
		out = append(out, flat(n.Children)...)
	}
	return out
}

// namespace returns the folder of a document without leading and trailing slashes.
func namespace(address string) string {
	address, _, _ = strings.Cut(address, "#")
	return strings.Trim(address[:strings.LastIndexByte(address, '/')+1], "/")
}

// ReferenceCycle returns the shortest cycle of documents, cards included, that refer to each
// other by "@/path" in their text or by refs in their front matter. The result lists the
// workspace paths from the smallest back to itself. It is nil if there is no cycle.
// ReferenceCycle ignores plain links, which may form cycles.
func (d *Docs) ReferenceCycle(ctx context.Context) ([]string, error) {
	all, err := d.list(ctx, "")
	if err != nil {
		return nil, err
	}
	nodes := make([]task.Task, 0, len(all))
	for _, p := range all {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		src, _, err := d.files.Read(p)
		if err != nil {
			continue // removed meanwhile, or not a text
		}
		src = markdown.Decoded(src)
		n := task.Task{ID: p}
		for _, r := range markdown.References(src) {
			if r.Path != "" {
				n.DependsOn = append(n.DependsOn, r.Path)
			}
		}
		for _, ref := range markdown.ReadFrontMatter(src).Strings("refs") {
			ref, _, _ = strings.Cut(strings.TrimPrefix(ref, "/"), "#")
			n.DependsOn = append(n.DependsOn, path.Clean(ref))
		}
		nodes = append(nodes, n)
	}
	if c := task.NewBoard(nodes).Graph.Cycle(); c != nil {
		return c.Path, nil
	}
	return nil, nil
}
