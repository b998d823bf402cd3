package main

import (
	"sync"

	"github.com/spf13/cobra"

	"cairn/internal/workspace"
	"cairn/models"
	"cairn/models/bert"
	"cairn/models/minilm"
)

// modelFlags choose the embedding model. The zero value is the built-in one.
type modelFlags struct {
	dir, engine string
	// shared opens the model of all workspaces, once; nil before apply.
	shared func() (models.Embedder, error)
}

func (m *modelFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&m.dir, "model", "", "folder of an ONNX sentence encoder (default: the built-in all-MiniLM-L6-v2)")
	cmd.Flags().StringVar(&m.engine, "engine", "bert", "engine that runs it: bert (native) or hugot (any ONNX encoder)")
}

// apply sets the model in the options of a workspace. All workspaces of a run share
// one model, which is loaded at its first use and ends with the process. The
// description of the built-in model is known without loading it; a model in a
// folder has to be opened first.
func (m *modelFlags) apply(o *workspace.Options) error {
	if m.shared == nil {
		open := m.open
		m.shared = sync.OnceValues(func() (models.Embedder, error) {
			e, err := open()
			if err != nil {
				return nil, err
			}
			return noClose{e}, nil
		})
	}
	o.Description, o.Model = minilm.Description(), m.shared
	if m.builtIn() {
		return nil
	}
	e, err := m.shared()
	if err != nil {
		return err
	}
	o.Description, o.ModelChosen = e.Description(), true
	return nil
}

// noClose is a model that its users do not close.
type noClose struct{ models.Embedder }

func (noClose) Close() error { return nil }

// Kernel returns the name of the code that runs the model, "" if it is not known.
func (u noClose) Kernel() string {
	if k, ok := u.Embedder.(interface{ Kernel() string }); ok {
		return k.Kernel()
	}
	return ""
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
	return nil, badUsage("unknown engine %q, want {bert,hugot}", m.engine)
}
