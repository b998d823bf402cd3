package view

import (
	"strings"
	"testing"

	"cairn/retriever"
)

func TestNotes(t *testing.T) {
	for _, c := range []struct {
		answer retriever.Answer
		want   string
	}{
		{retriever.Answer{Reason: "no_match", Hint: "nothing matches: use other words"}, "nothing found: use other words"},
		{retriever.Answer{Reason: "not_indexed", Hint: "the folder has not been indexed yet: call the tool index, then search again"},
			"nothing found: the folder has not been indexed yet: run `cairn index`, then search again"},
		{retriever.Answer{}, "nothing found"},
		{retriever.Answer{Results: make([]retriever.Result, 1)}, ""},
		{retriever.Answer{Results: make([]retriever.Result, 1), Fuzzy: true, Degraded: []string{"vectors"}, Index: retriever.IndexState{Embedded: 3, Pending: 1}},
			"nothing matches the words as typed; these results match near spellings|1 of 4 pieces have no vector yet and were found by keyword only; `cairn index` makes the rest"},
		{retriever.Answer{Results: make([]retriever.Result, 1), Degraded: []string{"files"}, Index: retriever.IndexState{Unindexed: 700}},
			"700 files of the folder are not indexed yet and were not searched; `cairn index` indexes the rest"},
	} {
		if got := strings.Join(Notes(&c.answer), "|"); got != c.want {
			t.Errorf("notes(%+v) = %q, want %q", c.answer, got, c.want)
		}
	}
}
