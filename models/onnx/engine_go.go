//go:build !cgo || !ORT

package onnx

import (
	"context"

	_ "github.com/gomlx/gomlx/backends/simplego" // the backend that hugot calls "GO"
	"github.com/knights-analytics/hugot/backends"
	"github.com/knights-analytics/hugot/options"
)

// Engine runs the models in this build: "go" or "onnxruntime".
const Engine = "go"

// load loads the model in folder dir. It does not use hugot's sessions and pipelines,
// because the linker would then keep the code for every kind of model that hugot supports.
func load(dir string) (p *backends.BasePipeline, release func() error, err error) {
	defer recoverInto(&err)
	o := options.Defaults()
	o.Backend = "GO"
	model, err := backends.LoadModel(context.Background(), dir, "model.onnx", o, false)
	if err != nil {
		return nil, nil, err
	}
	p, err = backends.NewBasePipeline(context.Background(), backends.PipelineConfig[backends.Pipeline]{Name: "model"}, o, model)
	return p, model.Destroy, err
}
