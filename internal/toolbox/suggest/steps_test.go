package suggest

import (
	"slices"
	"strings"
	"testing"

	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/toolsearch"
)

func forge(t *testing.T) []catalog.Tool {
	return []catalog.Tool{
		described(t, "github:fork_repository: owner:string repo:string", "Fork a repository"),
		described(t, "github:create_branch: branch:string", "Create a branch in a repository"),
		described(t, "github:push_files: branch:string files:array", "Push files to a branch"),
		described(t, "github:create_issue: title:string body:string?", "Create an issue"),
		described(t, "github:list_issues: state:string?", "List the issues of a repository"),
		described(t, "github:close_issue: issue_number:integer", "Close an open issue"),
		described(t, "github:list_notifications: ", "List my notifications"),
		described(t, "github:mark_all_notifications_read: ", "Mark all notifications as read"),
		described(t, "mail:send_mail: to:array body:string", "Send a mail"),
	}
}

// links returns the edges as "from→to kind", with the servers cut off.
func linksOf(s *Suggestion) (list []string) {
	for _, e := range s.DAG.Edges {
		_, from, _ := strings.Cut(e.From, ":")
		_, to, _ := strings.Cut(e.To, ":")
		list = append(list, from+"→"+to+" "+e.Kind)
	}
	return list
}

func TestCommasSeparateSteps(t *testing.T) {
	s := suggest(t, index(t, forge(t)), Request{Intent: "fork a repository, create a branch and push files"})
	if got := toolsOf(s); !slices.Equal(got, []string{"github:fork_repository", "github:create_branch", "github:push_files"}) {
		t.Errorf("tools %v", got)
	}
	if got := linksOf(s); !slices.Equal(got, []string{"fork_repository→create_branch text", "create_branch→push_files text"}) {
		t.Errorf("edges %v, want the order of the text, marked as weak", got)
	}
}

func TestVerbsWithOneObject(t *testing.T) {
	x := index(t, append(toolset(t, "github:star_repository: owner:string"), forge(t)...))
	if got := toolsOf(suggest(t, x, Request{Intent: "fork and star the repository"})); !slices.Equal(got, []string{"github:fork_repository", "github:star_repository"}) {
		t.Errorf("tools %v", got)
	}
}

// TestQuotedIntent plans an intent in quotation marks like the same intent without them.
func TestQuotedIntent(t *testing.T) {
	x := index(t, forge(t))
	for _, intent := range []string{"Fork a repository. Then push files.", `"Fork a repository. Then push files."`, "“Fork a repository. Then push files.”"} {
		if got := toolsOf(suggest(t, x, Request{Intent: intent})); !slices.Equal(got, []string{"github:fork_repository", "github:push_files"}) {
			t.Errorf("%s: tools %v", intent, got)
		}
	}
}

func TestStatedOrderBecomesEdges(t *testing.T) {
	x := index(t, forge(t))
	for intent, want := range map[string][]string{
		"fork a repository, then create a branch, then push some files": {"fork_repository→create_branch stated", "create_branch→push_files stated"},
		"list my notifications, then mark all as read":                  {"list_notifications→mark_all_notifications_read stated"},
		"push the files after you create a branch":                      {"create_branch→push_files stated"},
		"create a branch and push files to it":                          {"create_branch→push_files stated"},
	} {
		if got := linksOf(suggest(t, x, Request{Intent: intent})); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", intent, got, want)
		}
	}
}

func TestClauseWithoutToolIsUnmatched(t *testing.T) {
	s := suggest(t, index(t, forge(t)), Request{Intent: "fork a repository, play music and push files"})
	if !slices.Equal(s.Unmatched, []string{"play music"}) {
		t.Errorf("unmatched %q, tools %v", s.Unmatched, toolsOf(s))
	}
}

