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
	// shared opens the model that apply hands out, once; nil before apply.
	shared func() (models.Embedder, error)
}

func (m *modelFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&m.dir, "model", "", "folder of an ONNX sentence encoder (default: the built-in all-MiniLM-L6-v2)")
	cmd.Flags().StringVar(&m.engine, "engine", "bert", "what runs it: bert (native) or hugot (any ONNX encoder)")
}

// builtIn describes the shipped model.
func builtIn() models.Description { return minilm.Description() }

// apply tells a workspace which model to use. All that one run of the program
// opens share one model: it is loaded by whoever needs it first and ends with
// the process. The built-in one is described without being loaded; a folder
// has to be opened to know what it is.
func (m *modelFlags) apply(o *workspace.Options) error {
	if m.shared == nil {
		open := m.open
		m.shared = sync.OnceValues(func() (models.Embedder, error) {
			e, err := open()
			if err != nil {
				return nil, err
			}
			return unowned{e}, nil
		})
	}
	o.Description, o.Model = builtIn(), m.shared
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

// unowned is a model that none of those who use it closes.
type unowned struct{ models.Embedder }

func (unowned) Close() error { return nil }

// Kernel names the code that runs the model, "" where its engine does not tell.
func (u unowned) Kernel() string {
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
