package main

import (
	"cairn/models"
	"cairn/models/minilm"
	"cairn/models/onnx"
)

// openHugot opens the ONNX encoder in a folder, or the built-in one, with hugot.
func openHugot(dir string) (models.Embedder, error) {
	if dir != "" {
		return onnx.Open(dir, nil)
	}
	if err := minilm.Verify(); err != nil {
		return nil, err
	}
	return onnx.New(minilm.Weights(), minilm.TokenizerJSON(), minilm.Description(), nil)
}
