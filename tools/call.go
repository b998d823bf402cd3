package tools

import (
	"context"

	"cairn/internal/workspace"
)

type progressKey struct{}

// withProgress returns a context whose call reports its progress to report.
func withProgress(ctx context.Context, report func(workspace.Progress)) context.Context {
	return context.WithValue(ctx, progressKey{}, report)
}

// progressOf is where a call reports its progress; nil when its client did not ask for it.
func progressOf(ctx context.Context) func(workspace.Progress) {
	report, _ := ctx.Value(progressKey{}).(func(workspace.Progress))
	return report
}
