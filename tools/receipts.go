package tools

import (
	"context"
	"errors"

	"cairn/internal/folder/workspace"
)

type checkReceiptsArgs struct {
	Receipts []string `json:"receipts,omitempty" schema:"min=1,max=1000" jsonschema:"Such as docs/a.md:3-9#setup@s5mXq0aFjT2kz1Bc"`
	Path     string   `json:"path,omitempty" jsonschema:"Document with receipts, instead of receipts"`
	Format   string   `json:"format,omitempty" schema:"enum=json" jsonschema:"json: all fields"`
}

func checkReceipts(t *workspace.Tasks) tool {
	return tool{
		name: "check_receipts", title: "Check what cited lines say now", groups: []Group{Docs}, readOnly: true, noSchema: true,
		description: `Tell whether cited lines are the same, moved (with the new place), changed (with the new lines) or removed.
Use it before you rely on lines that a note cites. A receipt is a place with the mark of read_doc: path:from-to #anchor @mark. Not for reading: use read_doc.`,
		handler: codeHandler(func(ctx context.Context, a checkReceiptsArgs) (any, error) {
			if (a.Path == "") == (len(a.Receipts) == 0) {
				return nil, invalid("give either receipts or path")
			}
			var report *workspace.ReceiptReport
			var err error
			name := "receipts"
			if a.Path != "" {
				name = "path"
				report, err = t.CheckReceipts(ctx, []string{a.Path}, false)
			} else {
				report, err = t.CheckReceiptList(ctx, a.Receipts)
			}
			if bad, ok := errors.AsType[*workspace.InvalidReceiptError](err); ok {
				return nil, invalid("%s: %s", name, bad)
			}
			return answerAs(report, err, wantsText(ctx, a.Format))
		}),
	}
}