// TestMissingInputNamesItsSupplier: a required identifier that neither the intent nor a chosen tool
// gives is missing, with the tool that lists what it identifies.
func TestMissingInputNamesItsSupplier(t *testing.T) {
	x := index(t, forge(t))
	s := suggest(t, x, Request{Intent: "close an issue"})
	if want := []Missing{{"task_0", "github:close_issue", "issue_number", "github:list_issues"}}; len(s.Tasks) != 1 || !slices.Equal(s.Missing, want) {
		t.Errorf("tools %v, missing %v, want %v", toolsOf(s), s.Missing, want)
	}
	s = suggest(t, x, Request{Intent: "list the issues and close an issue"})
	if got := linksOf(s); !slices.Equal(got, []string{"list_issues→close_issue inferred"}) || s.DAG.Edges[0].DataPath != "issue → input.issue_number" || len(s.Missing) > 0 {
		t.Errorf("edges %v, missing %v", s.DAG.Edges, s.Missing)
	}
	if s := suggest(t, x, Request{Intent: "close issue 42"}); len(s.Tasks) != 1 || len(s.Missing) > 0 {
		t.Errorf("with a number: %v, missing %v", toolsOf(s), s.Missing)
	}
}

func TestNumberOfPullRequest(t *testing.T) {
	merge := tool(t, "merge_pull_request: pullNumber:integer")
	if got := sureArguments(&merge, "merge pull request 17"); got["pullNumber"] != int64(17) {
		t.Errorf("arguments %v", got)
	}
}

// TestSupplierOfServerWithoutRequiredInputs: names decide where the schemas state no needs.
func TestSupplierOfServerWithoutRequiredInputs(t *testing.T) {
	optional := []catalog.Tool{described(t, "shop:cancel_order: reason:string?", "Cancel an order"), described(t, "shop:search_orders: text:string?", "Search orders")}
	s := suggest(t, index(t, optional), Request{Intent: "cancel the order"})
	if got := toolsOf(s); !slices.Equal(got, []string{"shop:search_orders", "shop:cancel_order"}) || !s.Tasks[0].Prerequisite {
		t.Errorf("tools %v", got)
	}
	stated := append(optional, described(t, "shop:get_invoice: invoice_id:string", "Get an invoice"))
	if got := toolsOf(suggest(t, index(t, stated), Request{Intent: "cancel the order"})); !slices.Equal(got, []string{"shop:cancel_order"}) {
		t.Errorf("with a required input: %v", got)
	}
}

// TestSpecificationExampleByIntent reaches the worked example of the contract by
// the intent that the README shows.
func TestSpecificationExampleByIntent(t *testing.T) {
	x := index(t, []catalog.Tool{
		described(t, "filesystem:read: path:string -> content:string", "Read a file"),
		described(t, "json:parse: jsonString:string -> parsed:object", "Parse JSON text"),
		described(t, "github:create: data:object", "Open a GitHub issue"),
		described(t, "mail:send: to:array body:string", "Send a mail"),
	})
	s := suggest(t, x, Request{Intent: "read config.json and open an issue about it"})
	var data []string
	for _, e := range s.DAG.Edges {
		if e.Kind == DataEdge {
			data = append(data, e.From+"→"+e.To+" "+e.DataPath)
		}
	}
	if want := []string{"filesystem:read→json:parse output.content → input.jsonString", "json:parse→github:create output.parsed → input.data"}; !slices.Equal(data, want) || len(s.Layers) != 3 {
		t.Errorf("tools %v, data %q, layers %v", toolsOf(s), data, s.Layers)
	}
	if s.Tasks[0].Arguments["path"] != "config.json" {
		t.Errorf("arguments %v", s.Tasks[0].Arguments)
	}
}

// TestGivenToolsUseLearntDependencies: npm_install runs between the others, as past use ran them.
func TestGivenToolsUseLearntDependencies(t *testing.T) {
	tools := toolset(t, "git:git_clone: ", "npm:npm_install: ", "ops:deploy: ")
	order := []string{"git:git_clone", "npm:npm_install", "ops:deploy"}
	x := index(t, tools, toolsearch.Trace{Intent: "ship it", Tools: order, Edges: [][2]int{{0, 1}, {1, 2}}})
	s := suggest(t, x, Request{Tools: []string{"ops:deploy", "npm:npm_install", "git:git_clone"}})
	if got := toolsOf(s); !slices.Equal(got, order) || len(s.Layers) != 3 {
		t.Errorf("order %v in %v", got, s.Layers)
	}
	if got := linksOf(s); !slices.Equal(got, []string{"git_clone→npm_install sequence", "npm_install→deploy sequence"}) {
		t.Errorf("edges %v", got)
	}
}

