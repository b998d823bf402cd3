package main

import (
	"github.com/spf13/cobra"

	"cairn/internal/workspace"
	"cairn/models"
	"cairn/models/bert"
	"cairn/models/minilm"
)

// modelFlags choose the embedding model. The zero value is the built-in one.
type modelFlags struct{ dir, engine string }

func (m *modelFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&m.dir, "model", "", "folder of an ONNX sentence encoder (default: the built-in all-MiniLM-L6-v2)")
	cmd.Flags().StringVar(&m.engine, "engine", "bert", "what runs it: bert (native) or hugot (any ONNX encoder)")
}

// builtIn describes the shipped model.
func builtIn() models.Description { return minilm.Description() }

// apply tells a workspace which model to use. The built-in one is described
// without being loaded; a folder has to be opened to know what it is.
func (m *modelFlags) apply(o *workspace.Options) error {
	if m.builtIn() {
		o.Description = builtIn()
		o.Model = m.open
		return nil
	}
	e, err := m.open()
	if err != nil {
		return err
	}
	o.Description, o.ModelChosen = e.Description(), true
	o.Model = func() (models.Embedder, error) { return e, nil }
	return nil
}

func (m *modelFlags) builtIn() bool { return m.dir == "" && (m.engine == "" || m.engine == "bert") }

// open loads the model.
func (m *modelFlags) open() (models.Embedder, error) {
	switch m.engine {
	case "", "bert":
		if m.dir != "" {
			return bert.Open(m.dir, nil)
		}
		return minilm.Open(nil)
	case "hugot":
		return openHugot(m.dir)
	}
	return nil, usage("unknown engine %q, want {bert,hugot}", m.engine)
}
