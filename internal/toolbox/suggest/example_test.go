package suggest_test

import (
	"context"
	"fmt"
	"log"

	"cairn/internal/base/testutil"
	"cairn/internal/store/keyword"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/suggest"
	"cairn/internal/toolbox/toolsearch"
)

func ExampleSuggest() {
	ctx := context.Background()
	words, err := keyword.Memory()
	if err != nil {
		log.Fatal(err)
	}
	defer words.Close()
	index := toolsearch.New(words, toolsearch.Options{Reader: testutil.Tagger}) // without an encoder
	var tools []catalog.Tool
	for _, t := range []catalog.Tool{
		{Name: "find_invoice", Description: "Find the invoice of a customer",
			Input:  []byte(`{"type":"object","required":["customer"],"properties":{"customer":{"type":"string"}}}`),
			Output: []byte(`{"type":"object","properties":{"invoice_id":{"type":"string"}}}`)},
		{Name: "send_reminder", Description: "Send a reminder for an unpaid invoice",
			Input: []byte(`{"type":"object","required":["invoice_id"],"properties":{"invoice_id":{"type":"string"}}}`)},
	} {
		if t, err = catalog.New(t); err != nil {
			log.Fatal(err)
		}
		tools = append(tools, t)
	}
	if err := index.Sync(ctx, tools, nil); err != nil {
		log.Fatal(err)
	}
	plan, err := suggest.Suggest(ctx, index, suggest.Request{Intent: "find the invoice of the customer Ada and send a reminder"})
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range plan.Tasks {
		fmt.Println(t.ID, t.Tool, t.DependsOn, t.DataPaths)
	}
	// Output:
	// task_0 find_invoice [] []
	// task_1 send_reminder [task_0] [find_invoice: output.invoice_id → input.invoice_id]
}
