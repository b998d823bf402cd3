//go:build cgo && ORT

package onnx

import (
	"context"
	"errors"
	"os"
	"strconv"
	"sync"

	"github.com/knights-analytics/hugot"
	"github.com/knights-analytics/hugot/backends"
	"github.com/knights-analytics/hugot/options"
	"github.com/knights-analytics/hugot/pipelines"
)

// Engine runs the models in this build: "go" or "onnxruntime".
const Engine = "onnxruntime"

// runtime is the process's single ONNX Runtime. The options of the model opened
// first apply to all models that are open at the same time.
var runtime struct {
	sync.Mutex
	session *hugot.Session
	opened  int // models opened since the session began, for their names
	users   int // open models
}

// load loads the model in folder dir into the process's session. The environment variable
// CAIRN_ORT names the folder that holds libonnxruntime.so, by default /usr/lib.
func load(dir string) (*backends.BasePipeline, func() error, error) {
	r := &runtime
	r.Lock()
	defer r.Unlock()
	if r.session == nil {
		var with []options.WithOption
		if library := os.Getenv("CAIRN_ORT"); library != "" {
			with = append(with, options.WithOnnxLibraryPath(library))
		}
		s, err := hugot.NewORTSession(context.Background(), with...)
		if err != nil {
			return nil, nil, err
		}
		r.session, r.opened = s, 0
	}
	// Hugot changes the working folder of the process to the model's while it
	// loads, and does not change it back if loading fails.
	wd, err := os.Getwd()
	if err != nil {
		return nil, nil, errors.Join(err, leave())
	}
	r.opened++
	name := strconv.Itoa(r.opened)
	p, err := newPipeline(r.session, dir, name)
	err = errors.Join(err, os.Chdir(wd))
	if err != nil {
		return nil, nil, errors.Join(err, leave())
	}
	r.users++
	release := sync.OnceValue(func() error {
		r.Lock()
		defer r.Unlock()
		r.users--
		return errors.Join(hugot.ClosePipeline[*pipelines.FeatureExtractionPipeline](r.session, name), leave())
	})
	return p.BasePipeline, release, nil
}

// newPipeline loads the model in dir into session s under a name.
func newPipeline(s *hugot.Session, dir, name string) (p *pipelines.FeatureExtractionPipeline, err error) {
	defer recoverInto(&err)
	return hugot.NewPipeline(s, hugot.FeatureExtractionConfig{ModelPath: dir, Name: name, OnnxFilename: "model.onnx"})
}

// leave destroys the session if no model uses it. The caller holds the lock.
func leave() error {
	if runtime.users > 0 {
		return nil
	}
	err := runtime.session.Destroy()
	runtime.session = nil
	return err
}
