package main

import "github.com/spf13/cobra"

// examples are those of commands that do not carry their own.
var examples = map[string]string{
	"cairn init":          "  cairn init\n  cairn init -C ~/notes",
	"cairn index":         "  cairn index\n  cairn index --rebuild",
	"cairn roots add":     "  cairn roots add wiki ~/wiki",
	"cairn roots remove":  "  cairn roots remove wiki",
	"cairn status":        "  cairn status --json",
	"cairn doctor":        "  cairn doctor\n  cairn doctor --repair",
	"cairn version":       "  cairn version",
	"cairn mcp":           "  cairn mcp -C ~/notes\n  cairn mcp --tools core,tasks",
	"cairn card list":     "  cairn card list --status all --tag auth",
	"cairn card show":     "  cairn card show xyz789",
	"cairn card edit":     "  cairn card edit xyz789 --assignee @ann --tag auth",
	"cairn card done":     "  cairn card done xyz789",
	"cairn dag ready":     "  cairn dag ready --limit 5",
	"cairn dag order":     "  cairn dag order --channel /plans/setup.md",
	"cairn dag groups":    "  cairn dag groups",
	"cairn dag critical":  "  cairn dag critical",
	"cairn dag stats":     "  cairn dag stats --json",
	"cairn dag blocking":  "  cairn dag blocking xyz789",
	"cairn dag unblocks":  "  cairn dag unblocks",
	"cairn dag graph":     "  cairn dag graph --format mermaid",
	"cairn task start":    "  cairn task start /plans/setup.md database",
	"cairn task complete": `  cairn task complete /plans/setup.md database --note "migrated"`,
	"cairn plan list":     "  cairn plan list",
	"cairn plan show":     "  cairn plan show 3f2a",
	"cairn plan watch":    "  cairn plan watch 3f2a",
	"cairn plan abort":    "  cairn plan abort 3f2a",
	"cairn tools list":    "  cairn tools list",
	"cairn tools show":    "  cairn tools show github:create_issue",
	"cairn tools graph":   "  cairn tools graph",
	"cairn tools learn":   "  cairn tools learn sessions.jsonl",
	"cairn tools forget":  "  cairn tools forget --before 2026-01-01",
	"cairn bench docs":    "  cairn bench docs --data scifact --split test",
	"cairn bench tools":   "  cairn bench tools --data catalogue",
	"cairn bench embed":   "  cairn bench embed --texts texts.jsonl",
	"cairn bench dag":     "  cairn bench dag",
	"cairn bench stage":   "  cairn bench stage\n  cairn bench stage --tasks 1000 --postgres postgres://localhost/bench",
}

// addExamples gives every command below root its example, if it has none.
func addExamples(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		if cmd.Example == "" {
			cmd.Example = examples[cmd.CommandPath()]
		}
		addExamples(cmd)
	}
}
