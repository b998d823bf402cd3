package doctask

import (
	"regexp"
	"slices"
	"strings"

	"cairn/internal/task"
	"cairn/internal/text/markdown"
)

// maxDependencies is the maximum number of dependencies of a task, as for cards.
const maxDependencies = 1000

// dependency is one entry of a task's field Dependencies.
type dependency struct {
	id     string // slug of a task, or the entry as written
	found  bool   // id is a task of the document
	offset int    // of the value that contains it, in the document
}

var (
	// noDependencies matches "none", "None.", "N/A", "-" and "None (first task)".
	noDependencies = regexp.MustCompile(`^(?i:none|nothing|no dependencies|n/?a|-+|–|—)(?:$|[.,;:!]|[ \t]+[(–—-].*)`)
	// inlineLink matches a value that consists of a link.
	inlineLink = regexp.MustCompile(`^\[([^\[\]]+)\]\(([^()\s]*)\)$`)
	// nameOrLink matches an element separated by blanks: a link, a wiki link or a word.
	nameOrLink = regexp.MustCompile(`\[\[[^\[\]]*\]\]|\[[^\[\]]+\]\([^()\s]*\)|\S+`)
	// otherField matches a list item that is a field of the task, not a dependency.
	otherField = regexp.MustCompile(`^[ \t]*[-*+][ \t]*[*_]{0,2}(?:Status|Workflow|Main-Workflow|Priority|Assignee|Estimate|Estimated Time|Completed|Note)[*_]{0,2}:`)
	// qualifier matches a remark after a name: "Database setup (done)".
	qualifier = regexp.MustCompile(`[ \t]+\([^()]*\)$`)
)

// dependencies returns the entries of a task's field Dependencies: slugs, titles and links,
// separated by commas, semicolons or "and", slugs also by blanks, or a list below the field
// with one entry per item. "None" and "-" mean no dependencies.
func (n *taskNames) dependencies(t docTask) []dependency {
	var out []dependency
	seen := map[string]bool{}
	for _, v := range dependencyValues(t.lines) {
		for _, dep := range n.entries(v.value) {
			if seen[dep.id] || len(out) == maxDependencies {
				continue
			}
			seen[dep.id] = true
			dep.offset = v.start
			out = append(out, dep)
		}
	}
	return out
}

// dependencyValues returns the value of the field or, if it is empty, the items of the list
// below the field.
func dependencyValues(lines []line) []field {
	if f, ok := fieldOf(lines, "Dependencies"); ok {
		return []field{f}
	}
	empty, ok := emptyField(lines, "Dependencies")
	if !ok {
		return nil
	}
	at := slices.IndexFunc(lines, func(l line) bool { return l.start <= empty.start && empty.start <= l.end })
	inItem := itemLine.MatchString(lines[at].text)
	var values []field
	for _, l := range lines[at+1:] {
		if !inItem && strings.TrimSpace(l.text) == "" {
			continue
		}
		marker := itemLine.FindString(l.text)
		if marker == "" || l.code || inItem && columns(l.text) <= columns(lines[at].text) || otherField.MatchString(l.text) {
			break
		}
		values = append(values, field{strings.TrimSpace(l.text[len(marker):]), l.start + len(marker), l.end})
	}
	return values
}

// entries returns the dependencies in one value of the field.
func (n *taskNames) entries(value string) []dependency {
	if noDependencies.MatchString(value) {
		return nil
	}
	if dep := n.entry(value); dep.found {
		return []dependency{dep}
	}
	var out []dependency
	parts := splitEntries(value)
	parts = parts[:min(len(parts), maxDependencies)]
	for i := 0; i < len(parts); i++ {
		part := strings.TrimSpace(parts[i])
		if part == "" || noDependencies.MatchString(part) {
			continue
		}
		if dep, took := n.joined(parts[i:]); took > 0 {
			out = append(out, dep)
			i += took - 1
			continue
		}
		if deps, ok := n.several(strings.Split(strings.ReplaceAll(part, " & ", " and "), " and ")); ok {
			out = append(out, deps...)
			continue
		}
		words := slices.DeleteFunc(nameOrLink.FindAllString(part, -1), func(w string) bool { return w == "-" || strings.EqualFold(w, "none") })
		if deps, ok := n.several(words); ok || slices.ContainsFunc(deps, func(d dependency) bool { return d.found }) {
			out = append(out, deps...)
			continue
		}
		out = append(out, n.entry(strings.Join(words, " "))) // an unknown title
	}
	return out
}

