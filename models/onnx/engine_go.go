//go:build !cgo || !ORT

package onnx

import (
	"context"
	"errors"

	"github.com/knights-analytics/hugot"
	"github.com/knights-analytics/hugot/pipelines"
)

// Engine is what runs the models in this build: "go" or "onnxruntime".
const Engine = "go"

// load loads the model in folder dir into a session of its own.
func load(dir string, _ *Options) (*pipelines.FeatureExtractionPipeline, func() error, error) {
	s, err := hugot.NewGoSession(context.Background())
	if err != nil {
		return nil, nil, err
	}
	p, err := newPipeline(s, dir, "model")
	if err != nil {
		return nil, nil, errors.Join(err, s.Destroy())
	}
	return p, s.Destroy, nil
}
