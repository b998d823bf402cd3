package testutil

import "github.com/anishathalye/porcupine"

// PartitionBy returns the partition of a porcupine model whose operations on different
// keys are independent. In is the type of the operations' input.
func PartitionBy[In any, K comparable](key func(In) K) func([]porcupine.Operation) [][]porcupine.Operation {
	return func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := map[K][]porcupine.Operation{}
		for _, op := range history {
			k := key(op.Input.(In))
			parts[k] = append(parts[k], op)
		}
		var out [][]porcupine.Operation
		for _, operations := range parts {
			out = append(out, operations)
		}
		return out
	}
}