// maxCommas is the maximum number of commas in a title that is one of several entries.
const maxCommas = 3

// joined returns the task whose name consists of the first parts joined by commas, because
// a title may contain commas. It joins as few parts as possible. took is their number, 0 if
// there is no such task.
func (n *taskNames) joined(parts []string) (dep dependency, took int) {
	for took := 1; took <= min(len(parts), 1+maxCommas); took++ {
		if dep := n.entry(strings.Join(parts[:took], ",")); dep.found {
			return dep, took
		}
	}
	return dependency{}, 0
}

// splitEntries splits a value at commas and semicolons outside of brackets.
func splitEntries(value string) []string {
	depth := 0
	return strings.FieldsFunc(value, func(r rune) bool {
		switch r {
		case '[', '(':
			depth++
		case ']', ')':
			depth = max(0, depth-1)
		}
		return depth == 0 && (r == ',' || r == ';')
	})
}

// several returns the dependencies for entries. ok reports that each is a task.
func (n *taskNames) several(entries []string) (deps []dependency, ok bool) {
	ok = len(entries) > 0
	for _, e := range entries {
		dep := n.entry(e)
		ok = ok && dep.found
		deps = append(deps, dep)
	}
	return deps, ok
}

// entry looks up a name: a slug, a title or its number, or a link to a heading.
func (n *taskNames) entry(text string) dependency {
	name := strings.Trim(strings.TrimRight(strings.TrimSpace(text), "."), "`*\"")
	names := []string{name, qualifier.ReplaceAllString(name, "")}
	if m := inlineLink.FindStringSubmatch(name); m != nil {
		names = []string{m[2], m[1]}
	} else if strings.HasPrefix(name, "[") || strings.HasPrefix(name, "(") {
		inner, _, _ := strings.Cut(strings.Trim(name, "[]()"), "|") // of a wiki link
		names = []string{inner}
	}
	for _, name := range names {
		if i, ok := n.find(name); ok {
			return dependency{id: n.all[i].slug, found: true}
		}
	}
	return dependency{id: strings.TrimPrefix(names[0], "#")}
}

// taskNames finds the tasks of a document by the names that other tasks use. The values of
// its maps are indexes of all.
type taskNames struct {
	doc  *document
	all  []docTask
	full map[string]int // by slug, title in lower case or as a slug, and "parent/slug"
	// begun holds the tasks by the start of their titles up to a punctuation mark, such
	// as "task 1" for "Task 1: set up", and by an initial number; -1 if ambiguous.
	begun map[string]int
}

// beginnings matches the start of a title, and a number at the start.
var beginnings = regexp.MustCompile(`^(?:([0-9][0-9.]*)\b.*|(.*?)[ \t]*(?:[:.)–—]|[ \t]-[ \t]).*)$`)

func (d *document) names(all []docTask) *taskNames {
	n := &taskNames{doc: d, all: all, full: make(map[string]int, 3*len(all)), begun: map[string]int{}}
	for _, key := range []func(docTask) string{
		func(t docTask) string { return strings.ToLower(t.slug) },
		func(t docTask) string { return strings.ToLower(t.title) },
		func(t docTask) string { return markdown.Slug(t.title) },
		func(t docTask) string { return markdown.CueDeckSlug(t.title) },
		func(t docTask) string { return t.parent + "/" + markdown.Slug(t.title) },
	} {
		for i, t := range all {
			if _, taken := n.full[key(t)]; !taken {
				n.full[key(t)] = i
			}
		}
	}
	delete(n.full, "")
	for i, t := range all {
		m := beginnings.FindStringSubmatch(strings.ToLower(t.title))
		if m == nil {
			continue
		}
		key := strings.TrimRight(m[1]+m[2], ".")
		if _, several := n.begun[key]; several {
			i = -1
		}
		n.begun[key] = i
	}
	delete(n.begun, "")
	return n
}

// find returns the index of the task with a name.
func (n *taskNames) find(name string) (int, bool) {
	lower := strings.ToLower(name)
	if i, ok := n.full[lower]; ok {
		return i, true
	}
	if slug, err := n.doc.parseSlug(strings.TrimPrefix(name, "@"), task.EmptyTaskSlug); err == nil {
		parts := strings.Split(slug, "/")
		for i, p := range parts {
			parts[i] = markdown.Slug(p)
		}
		if i, ok := n.full[strings.Join(parts[max(0, len(parts)-2):], "/")]; ok {
			return i, true
		}
	}
	i, ok := n.begun[lower]
	return i, ok && i >= 0
}
