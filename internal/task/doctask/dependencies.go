package doctask

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"cairn/internal/markdown"
)

// dependency is one entry of a task's field Dependencies.
type dependency struct {
	id     string // slug of a task, or the entry as written
	found  bool   // whether id is a task of the document
	offset int    // of the value that holds it, in the document
}

var (
	// noDependencies matches "none", "None.", "N/A", "-" and "None (first task)".
	noDependencies = regexp.MustCompile(`^(?i:none|nothing|no dependencies|n/?a|-+|–|—)(?:$|[.,;:!]|[ \t]+[(–—-].*)`)
	// inlineLink matches a value that is one link.
	inlineLink = regexp.MustCompile(`^\[([^\[\]]+)\]\(([^()\s]*)\)$`)
	// nameOrLink matches what a blank separates: a link, a wiki link or a word.
	nameOrLink = regexp.MustCompile(`\[\[[^\[\]]*\]\]|\[[^\[\]]+\]\([^()\s]*\)|\S+`)
	// otherField matches an item that is a field of the task and no dependency.
	otherField = regexp.MustCompile(`^[ \t]*[-*+][ \t]*[*_]{0,2}(?:Status|Workflow|Main-Workflow|Priority|Assignee|Estimate|Estimated Time|Completed|Note)[*_]{0,2}:`)
	// qualifier matches a remark behind a name: "Database setup (done)".
	qualifier = regexp.MustCompile(`[ \t]+\([^()]*\)$`)
)

// dependencies reads the field Dependencies of a task: slugs, titles and links,
// separated by commas, semicolons or "and", slugs also by blanks, or one in each
// item of a list below the field. "None" and "-" mean no dependencies.
func (d *document) dependencies(all []found, t found) []dependency {
	var out []dependency
	for _, v := range dependencyValues(t.lines) {
		for _, dep := range d.entries(all, v.value) {
			if slices.ContainsFunc(out, func(o dependency) bool { return o.id == dep.id }) {
				continue
			}
			dep.offset = v.start
			out = append(out, dep)
		}
	}
	return out
}

// dependencyValues returns the value of the field, or the items of the list below
// the field if it has no value.
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

// entries reads one value of the field.
func (d *document) entries(all []found, value string) []dependency {
	if noDependencies.MatchString(value) {
		return nil
	}
	if dep := d.entry(all, value); dep.found {
		return []dependency{dep}
	}
	var out []dependency
	parts := splitEntries(value)
	for i := 0; i < len(parts); i++ {
		part := strings.TrimSpace(parts[i])
		if part == "" || noDependencies.MatchString(part) {
			continue
		}
		if dep, n := d.joined(all, parts[i:]); n > 0 {
			out = append(out, dep)
			i += n - 1
			continue
		}
		if deps, ok := d.several(all, strings.Split(strings.ReplaceAll(part, " & ", " and "), " and ")); ok {
			out = append(out, deps...)
			continue
		}
		words := slices.DeleteFunc(nameOrLink.FindAllString(part, -1), func(w string) bool { return w == "-" || strings.EqualFold(w, "none") })
		if deps, ok := d.several(all, words); ok || slices.ContainsFunc(deps, func(d dependency) bool { return d.found }) {
			out = append(out, deps...)
			continue
		}
		out = append(out, d.entry(all, strings.Join(words, " "))) // a title that is not there
	}
	return out
}

// maxCommas bounds the commas in a title that the field names among others.
const maxCommas = 3

// joined reads the entry that the first n parts make together, the fewest that are a
// task: a title may hold commas. n is 0 for none.
func (d *document) joined(all []found, parts []string) (dep dependency, n int) {
	for n := 1; n <= min(len(parts), 1+maxCommas); n++ {
		if dep := d.entry(all, strings.Join(parts[:n], ",")); dep.found {
			return dep, n
		}
	}
	return dependency{}, 0
}

// splitEntries splits at commas and semicolons that are not in brackets.
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

// several reads entries; ok is whether each is a task.
func (d *document) several(all []found, entries []string) (deps []dependency, ok bool) {
	ok = len(entries) > 0
	for _, e := range entries {
		dep := d.entry(all, e)
		ok = ok && dep.found
		deps = append(deps, dep)
	}
	return deps, ok
}

// entry looks up one name: a slug, a title or its number, or a link to a heading.
func (d *document) entry(all []found, text string) dependency {
	name := strings.Trim(strings.TrimRight(strings.TrimSpace(text), "."), "`*\"")
	names := []string{name, qualifier.ReplaceAllString(name, "")}
	if m := inlineLink.FindStringSubmatch(name); m != nil {
		names = []string{m[2], m[1]}
	} else if strings.HasPrefix(name, "[") || strings.HasPrefix(name, "(") {
		inner, _, _ := strings.Cut(strings.Trim(name, "[]()"), "|") // of a wiki link
		names = []string{inner}
	}
	for _, n := range names {
		if i := slices.IndexFunc(all, func(t found) bool { return n != "" && strings.EqualFold(t.title, n) }); i >= 0 {
			return dependency{id: all[i].slug, found: true}
		}
		slug, err := d.parseSlug(strings.TrimPrefix(n, "@"), EmptyTaskSlug)
		if err != nil {
			continue
		}
		if t, ok := d.named(all, slug); ok {
			return dependency{id: t.slug, found: true}
		}
	}
	for _, n := range names {
		if t, ok := begun(all, n); ok {
			return dependency{id: t.slug, found: true}
		}
	}
	return dependency{id: strings.TrimPrefix(names[0], "#")}
}

// begun returns the only task whose title begins with a name and a punctuation mark,
// as "Task 1" begins "Task 1: set up", or with a number, as 1.2 does.
func begun(all []found, name string) (t found, ok bool) {
	if markdown.Slug(name) == "" {
		return found{}, false
	}
	number := strings.IndexFunc(name, func(r rune) bool { return !unicode.IsDigit(r) && r != '.' }) < 0
	for _, c := range all {
		if len(c.title) <= len(name) || !strings.EqualFold(c.title[:len(name)], name) {
			continue
		}
		rest := c.title[len(name):]
		trimmed := strings.TrimLeft(rest, " ")
		if strings.IndexAny(trimmed, ":.)–—-") != 0 && !(number && trimmed != rest) || strings.HasPrefix(rest, "-") {
			continue
		}
		if ok {
			return found{}, false
		}
		t, ok = c, true
	}
	return t, ok
}
