package toolsearch

import (
	"slices"
	"testing"

	"cairn/internal/toolbox/catalog"
)

func TestRequest(t *testing.T) {
	for text, want := range map[string]string{
		"Go to https://example.com/a?b=c now":              "Go to web page now",
		"Tell everyone in #releases that 2.4 is out":       "Tell everyone in channel",
		"please give @maria access to config.json":         "please give person access to file",
		"close PR 42 of the repo":                          "close pull request 42 of the repository",
		"Open an issue about the broken login":             "Open an issue",
		"find papers about graphs":                         "find papers about graphs", // what is searched belongs to the request
		"put 'buy masks' on my list":                       "put on my list",
		"mail ann@example.com":                             "mail email address",
		"answer 'I'm done' and wait":                       "answer 'I'm done' and wait",
		`the question:\n\nThe text`:                        `the question:\n\nThe text`,
		`"quoted alone"`:                                   `"quoted alone"`,
		"don't delete what we've got in the mike's folder": "don't delete what we've got in the mike's folder",
	} {
		if got := requestOf(text); got != want {
			t.Errorf("requestOf(%q) = %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]Actions{
		"What's in the folder": Reading, "is there a train": Reading, "tell me the time": Reading, "tell everyone": Sending, "get rid of it": Removing, "remind me to call": Making,
	} {
		if got := RequestedActions(requestOf(text)); got&want == 0 {
			t.Errorf("RequestedActions(%q) = %b, want %b", text, got, want)
		}
	}
}

// TestPurposeWithoutServer: the name of the server, which all its tools have, is neither verb
// nor entity.
func TestPurposeWithoutServer(t *testing.T) {
	p := PurposeOf(&catalog.Tool{ID: "linear:linear_createIssue", Name: "linear_createIssue", Server: "linear-mcp"})
	if p.Verb != "create" || !slices.Equal(p.Entity, []string{"issue"}) || p.Actions&Making == 0 {
		t.Errorf("%+v", p)
	}
	if p = PurposeOf(&catalog.Tool{ID: "git:git", Name: "git", Server: "git"}); !slices.Equal(p.Entity, []string{"git"}) {
		t.Errorf("a tool with the server's name: %+v", p)
	}
	if p = PurposeOf(&catalog.Tool{ID: "x", Name: "browser_take_screenshot"}); p.Verb != "take" {
		t.Errorf("the second word: %+v", p)
	}
}
