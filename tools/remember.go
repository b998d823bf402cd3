package tools

import (
	"context"

	"cairn/internal/task/notes"
)

func remember(o *Options) tool {
	return tool{
		name: "remember", title: "Write, confirm or drop a note", groups: []Group{Docs}, notIdempotent: true,
		description: `Note down what you found out, with the lines that show it. Searches find notes, and warn when these lines change.
Use it for what took work to find and is not written in one place. With id, a text corrects the note and no text confirms it. Not for work to do: use create_task.`,
		handler: codeHandler(func(ctx context.Context, r notes.Request) (*notes.Answer, error) {
			if r.By == "" {
				r.By = "agent"
			}
			return o.Tasks.Remember(ctx, o.Stages, peerOf(ctx).Name, r)
		}),
	}
}
