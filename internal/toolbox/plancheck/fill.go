package plancheck

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// reference is a value of an argument that is the output of another call, or a text of which
// it is a part.
type reference struct {
	call, output string
	part         bool
}

var (
	idPattern    = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	wholePattern = regexp.MustCompile(`^\$\{?([A-Za-z0-9_-]+)([.[][^{}]+?)?\}?$`)
	partPattern  = regexp.MustCompile(`\$?\$\{([A-Za-z0-9_-]+)([.[][^{}]+)?\}`)
	indexPattern = regexp.MustCompile(`\[\d+\]`)
)

func referenceOf(match []string, part bool) reference {
	return reference{match[1], strings.TrimPrefix(match[2], "."), part}
}

// references returns the references in a value, in arrays and objects too.
func references(v any) (found []reference) {
	switch v := v.(type) {
	case string:
		if m := wholePattern.FindStringSubmatch(v); m != nil {
			return []reference{referenceOf(m, false)}
		}
		for _, m := range partPattern.FindAllStringSubmatch(v, -1) {
			if !strings.HasPrefix(m[0], "$$") {
				found = append(found, referenceOf(m, true))
			}
		}
	case []any:
		for _, e := range v {
			found = append(found, references(e)...)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			found = append(found, references(v[name])...)
		}
	}
	return found
}

// Fill returns the arguments of a call with outputs in place of references, as the types of
// Call.Takes. outputs holds the results of the calls before it by ID. "$$" stands for "$"
// before a reference, and "${NAME}" in a text stays if no call has that ID.
func (p *Plan) Fill(id string, outputs map[string]any) (map[string]any, error) {
	call := &p.Calls[p.Position(id)]
	if p.Parameters != nil {
		outputs = maps.Clone(outputs)
		outputs[params] = p.Parameters
	}
	types := map[string][]string{}
	for _, in := range top(call.Takes) {
		types[in.Name] = in.Types
	}
	arguments, err := make(map[string]any, len(call.Arguments)), error(nil)
	for name, v := range call.Arguments {
		if arguments[name], err = p.fill(v, types[name], outputs); err != nil {
			return nil, err
		}
	}
	for _, e := range p.Edges {
		if _, given := arguments[e.Input]; e.To != id || e.Input == "" || given {
			continue
		}
		r := reference{call: e.From, output: e.Output}
		if object, ok := Parsed(outputs[e.From]).(map[string]any); ok && r.output == "" && object[e.Input] != nil {
			r.output = e.Input
		}
		if arguments[e.Input], err = r.value(outputs, types[e.Input]); err != nil {
			return nil, err
		}
	}
	return arguments, nil
}

// fill returns a value of an argument that has one of types, or any type if there are none.
func (p *Plan) fill(v any, types []string, outputs map[string]any) (any, error) {
	var err error
	switch v := v.(type) {
	case string:
		if m := wholePattern.FindStringSubmatch(v); m != nil {
			return referenceOf(m, false).value(outputs, types)
		}
		if strings.HasPrefix(v, "$$") && wholePattern.MatchString(v[1:]) {
			return v[1:], nil
		}
		text := partPattern.ReplaceAllStringFunc(v, func(found string) string {
			m := partPattern.FindStringSubmatch(found)
			if strings.HasPrefix(found, "$$") {
				return found[1:]
			}
			if _, known := outputs[m[1]]; !known && p.Position(m[1]) < 0 {
				return found
			}
			value, failed := referenceOf(m, true).value(outputs, []string{"string"})
			err = cmp.Or(failed, err)
			return textOf(value)
		})
		return text, err
	case []any:
		list := make([]any, len(v))
		for i := range v {
			if list[i], err = p.fill(v[i], nil, outputs); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		object := make(map[string]any, len(v))
		for name := range v {
			if object[name], err = p.fill(v[name], nil, outputs); err != nil {
				return nil, err
			}
		}
		return object, nil
	}
	return v, nil
}

// value returns the output that a reference names, as one of types.
func (r reference) value(outputs map[string]any, types []string) (any, error) {
	whole, ok := outputs[r.call]
	switch {
	case !ok:
		return nil, fmt.Errorf("$%s: the output of the call is not known", r.call)
	case r.output == "":
		return suited(whole, types, true), nil
	}
	v, err := at(whole, strings.Split(strings.ReplaceAll(r.output, "[", ".["), "."))
	// Check accepts the name of a nested output if it is the only one.
	if found := named(Parsed(whole), r.output, nil); err != nil && len(found) == 1 {
		v, err = found[0], nil
	}
	if err != nil {
		return nil, fmt.Errorf("$%s.%s: %w", r.call, r.output, err)
	}
	return suited(v, types, false), nil
}

// suited returns an output as one of types: a text as the JSON in it, or JSON as a text. A
// whole result with a single member stands for that member, too.
func suited(v any, types []string, whole bool) any {
	if (whole || len(types) > 0) && !slices.Contains(types, "string") {
		v = Parsed(v)
	}
	object, _ := v.(map[string]any)
	switch {
	case allows(types, v):
	case whole && len(object) == 1:
		for _, member := range object {
			return suited(member, types, false)
		}
	case slices.Contains(types, "string"):
		return textOf(v)
	}
	return v
}

// Parsed returns the JSON in a text, or v if it has none.
func Parsed(v any) any {
	text, _ := v.(string)
	if decoder := json.NewDecoder(strings.NewReader(text)); json.Valid([]byte(text)) {
		decoder.UseNumber()
		_ = decoder.Decode(&v) // it is valid
	}
	return v
}

// textOf returns a text, or the JSON of another value.
func textOf(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // it was JSON
	return strings.TrimSuffix(b.String(), "\n")
}

// at returns the value at a path, also in a text of JSON. "[0]" is an element of an array, and
// "[]" all of them.
func at(v any, path []string) (any, error) {
	if len(path) == 0 {
		return v, nil
	}
	step, rest := path[0], path[1:]
	if step == "" {
		return at(v, rest) // before an index at the start
	}
	switch v := Parsed(v).(type) {
	case map[string]any:
		if next, ok := v[step]; ok {
			return at(next, rest)
		}
		for _, member := range v {
			if len(v) == 1 && strings.HasPrefix(step, "[") { // a list that the server wraps
				return at(member, path)
			}
		}
		return nil, fmt.Errorf("the result has no %q, but {%.200s}", step, strings.Join(slices.Sorted(maps.Keys(v)), ","))
	case []any:
		index := strings.Trim(step, "[]")
		if index == "" {
			list := make([]any, len(v))
			for i := range v {
				var err error
				if list[i], err = at(v[i], rest); err != nil {
					return nil, err
				}
			}
			return list, nil
		}
		if n, err := strconv.Atoi(index); err == nil && n >= 0 && n < len(v) {
			return at(v[n], rest)
		}
		return nil, fmt.Errorf("the result has no %q in an array of %d", step, len(v))
	}
	return nil, fmt.Errorf("the result has no %q, because it is %s", step, typeOf(Parsed(v)))
}

// named appends the values of a name at any depth of objects.
func named(v any, name string, found []any) []any {
	object, _ := v.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if key == name {
			found = append(found, object[key])
		}
		found = named(object[key], name, found)
	}
	return found
}
