package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Bounds on a document in YAML. Aliases can make a small document arbitrarily large.
const (
	maxYAML      = 4 << 20 // bytes; the parser allocates about thirty times as many
	maxYAMLDepth = 1000
	maxYAMLMarks = 700_000 // bytes that can separate two values; the parser allocates about 200 bytes for each value
	// The document in JSON can have yamlFactor times its size plus yamlLeast bytes.
	yamlFactor = 16
	yamlLeast  = 64 << 10
)

// yamlToJSON converts a document in YAML, which must be an object, to JSON.
func yamlToJSON(text []byte) ([]byte, error) {
	if len(text) > maxYAML {
		return nil, fmt.Errorf("it is in YAML and larger than %d MiB; convert it to JSON", maxYAML>>20)
	}
	marks := 0
	for _, mark := range []string{"\n", ",", "-", "?", "[", "{"} {
		marks += bytes.Count(text, []byte(mark))
	}
	if marks > maxYAMLMarks {
		return nil, fmt.Errorf("it is in YAML and has more than %d lines and values; convert it to JSON", maxYAMLMarks)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if doc.Kind != yaml.DocumentNode || doc.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("it is not an object")
	}
	w := yamlWriter{most: min(maxOpenAPI, yamlFactor*len(text)+yamlLeast)}
	err := w.value(doc.Content[0], 0)
	return w.out, err
}

// yamlWriter writes nodes as JSON. It replaces aliases by their nodes.
type yamlWriter struct {
	out   []byte
	most  int // largest size of out in bytes
	steps int // number of values and merged mappings
}

func (w *yamlWriter) step(depth int) error {
	w.steps++
	switch {
	case depth > maxYAMLDepth:
		return fmt.Errorf("its YAML is nested deeper than %d levels", maxYAMLDepth)
	case len(w.out) > w.most || w.steps > w.most:
		return fmt.Errorf("its YAML aliases expand to more than %d KiB", w.most>>10)
	}
	return nil
}

func (w *yamlWriter) value(n *yaml.Node, depth int) error {
	if err := w.step(depth); err != nil {
		return err
	}
	switch n.Kind {
	case yaml.AliasNode:
		return w.value(n.Alias, depth+1)
	case yaml.MappingNode:
		w.out = append(w.out, '{')
		if err := w.members(n, depth); err != nil {
			return err
		}
		w.out = append(w.out, '}')
	case yaml.SequenceNode:
		w.out = append(w.out, '[')
		for i, element := range n.Content {
			if i > 0 {
				w.out = append(w.out, ',')
			}
			if err := w.value(element, depth+1); err != nil {
				return err
			}
		}
		w.out = append(w.out, ']')
	default:
		return w.scalar(n)
	}
	return nil
}

// members writes the members of a mapping. It writes merged ones first, because the last
// member with a key is used.
func (w *yamlWriter) members(n *yaml.Node, depth int) error {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Tag == "!!merge" {
			if err := w.merge(n.Content[i+1], depth+1); err != nil {
				return err
			}
		}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Tag == "!!merge" {
			continue
		}
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			return fmt.Errorf("line %d: a key is no scalar", key.Line)
		}
		if w.out[len(w.out)-1] != '{' {
			w.out = append(w.out, ',')
		}
		w.string(key.Value)
		w.out = append(w.out, ':')
		if err := w.value(n.Content[i+1], depth+1); err != nil {
			return err
		}
	}
	return nil
}

// merge writes the members of n, the value of a key "<<": a mapping, or a list of mappings
// of which the first with a key is used.
func (w *yamlWriter) merge(n *yaml.Node, depth int) error {
	if err := w.step(depth); err != nil {
		return err
	}
	switch n.Kind {
	case yaml.AliasNode:
		return w.merge(n.Alias, depth+1)
	case yaml.MappingNode:
		return w.members(n, depth)
	case yaml.SequenceNode:
		for i := len(n.Content) - 1; i >= 0; i-- {
			if err := w.merge(n.Content[i], depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("line %d: only mappings can be merged", n.Line)
}

func (w *yamlWriter) scalar(n *yaml.Node) error {
	switch n.ShortTag() {
	case "!!null", "!!bool", "!!int", "!!float":
		var v any
		if err := n.Decode(&v); err != nil {
			return err
		}
		if text, err := json.Marshal(v); err == nil { // a number, and finite
			w.out = append(w.out, text...)
			return nil
		}
	}
	w.string(n.Value)
	return nil
}

func (w *yamlWriter) string(s string) {
	text, _ := json.Marshal(s) // a string always marshals
	w.out = append(w.out, text...)
}
