// Package encoder opens the embedding model and the re-ranker that a process chose.
package encoder

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"cairn/internal/folder/workspace"
	"cairn/models"
	"cairn/models/bert"
	"cairn/models/minilm"
	"cairn/models/onnx"
)

// Model chooses an embedding model. The zero value is the one that the user has installed,
// by default the built-in one.
type Model struct {
	// Dir is the folder of an ONNX sentence encoder, BuiltIn, or "" for the installed model.
	Dir    string
	Engine string // bert or hugot; "" means bert
	// Rerank is the folder of an ONNX cross-encoder; "" means that of the configuration of
	// a workspace, if any.
	Rerank string

	// shared and tools open the models of all workspaces once, and rerankers each of their
	// re-rankers.
	shared, tools func() (models.Embedder, error)
	rerankers     func(dir string) (models.Reranker, error)
}

// Apply sets the model in the options of a workspace. All workspaces of a process share one
// model, which is loaded at its first use and never closed. The description of the built-in
// model is known without loading it, but Apply must open any other model for its
// description.
func (m *Model) Apply(o *workspace.Options) error {
	installed, err := m.installed()
	if err != nil {
		return err
	}
	if m.shared == nil {
		m.shared, m.tools = share(m.Open), share(m.OpenTools)
	}
	o.Description, o.Model, o.Reader = minilm.Description(), m.shared, m.OpenReader
	if m.Rerank != "" {
		dir, err := filepath.Abs(m.Rerank)
		if err != nil {
			return err
		}
		o.RerankDir = dir
	}
	if m.rerankers == nil {
		m.rerankers = shareRerankers(m.Engine)
	}
	o.Reranker = m.rerankers
	if installed != nil {
		o.Description = installed.Description
	}
	if m.native() {
		if installed == nil {
			o.ToolDescription, o.ToolModel, o.Tokenizer = minilm.ToolDescription(), m.tools, minilm.Tokenizer
		}
		o.Description.Kernel, o.ModelChosen = bert.Chosen(), m.Dir == BuiltIn
		return nil
	}
	e, err := m.shared()
	if err != nil {
		return err
	}
	o.Description, o.ModelChosen = e.Description(), true
	o.Description.Kernel = noClose{e}.Kernel()
	return nil
}

// share returns a function that opens a model once, which is never closed.
func share(open func() (models.Embedder, error)) func() (models.Embedder, error) {
	return sync.OnceValues(func() (models.Embedder, error) {
		e, err := open()
		return noClose{e}, err
	})
}

// native reports whether m is the installed model, or the built-in one on package bert.
func (m *Model) native() bool { return (m.Dir == "" || m.Dir == BuiltIn) && m.Engine != "hugot" }

// OpenTools opens the model for requests and tools, which is that of Open if it is not
// built in.
func (m *Model) OpenTools() (models.Embedder, error) {
	if installed, err := m.installed(); err != nil || installed != nil || !m.native() {
		return m.Open()
	}
	return minilm.OpenTools(nil)
}

var reader = sync.OnceValues(func() (models.Reader, error) { return minilm.OpenReader(nil) })

// OpenReader opens the model that reads requests, once for the process. It is built in.
func (m *Model) OpenReader() (models.Reader, error) { return reader() }

// installed returns the installed model if m chooses it.
func (m *Model) installed() (*Installed, error) {
	if m.Dir != "" || m.Engine == "hugot" {
		return nil, nil
	}
	return Chosen()
}

// Open loads the model. It fails if the files of an installed model have changed.
func (m *Model) Open() (models.Embedder, error) {
	installed, err := m.installed()
	if err != nil {
		return nil, err
	}
	switch {
	case installed != nil:
		e, err := (&Model{Dir: installed.Dir, Engine: installed.Engine}).Open()
		if err == nil && e.Description().ID != installed.Description.ID {
			err = errors.Join(fmt.Errorf("the model in %s has changed since it was installed; run cairn model add again", installed.Dir), e.Close())
		}
		return e, err
	case m.Engine == "hugot" && m.Dir != "" && m.Dir != BuiltIn:
		return onnx.Open(m.Dir)
	case m.Engine == "hugot":
		if err := minilm.Verify(); err != nil {
			return nil, err
		}
		return onnx.New(minilm.Weights(), minilm.TokenizerJSON(), minilm.Description())
	case m.Engine != "" && m.Engine != "bert":
		return nil, fmt.Errorf("unknown engine %q, want {bert,hugot}", m.Engine)
	case m.Dir != "" && m.Dir != BuiltIn:
		return bert.Open(m.Dir, nil)
	}
	return minilm.Open(nil)
}

// OpenReranker loads the re-ranker in Rerank. It returns nil if Rerank is "".
func (m *Model) OpenReranker() (models.Reranker, error) {
	if m.Rerank == "" {
		return nil, nil
	}
	return openReranker(m.Engine, m.Rerank)
}

// shareRerankers returns a function that opens the cross-encoder in a folder once and never
// closes it.
func shareRerankers(engine string) func(dir string) (models.Reranker, error) {
	var opened sync.Map
	return func(dir string) (models.Reranker, error) {
		open, _ := opened.LoadOrStore(dir, sync.OnceValues(func() (models.Reranker, error) { return openReranker(engine, dir) }))
		return open.(func() (models.Reranker, error))()
	}
}

// openReranker opens a cross-encoder. The engine bert runs only BERT models, so hugot runs
// any other.
func openReranker(engine, dir string) (models.Reranker, error) {
	var native error
	if engine != "hugot" {
		r, err := bert.OpenReranker(dir, nil)
		if native = err; err == nil {
			return r, nil
		}
	}
	r, err := onnx.OpenReranker(dir)
	if err != nil {
		return nil, errors.Join(native, err)
	}
	return r, nil
}

// noClose is a shared model, which its users must not close.
type noClose struct{ models.Embedder }

func (noClose) Close() error { return nil }

// Kernel returns the name of the kernel that runs the model, "" if it is unknown.
func (n noClose) Kernel() string {
	if k, ok := n.Embedder.(interface{ Kernel() string }); ok {
		return k.Kernel()
	}
	return ""
}
