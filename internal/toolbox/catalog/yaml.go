package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

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
	w := yamlWalk{most: min(maxOpenAPI, yamlFactor*len(text)+yamlLeast)}
	var v map[string]any
	err := w.prepare(doc.Content[0], 0)
	if err == nil {
		err = doc.Decode(&v)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// yamlWalk visits nodes, and those of their aliases each time.
type yamlWalk struct {
	most         int // largest value of the others
	steps, bytes int // number of values, and bytes of their texts
}

// prepare makes texts of the scalars that JSON lacks and of keys. The last member with a key
// stays, as in JSON.
func (w *yamlWalk) prepare(n *yaml.Node, depth int) error {
	w.steps, w.bytes = w.steps+1, w.bytes+len(n.Value)
	switch {
	case depth > maxYAMLDepth:
		return fmt.Errorf("its YAML is nested deeper than %d levels", maxYAMLDepth)
	case max(w.steps, w.bytes) > w.most:
		return fmt.Errorf("its YAML aliases expand to more than %d KiB", w.most>>10)
	case n.Kind == yaml.AliasNode:
		return w.prepare(n.Alias, depth+1)
	case n.Kind == yaml.ScalarNode:
		number := n.ShortTag() == "!!float" && !strings.HasSuffix(strings.ToLower(n.Value), ".inf") && !strings.EqualFold(n.Value, ".nan")
		if !number && !slices.Contains([]string{"!!null", "!!bool", "!!int", "!!merge"}, n.ShortTag()) {
			n.Tag = "!!str"
		}
	case n.Kind == yaml.MappingNode:
		last := map[string]int{}
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind == yaml.AliasNode {
				key = key.Alias
			}
			if key.Kind != yaml.ScalarNode {
				return fmt.Errorf("line %d: a key is no scalar", key.Line)
			}
			last[key.Value] = i
			if key.Tag != "!!merge" {
				n.Content[i] = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key.Value}
			}
		}
		all := n.Content
		n.Content = nil
		for i := 0; i < len(all); i += 2 {
			if last[all[i].Value] == i || all[i].Tag == "!!merge" {
				n.Content = append(n.Content, all[i], all[i+1])
			}
		}
	}
	for _, inner := range n.Content {
		if err := w.prepare(inner, depth+1); err != nil {
			return err
		}
	}
	return nil
}
