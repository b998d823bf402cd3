package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// ArgumentError reports arguments that the schema of a tool refuses.
type ArgumentError struct {
	Problems []string // what is wrong, at most maxProblems
	// Nearest has, for each name that is no parameter, the parameters with similar names.
	Nearest map[string][]string
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
		bad := &ArgumentError{Nearest: map[string][]string{}}
		for line := range strings.Lines(refused.Error()) {
			line = strings.TrimSpace(line)
			leaf, ok := strings.CutPrefix(line, "- at '")
			if !ok || strings.HasSuffix(line, "validation failed") {
				continue
			}
			place, problem, _ := strings.Cut(leaf, "': ")
			text := strings.TrimPrefix(fmt.Sprintf("%.100s: %.200s", strings.TrimPrefix(place, "/"), problem), ": ")
			if len(bad.Problems) < maxProblems && !slices.Contains(bad.Problems, text) {
				bad.Problems = append(bad.Problems, text)
			}
		}
		t.addNearest(bad, object)
		return bad
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
		known := slices.ContainsFunc(t.Takes, func(p Parameter) bool { return p.Path == name })
		if near := similar(open, name, maxProblems); !known && len(near) > 0 && len(bad.Nearest) < maxProblems {
			bad.Nearest[name] = near
		}
	}
}

// Destructive reports whether the annotations of a tool state that it destroys something.
func (t *Tool) Destructive() (yes bool) {
	return json.Unmarshal(member(t.Annotations, "destructiveHint"), &yes) == nil && yes
}
