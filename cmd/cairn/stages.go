package main

import (
	"errors"
	"log/slog"

	"cairn/internal/stage"
	"cairn/internal/workspace"
)

// stageFlags say where question tasks are kept and done. Zero means in the folder.
type stageFlags struct {
	stages  []stage.Stage
	workers int
}

// openStages opens the question tasks of a workspace.
func (a *app) openStages(w *workspace.Workspace, log *slog.Logger, f stageFlags) (*workspace.Stages, error) {
	return w.Stages(&workspace.StageOptions{Stages: f.stages, Workers: f.workers, Logger: log})
}

func stageIs(err error, c stage.Code) bool { return errors.Is(err, stage.Is(c)) }
