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
	// nameOrLink matches a link, a wiki link or a word.
	nameOrLink = regexp.MustCompile(`\[\[[^\[\]]*\]\]|\[[^\[\]]+\]\([^()\s]*\)|[^\s,;]+`)
	// connective matches words between two names.
	connective = regexp.MustCompile(`(?i)^(?:(?:and|&|-|none)(?:\s+|$))+|(?:\s+(?:and|&|-|none))+\s*$|\s+$`)
	// otherField matches a list item that is a field of the task, not a dependency.
	otherField = regexp.MustCompile(`^[ \t]*[-*+][ \t]*[*_]{0,2}(?:Status|` + strings.Join(dependencyFields, "|") + `|Workflow|Main-Workflow|Priority|Assignee|Estimate|Estimated Time|Completed|Note)[*_]{0,2}:`)
	// boxID and waitsFor match the ID of a check box and those of its dependencies in a title,
	// as Obsidian writes them: "🆔 a1 ⛔ b2,c3" or "[id:: a1] [dependsOn:: b2]".
	boxID    = regexp.MustCompile(`(?:🆔\x{fe0f}?|\bid::)[ \t]*([\w-]+)`)
	waitsFor = regexp.MustCompile(`(?:⛔\x{fe0f}?|\bdependsOn::)[ \t]*([\w-]+(?:[ \t]*,[ \t]*[\w-]+)*)`)
	// qualifier matches a remark after a name: "Database setup (done)".
	qualifier = regexp.MustCompile(`[ \t]+\([^()]*\)$`)
)

// dependencyFields are the names of the field Dependencies.
var dependencyFields = []string{"Dependencies", "Depends on", "Depends On", "Blocked by", "Blocked By"}

// dependencies returns the entries of a task's field Dependencies, and the IDs in its title.
// Entries are slugs, titles and links, separated by commas, semicolons or "and", slugs also by
// blanks, or a list below the field with one entry per item. "None" and "-" mean no
// dependencies.
func (n *taskNames) dependencies(t docTask) []dependency {
	var out []dependency
	seen := map[string]bool{}
	values := dependencyValues(t.lines)
	for _, m := range waitsFor.FindAllStringSubmatch(t.title, -1) {
		values = append(values, field{m[1], t.start, t.start})
	}
	for _, v := range values {
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

// dependencyValues returns the values of the fields, and for an empty one the items of the
// list below the field.
func dependencyValues(lines []line) (values []field) {
	for _, name := range dependencyFields {
		if f, ok := fieldOf(lines, name); ok {
			values = append(values, f)
		} else if empty, ok := emptyField(lines, name); ok {
			values = append(values, listBelow(lines, empty)...)
		}
	}
	return values
}

// listBelow returns the items of the list below an empty field.
func listBelow(lines []line, empty field) (values []field) {
	at := slices.IndexFunc(lines, func(l line) bool { return l.start <= empty.start && empty.start <= l.end })
	inItem := itemLine.MatchString(lines[at].text)
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

// maxWords is the maximum number of words of a title that is one of several entries.
const maxWords = 24

// entries returns the dependencies in one value of the field: at each word the longest run of
// words that names a task, because a title may contain commas. The words between two runs or
// commas are the title of an unknown task.
func (n *taskNames) entries(value string) (out []dependency) {
	if noDependencies.MatchString(value) {
		return nil
	}
	words := nameOrLink.FindAllStringIndex(value, maxDependencies)
	unknown := -1 // the start of the words that name no task
	flush := func(end int) {
		if unknown >= 0 {
			if text := connective.ReplaceAllString(value[unknown:end], ""); text != "" && !noDependencies.MatchString(text) {
				out = append(out, n.entry(text))
			}
		}
		unknown = -1
	}
	for i := 0; i < len(words); {
		start, end := words[i][0], words[i][1]
		if i > 0 && strings.ContainsAny(value[words[i-1][1]:start], ",;") {
			flush(words[i-1][1])
		}
		took := min(len(words)-i, maxWords)
		dep := n.entry(value[start:words[i+took-1][1]])
		for ; !dep.found && took > 1; dep = n.entry(value[start:words[i+took-1][1]]) {
			took--
		}
		if dep.found {
			flush(start)
			out = append(out, dep)
		} else if unknown < 0 {
			unknown = start
		}
		if i += took; i == len(words) {
			flush(end)
		}
	}
	return out
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
	full map[string]int // by slug, title in lower case or as a slug, "parent/slug", and ID
	// begun holds the tasks by the start of their titles, such as "task 1" for "Task 1: set
	// up", and by an initial number; -1 if ambiguous.
	begun map[string]int
}

// beginnings match the start of a title up to a punctuation mark, an emoji or a tag, or its
// number; and the number of "Task 1: set up", or a first word with a digit, such as "T042".
var beginnings = []*regexp.Regexp{
	regexp.MustCompile(`^(?:([0-9][0-9.]*)\b.*|(.*?)[ \t]*(?:[:.)–—\p{So}]|[ \t](?:-[ \t]|[@#([])).*)$`),
	regexp.MustCompile(`^(?:\pL+[ \t]+([0-9][0-9.]*)[ \t]*[:.)–—-]|([\w#-]*[0-9][\w.-]*)\b)`),
}

func (d *document) names(all []docTask) *taskNames {
	n := &taskNames{doc: d, all: all, full: make(map[string]int, 3*len(all)), begun: map[string]int{}}
	for _, key := range []func(docTask) string{
		func(t docTask) string { return strings.ToLower(t.slug) },
		func(t docTask) string { return strings.ToLower(t.title) },
		func(t docTask) string { return markdown.Slug(t.title) },
		func(t docTask) string { return markdown.CueDeckSlug(t.title) },
		func(t docTask) string { return t.parent + "/" + markdown.Slug(t.title) },
		func(t docTask) string { return append(boxID.FindStringSubmatch(strings.ToLower(t.title)), "", "")[1] },
	} {
		for i, t := range all {
			if _, taken := n.full[key(t)]; !taken {
				n.full[key(t)] = i
			}
		}
	}
	delete(n.full, "")
	for i, t := range all {
		for _, start := range beginnings {
			if m := start.FindStringSubmatch(strings.ToLower(t.title)); m != nil {
				key := strings.TrimRight(m[1]+m[2], ".")
				if other, taken := n.begun[key]; taken && other != i {
					n.begun[key] = -1
				} else {
					n.begun[key] = i
				}
			}
		}
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