// TestObservedBetween: a tool that past use ran between two chosen tools joins the plan, unless
// past use ran them directly one after the other as often.
func TestObservedBetween(t *testing.T) {
	tools := []catalog.Tool{described(t, "git:git_clone: ", "Clone a repository"), described(t, "npm:npm_install: ", "Install packages"), described(t, "ops:deploy: ", "Deploy an application")}
	whole := toolsearch.Trace{Intent: "ship it", Tools: []string{"git:git_clone", "npm:npm_install", "ops:deploy"}, Edges: [][2]int{{0, 1}, {1, 2}}}
	direct := toolsearch.Trace{Intent: "send out", Tools: []string{"git:git_clone", "ops:deploy"}, Edges: [][2]int{{0, 1}}}
	intent := "clone the repository and deploy it"
	s := suggest(t, index(t, tools, whole, whole, whole, direct), Request{Intent: intent})
	if got := linksOf(s); !slices.Equal(toolsOf(s), whole.Tools) || !slices.Contains(got, "git_clone→npm_install sequence") || !slices.Contains(got, "npm_install→deploy sequence") || !strings.HasPrefix(s.Tasks[1].Rationale, "observed between") {
		t.Errorf("tools %v, edges %v, %q", toolsOf(s), got, s.Tasks[1].Rationale)
	}
	for _, traces := range [][]toolsearch.Trace{{whole}, {whole, whole, direct, direct}} {
		if got := toolsOf(suggest(t, index(t, tools, traces...), Request{Intent: intent})); !slices.Equal(got, direct.Tools) {
			t.Errorf("%d traces: tools %v", len(traces), got)
		}
	}
}

// TestMergedParts: each part of an intent has a tool of its own, or is in Merged or Unmatched.
func TestMergedParts(t *testing.T) {
	s := suggest(t, index(t, forge(t)), Request{Intent: "list the issues, list the open issues and push files"})
	if got := toolsOf(s); !slices.Equal(got, []string{"github:list_issues", "github:push_files"}) || len(s.Unmatched) > 0 || !slices.Equal(s.Merged, []Merged{{"list the open issues", "github:list_issues"}}) {
		t.Errorf("tools %v, unmatched %q, merged %v", got, s.Unmatched, s.Merged)
	}
}

// TestPartWithoutItsBestToolIsUnmatched: a tool that only resembles the best one does not serve a part.
func TestPartWithoutItsBestToolIsUnmatched(t *testing.T) {
	x := index(t, []catalog.Tool{described(t, "book:list_pages: ", "List the pages of a book"), described(t, "book:list_chapters: ", "List the chapters of a book")})
	s := suggest(t, x, Request{Intent: "list the pages of the book and list the chapters of the book", MaxTools: 1})
	if !slices.Equal(s.Unmatched, []string{"list the chapters of the book"}) || len(s.Merged) > 0 || s.Parts.Unmatched != 1 {
		t.Errorf("tools %v, unmatched %q, merged %v", toolsOf(s), s.Unmatched, s.Merged)
	}
}

// TestServerNamedByAPart: the intent names a server, but the tool of another one has the best score.
func TestServerNamedByAPart(t *testing.T) {
	tools := []catalog.Tool{described(t, "alpha:list_pages: ", "List the pages"), described(t, "alpha:delete_note: ", "Delete the note"), described(t, "zeta:delete_note: ", "Delete a note")}
	s := suggest(t, index(t, tools), Request{Intent: "list the pages, then delete a note of alpha"})
	if got := toolsOf(s); !slices.Equal(got, []string{"alpha:list_pages", "alpha:delete_note"}) {
		t.Errorf("tools %v, %+v", got, s.Parts)
	}
}

// TestTypeOnlyEvidenceAgainstTheOrderIsReported: it orders nothing against the text, and it is not dropped silently.
func TestTypeOnlyEvidenceAgainstTheOrderIsReported(t *testing.T) {
	x := index(t, []catalog.Tool{
		described(t, "a:paint_fence: settings:object", "Paint the fence"),
		described(t, "b:mix_colour: -> parsed:object", "Mix a colour"),
	})
	s := suggest(t, x, Request{Intent: "paint the fence, then mix a colour"})
	if got := toolsOf(s); !slices.Equal(got, []string{"a:paint_fence", "b:mix_colour"}) {
		t.Fatalf("tools %v", got)
	}
	if !strings.Contains(strings.Join(s.Warnings, "\n"), "settings of a:paint_fence could also come from b:mix_colour by its type alone, which runs later") {
		t.Errorf("warnings %q", s.Warnings)
	}
}

