package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// ArgumentError reports arguments that the schema of a tool refuses.
type ArgumentError struct {
	Problems []string // what is wrong, at most maxProblems
	// Nearest has, for each name that is no parameter, the parameters with similar names.
	Nearest map[string][]string

	faults []*jsonschema.ValidationError // without causes
}

func (e *ArgumentError) Error() string { return strings.Join(e.Problems, "; ") }

const maxProblems = 5

// Checker returns a function that compares arguments, a JSON object, with the input schema.
// Its error is an *ArgumentError. A tool with an invalid schema accepts every object.
func (t *Tool) Checker() func(arguments []byte) error {
	var root *jsonschema.Schema
	if len(t.Input) > 0 {
		root, _ = compile(t.Input) // SchemaError has its error
	}
	return func(arguments []byte) error {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(arguments))
		object, ok := v.(map[string]any)
		if err != nil || !ok {
			return &ArgumentError{Problems: []string{"want a JSON object"}}
		}
		if root == nil {
			return nil
		}
		refused, ok := errors.AsType[*jsonschema.ValidationError](root.Validate(v))
		if !ok {
			return nil
		}
		bad := &ArgumentError{Nearest: map[string][]string{}, faults: leaves(refused)}
		for _, f := range bad.faults {
			_, problem, _ := strings.Cut(f.Error(), "': ")
			text := strings.TrimPrefix(fmt.Sprintf("%.100s: %.200s", strings.Join(f.InstanceLocation, "/"), problem), ": ")
			if len(bad.Problems) < maxProblems && !slices.Contains(bad.Problems, text) {
				bad.Problems = append(bad.Problems, text)
			}
		}
		t.addNearest(bad, object)
		return bad
	}
}

// leaves returns the causes of an error that have no causes themselves.
func leaves(e *jsonschema.ValidationError) (found []*jsonschema.ValidationError) {
	for _, cause := range e.Causes {
		found = append(found, leaves(cause)...)
	}
	if len(e.Causes) == 0 {
		found = append(found, e)
	}
	return found
}

// Repair replaces the refused values in arguments, which may then be right: by what coerce returns
// for the types wanted, by the option with the same letters, and by an object with the names that
// the schema requires.
func (e *ArgumentError) Repair(arguments map[string]any, coerce func(v any, types []string) any) {
	for _, f := range e.faults {
		at, set := any(arguments), func(any) {}
		for _, step := range f.InstanceLocation {
			in, _ := at.(map[string]any)
			list, _ := at.([]any)
			if n, err := strconv.Atoi(step); err == nil && n >= 0 && n < len(list) {
				at, set = list[n], func(v any) { list[n] = v }
			} else if at, set = in[step], func(any) {}; at != nil { // neither null nor changed before
				set = func(v any) { in[step] = v }
			}
		}
		switch k := f.ErrorKind.(type) {
		case *kind.Type:
			set(coerce(at, k.Want))
		case *kind.Enum:
			if i := slices.IndexFunc(k.Want, func(o any) bool { return letters(fmt.Sprint(o)) == letters(fmt.Sprint(at)) }); i >= 0 {
				set(k.Want[i])
			}
		case *kind.Required:
			object, _ := at.(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(object)) {
				if i := slices.IndexFunc(k.Missing, func(m string) bool { return letters(m) == letters(name) }); i >= 0 {
					object[k.Missing[i]] = object[name]
					delete(object, name)
				}
			}
		}
	}
}

// addNearest adds the nearest names to an error.
func (t *Tool) addNearest(bad *ArgumentError, object map[string]any) {
	open := map[string][]string{}
	for _, p := range t.Takes {
		if _, given := object[p.Name]; p.Path == p.Name && !given {
			open[letters(p.Name)] = []string{p.Name}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if slices.ContainsFunc(t.Takes, func(p Parameter) bool { return p.Path == name }) || len(bad.Nearest) == maxProblems {
			continue
		}
		if near := similar(open, name, maxProblems); len(near) > 0 {
			bad.Nearest[name] = near
		}
	}
}

// Destructive reports whether the annotations of a tool state that it destroys something.
func (t *Tool) Destructive() (yes bool) {
	return json.Unmarshal(member(t.Annotations, "destructiveHint"), &yes) == nil && yes
}
