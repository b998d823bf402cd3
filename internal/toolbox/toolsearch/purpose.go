package toolsearch

import (
	"cmp"
	"slices"
	"strings"

	"cairn/internal/toolbox/catalog"
)

// Purpose describes what a tool does according to its name: "list_pull_requests" lists the
// entity "pull request".
type Purpose struct {
	Actions Actions
	Verb    string   // in its base form; "" if the name has none
	Entity  []string // singular words; empty if the name is a verb alone
}

// PurposeOf returns the purpose of a tool. The verb is the first, last or second word of its
// own name, the entity the other words up to a preposition.
func PurposeOf(t *catalog.Tool) Purpose {
	words := OwnName(t)
	p := Purpose{Actions: actionsOf(words)}
	for _, at := range []int{0, len(words) - 1, 1} {
		if at < 0 || at >= len(words) {
			break
		}
		v, ok := verbForms[words[at]]
		if ok || actionWords[words[at]] != 0 {
			p.Verb = cmp.Or(v, words[at])
			words = slices.Delete(words, at, at+1)
			break
		}
	}
	for _, w := range words {
		if len(p.Entity) > 0 && slices.Contains(prepositions, w) {
			break
		}
		if !slices.Contains(prepositions, w) && w != "tool" && w != "api" {
			p.Entity = append(p.Entity, Singular(w))
		}
	}
	return p
}

// VerbOf returns the first word of a part of an intent, after words such as "please", in its
// base form.
func VerbOf(part string) string {
	for _, w := range Words(part) {
		if !slices.Contains(fillers, w) {
			return cmp.Or(verbForms[w], w)
		}
	}
	return ""
}

// prepositions end the entity in a name: "get_pet_by_id", "list_files_in_folder".
var prepositions = []string{"by", "for", "in", "from", "of", "to", "with", "via", "at", "on", "using", "and", "all", "my", "new"}

// Tools with a verb of readers return the identifier of an existing entity, tools with a
// verb of makers that of a new one. A plan prefers the first readers, which look an entity
// up by name.
var (
	readers = []string{"search", "find", "list", "lookup", "query", "browse", "get", "fetch", "retrieve", "read", "view", "show", "check", "describe", "select", "track"}
	makers  = []string{"create", "add", "make", "insert", "register", "fork", "upload", "book", "reserve", "schedule", "post", "open", "start", "generate", "place", "submit", "clone", "initiate", "request"}
)

// Preference ranks the tools that return existing entities, smaller is better: those that need less
// information about the entity come first. It is −1 for other tools.
func (p Purpose) Preference() int { return slices.Index(readers, p.Verb) }

// Reads reports whether the tool returns existing entities.
func (p Purpose) Reads() bool { return p.Preference() >= 0 }

// Makes reports whether the tool returns a new entity.
func (p Purpose) Makes() bool { return slices.Contains(makers, p.Verb) }

// GivesEntity reports whether the name of the tool indicates that it returns an entity: it
// reads or makes one, and the last words of its entity are those of the argument.
func (p Purpose) GivesEntity(entity []string) bool {
	n := len(p.Entity) - len(entity)
	return (p.Reads() || p.Makes()) && len(entity) > 0 && n >= 0 && slices.Equal(p.Entity[n:], entity)
}

// identifiers are words at the end of the name of an input that takes an
// identifier of an entity.
var identifiers = []string{"id", "ids", "number", "no", "key", "uuid", "guid", "identifier", "slug", "handle", "sha"}

// abbreviated maps abbreviations of entities to their full words.
var abbreviated = map[string][]string{"pull": {"pull", "request"}, "pr": {"pull", "request"}, "repo": {"repository"}, "org": {"organization"}, "db": {"database"}, "doc": {"document"}, "dir": {"directory"}, "msg": {"message"}, "proj": {"project"}, "mr": {"merge", "request"}, "prs": {"pull", "requests"}, "mrs": {"merge", "requests"}, "repos": {"repositories"}, "dm": {"direct", "message"}, "docs": {"documents"}, "dbs": {"databases"}, "config": {"configuration"}, "info": {"information"}}

// EntityOf returns the entity whose identifier an input takes: "issue" for "issue_number",
// and the tool's own entity for "id". It returns nil for other inputs.
func EntityOf(p *catalog.Parameter, of Purpose) []string {
	words := Words(p.Name)
	if len(words) == 0 || !slices.Contains(identifiers, words[len(words)-1]) {
		return nil
	}
	words = words[:len(words)-1]
	if len(words) == 0 {
		if of.Makes() {
			return nil // the identifier of the new entity
		}
		return of.Entity
	}
	if long, ok := abbreviated[words[len(words)-1]]; ok {
		words = append(words[:len(words)-1:len(words)-1], long...)
	}
	entity := make([]string, len(words))
	for i, w := range words {
		entity[i] = Singular(w)
	}
	return entity
}

// Singular removes a regular English plural ending.
func Singular(w string) string {
	switch {
	case len(w) > 4 && strings.HasSuffix(w, "ies"):
		return w[:len(w)-3] + "y"
	case len(w) > 4 && (strings.HasSuffix(w, "sses") || strings.HasSuffix(w, "xes") || strings.HasSuffix(w, "ches")):
		return w[:len(w)-2]
	case len(w) > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us"):
		return w[:len(w)-1]
	}
	return w
}

// Givers returns the IDs of the tools for which GivesEntity holds, sorted. The caller must
// not change the slice.
func (x *Index) Givers(entity []string) []string {
	return x.now.Load().givers[strings.Join(entity, " ")]
}
