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

// runtime is ONNX Runtime, of which a process holds one: the options of the
// model opened first hold for all that are open at the same time.
var runtime struct {
	sync.Mutex
	session *hugot.Session
	opened  int // models since the session began, to name them
	users   int // models open now
}

// load loads the model in folder dir into the process's session.
func load(dir string, opts *Options) (*backends.BasePipeline, func() error, error) {
	r := &runtime
	r.Lock()
	defer r.Unlock()
	if r.session == nil {
		var with []options.WithOption
		if opts.LibraryDir != "" {
			with = append(with, options.WithOnnxLibraryPath(opts.LibraryDir))
		}
		if opts.Threads > 0 {
			with = append(with, options.WithIntraOpNumThreads(opts.Threads))
		}
		s, err := hugot.NewORTSession(context.Background(), with...)
		if err != nil {
			return nil, nil, err
		}
		r.session, r.opened = s, 0
	}
	// Hugot loads from inside the model's folder, which moves the whole process
	// there for that time, and stays there when loading fails.
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

// leave ends the session when no model uses it. The caller holds the lock.
func leave() error {
	if runtime.users > 0 {
		return nil
	}
	err := runtime.session.Destroy()
	runtime.session = nil
	return err
}