// TestMemoryDoesNotOverruleFit: what was used for other work is not used for this.
func TestMemoryDoesNotOverruleFit(t *testing.T) {
	tools := []catalog.Tool{
		described(t, "fs:read_file: path:string", "Read a file from disk"),
		described(t, "mail:send_email: to:array body:string", "Send an email"),
		described(t, "github:create_issue: title:string", "Create a GitHub issue"),
	}
	trace := toolsearch.Trace{Intent: "read a file and send an email", Tools: []string{"fs:read_file", "mail:send_email"}, Edges: [][2]int{{0, 1}}}
	x := index(t, tools, trace, trace)
	if got := toolsOf(suggest(t, x, Request{Intent: "read a file and create a GitHub issue"})); !slices.Equal(got, []string{"fs:read_file", "github:create_issue"}) {
		t.Errorf("tools %v", got)
	}
	if got := toolsOf(suggest(t, x, Request{Intent: "read a file and send an email"})); !slices.Equal(got, trace.Tools) {
		t.Errorf("as before: %v", got)
	}
}

// TestDeclaredNeedsAreAll: where the catalogue declares what a tool needs, no name of an
// input adds another tool.
func TestDeclaredNeedsAreAll(t *testing.T) {
	x := index(t, []catalog.Tool{
		described(t, "air:view_flight: session_id:string", "View the status of a flight", "air:login"),
		described(t, "air:login: ", "Log in to the airline"),
		described(t, "air:track_study_session: ", "Track a study session with a timer"),
	})
	if got := toolsOf(suggest(t, x, Request{Intent: "View the status of a flight"})); !slices.Equal(got, []string{"air:login", "air:view_flight"}) {
		t.Errorf("tools %v", got)
	}
}

// TestBeforeWinsOverReference: "it" in a clause that runs before another one does not
// refer to the result of that one.
func TestBeforeWinsOverReference(t *testing.T) {
	x := index(t, []catalog.Tool{
		described(t, "github:merge_pull_request: pullNumber:integer", "Merge a pull request"),
		described(t, "github:request_copilot_review: pullNumber:integer", "Request a review from Copilot"),
	})
	s := suggest(t, x, Request{Intent: "before merging pull request 17, request a review of it from Copilot"})
	if got := linksOf(s); !slices.Equal(got, []string{"request_copilot_review→merge_pull_request stated"}) {
		t.Errorf("edges %v", got)
	}
}

// TestChoiceOfToolsTogether: where two tools fit a part alike, its action and the values of the
// intent decide.
func TestChoiceOfToolsTogether(t *testing.T) {
	for _, c := range []struct {
		name, intent string
		tools        []catalog.Tool
		want         []string
	}{
		{"what writes may create", "create a file for the notes", []catalog.Tool{
			described(t, "fs:file_write: ", "A file for the notes"),
			described(t, "fs:file_delete: ", "A file for the notes"),
		}, []string{"fs:file_write"}},
		{"a value of the intent", "send the report to ann@example.com", []catalog.Tool{
			described(t, "a:send_chat: channel:string?", "Send the report"),
			described(t, "b:send_mail: email:string?", "Send the report"),
		}, []string{"b:send_mail"}},
	} {
		if got := toolsOf(suggest(t, index(t, c.tools), Request{Intent: c.intent})); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// A link against the order of the steps, as usage can have one, closes no cycle.
func TestLinkAgainstTheOrder(t *testing.T) {
	p := &planner{out: &Suggestion{}, values: valuesOf(""), steps: []step{{tool: catalog.Tool{ID: "a"}, part: -1}, {tool: catalog.Tool{ID: "b"}, part: -1}}, links: links{
		{0, 1}: {kind: StatedEdge, grade: StatedOrder}, {1, 0}: declaredLink}}
	if err := p.connect(); err != nil {
		t.Fatal(err)
	}
	if got := p.out.DAG.Edges; len(got) != 1 || got[0].From != "a" {
		t.Errorf("edges %+v, want one from a to b", got)
	}
}
