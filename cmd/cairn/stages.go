package main

import (
	"errors"
	"log/slog"
	"os"

	"cairn/internal/stage"
	"cairn/internal/stage/openai"
	"cairn/internal/workspace"
)

// stageFlags say where question tasks are done. Zero means here, all that can be.
type stageFlags struct {
	stages  []stage.Stage
	workers int
}

// openStages opens the question tasks of a workspace. The endpoint of a
// language model comes from the environment alone: a folder's configuration
// must not send its text anywhere.
func (a *app) openStages(w *workspace.Workspace, log *slog.Logger, f stageFlags) (*workspace.Stages, error) {
	o := &workspace.StageOptions{Stages: f.stages, Workers: f.workers, Logger: log}
	model, err := openai.FromEnv(os.Getenv)
	if err != nil {
		return nil, err
	}
	if model != nil { // a nil *Client in an interface would not be nil
		o.Reasoner = model
		if os.Getenv("CAIRN_LLM_JUDGE") == "1" {
			o.Judge = model
		}
	}
	return w.Stages(o)
}

func stageIs(err error, c stage.Code) bool { return errors.Is(err, stage.Is(c)) }
