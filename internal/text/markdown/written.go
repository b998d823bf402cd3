package markdown

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// readWritten returns the mapping in a block, with scalars as written. It returns nil for
// other YAML.
func readWritten(block []byte) (map[string]any, error) {
	if len(bytes.TrimSpace(block)) == 0 {
		return map[string]any{}, nil
	}
	root, err := parseYAML(block)
	if err != nil {
		return nil, fmt.Errorf("front matter: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if root == nil || root.Kind != yaml.MappingNode {
		return nil, nil
	}
	value, err := asWritten(root)
	if err != nil {
		return nil, fmt.Errorf("front matter: line %w", err)
	}
	return value.(map[string]any), nil
}

// parseYAML returns the root of a document, nil if it has only comments.
func parseYAML(block []byte) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(block, &doc); err != nil || len(doc.Content) == 0 {
		return nil, err
	}
	return doc.Content[0], nil
}

var errAlias = errors.New("YAML aliases are not supported")

// asWritten returns the value of a node. It rejects aliases, because nested references grow
// exponentially when expanded and front matter does not need them. The error begins with
// the number of the line.
func asWritten(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.AliasNode:
		return nil, fmt.Errorf("%d: %w", n.Line, errAlias)
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, v := range n.Content {
			var err error
			if list[i], err = asWritten(v); err != nil {
				return nil, err
			}
		}
		return list, nil
	case yaml.MappingNode:
		fields := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if _, twice := fields[key.Value]; twice {
				return nil, fmt.Errorf("%d: key %q appears twice", key.Line, key.Value)
			}
			var err error
			if fields[key.Value], err = asWritten(n.Content[i+1]); err != nil {
				return nil, err
			}
		}
		return fields, nil
	}
	if n.ShortTag() == "!!null" {
		return nil, nil
	}
	return n.Value, nil
}
