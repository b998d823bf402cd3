package tools

import (
	"context"

	"cairn/internal/base/owner"
	"cairn/internal/folder/index"
)

func status(folder *owner.Folder, o *Options) tool {
	return tool{
		name: "status", title: "State of the index", groups: []Group{Core}, readOnly: true,
		description: `Report the state of the index, its numbers of files, sections and vectors, the model, the folder and the rule that chose it, and skipped files by reason.
Use it when answers look incomplete or come from the wrong folder. Not needed before a search: read_context notes what is missing.`,
		handler: codeHandler(func(ctx context.Context, _ struct{}) (*index.Status, error) {
			return index.StatusOp.Call(ctx, folder, o.Status, nil)
		}),
	}
}
