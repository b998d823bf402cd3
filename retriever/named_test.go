package retriever

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"cairn/internal/store"
	"cairn/internal/store/docs"
)

// TestNamedLines: the sections at lines of files, as tools print them, come before a text that
// quotes the query.
func TestNamedLines(t *testing.T) {
	files := map[string]string{
		"src/pool/lease.py": "import os\n\ndef park():\n    pass\n\ndef renew():\n    return os.name\n",
		"web/app.ts":        "export function draw() {\n  return 1\n}\n\nexport function hide() {\n  return 2\n}\n",
		"docs/a.md":         "# A\n\nText.\n\n## B\n\nOther.\n",
		"setup.py":          "def configure():\n    pass\n",
		"lib/setup.py":      "def install():\n    pass\n",
	}
	for i := range maxNamed + 1 {
		files[fmt.Sprintf("p%d/index.ts", i)] = "export function index() {\n  return 1\n}\n"
	}
	cases := map[string]string{
		"src/pool/lease.py:7: error: pool":                                               "src/pool/lease.py#renew",
		`File "/usr/lib/site/src/pool/lease.py", line 7, in renew`:                       "src/pool/lease.py#renew",
		"Traceback:\n  File \"/app/pool/lease.py\", line 7\n  File \"lease.py\", line 3": "src/pool/lease.py#park src/pool/lease.py#renew",
		"C:\\w\\src\\pool\\lease.py:line 3":                                              "src/pool/lease.py#park",
		"pool lease.py:3":                                                                "src/pool/lease.py#park",
		"src/pool/lease.py":                                                              "src/pool/lease.py",
		"error in ./web/app.ts(6,3)":                                                     "web/app.ts#hide",
		"at draw (webpack:///./web/app.ts:2:10)":                                         "web/app.ts#draw",
		"pool in /srv/web/app.ts on line 6":                                              "web/app.ts#hide",
		"+++ b/web/app.ts\n@@ -4,3 +5,3 @@\n-  error\n":                                  "web/app.ts#hide",
		"pool docs/a.md#L5":                                                              "docs/a.md#b",
		"error in setup.py:1":                                                            "setup.py#configure",
		"/app/setup.py:1 error":                                                          "setup.py#configure",
	}
	// Names that mean no file, too many files, a line past the end, and what the caller excludes.
	others := []Query{
		{Text: "error in other/lease.py:3"}, {Text: "pool error index.ts:1"}, {Text: "pool error web/app.ts:99999999999999999999"},
		{Text: "pool error /usr/lib/node/setup.py:1"}, {Text: "pool error at 12:30 in web/app.ts:2 -draw"},
		{Text: "pool error web/app.ts:2", Filter: store.Filter{Kind: store.Docs}},
	}
	for query := range cases {
		files["README.md"] += "## Case\n\n" + query + "\n\n"
	}
	for _, q := range others {
		files["README.md"] += "## Case\n\n" + q.Text + "\n\n"
	}
	f := open(t, files, nil)
	for query, want := range cases {
		a := f.search(Query{Text: query, Mode: Keyword})
		var got []string
		for _, r := range a.Results {
			if r.Score > useWeight {
				got = append(got, r.Place())
			}
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %v, want %s", query, got, want)
		}
	}
	for _, q := range others {
		q.Mode = Keyword
		if a := f.search(q); len(a.Results) == 0 || a.Results[0].Path != "README.md" {
			t.Errorf("%+v: %+v, want README.md first", q, a.Results)
		}
	}
}

// TestTextAtNamedLine: of a long symbol, an answer gives the lines around the one that the query
// names, and not those with its words.
func TestTextAtNamedLine(t *testing.T) {
	body := strings.Repeat("\tcount++ // as before\n", 40)
	f := open(t, map[string]string{"pool.go": "package pool\n\nfunc park() {\n\tlog(\"lease late\")\n" + body + "\treturn deadline\n" + body + "}\n"}, nil)
	a := f.search(Query{Text: "pool.go:45: lease late in park", Mode: Keyword, MaxTokens: 200})
	_, after, _ := strings.Cut(a.Results[0].Content, "return deadline")
	if !strings.Contains(after, "count++") {
		t.Errorf("no lines around line 45 in %q", a.Results[0].Content)
	}
}

// TestNamedFiles: the best section of a file that a question names without a line comes first.
func TestNamedFiles(t *testing.T) {
	files := map[string]string{
		"env/replace.go":   "package env\n\n// fold joins.\nfunc fold() {}\n\n// drop removes a variable.\nfunc drop() {}\n",
		"docs/setup.md":    "# Setup\n\nText.\n\n## More\n\nA variable.\n",
		"main.go":          "package main\n\nfunc main() {}\n",
		"tools/x/index.ts": "export function show() {}\n",
	}
	cases := map[string]string{
		"how does replace.go handle a variable of the form env.x?": "env/replace.go#drop",
		"env form: where does ./env/replace.go handle a variable":  "env/replace.go#drop",
		"handle a variable, see `/home/me/env/replace.go`.":        "env/replace.go#drop",
		"what does docs/setup.md say of a variable?":               "docs/setup.md#more",
		"is tools/x/index.ts a form to handle env":                 "tools/x/index.ts#show",
	}
	for query := range cases {
		files["README.md"] += "## Case\n\n" + query + "\n\n"
	}
	others := []string{"form to read/write a variable", "form to handle setup.md", "handle env in other/replace.go -show"}
	for _, query := range others {
		files["README.md"] += "## Case\n\n" + query + "\n\n"
	}
	f := open(t, files, nil)
	for query, want := range cases {
		if a := f.search(Query{Text: query, Mode: Keyword}); len(a.Results) == 0 || a.Results[0].Place() != want {
			t.Errorf("%q: %s first, want %s", query, a.Results[0].Place(), want)
		}
	}
	for _, query := range others {
		if a := f.search(Query{Text: query, Mode: Keyword}); len(a.Results) == 0 || a.Results[0].Path != "README.md" {
			t.Errorf("%q: %+v, want README.md first", query, a.Results)
		}
	}
}

// TestNamedFileLeftOut: an answer says why a file is not indexed whose path is the query.
func TestNamedFileLeftOut(t *testing.T) {
	f := open(t, map[string]string{"docs/a.md": "# Lease\n\nrun lease\n"}, nil)
	must(t, f.docs.SetSkipped(t.Context(), []docs.Skipped{{Path: "docs/big.md", Reason: "too large"}, {Path: "docs/a.md", Reason: "indexed in part: too many words"}}))
	for query, want := range map[string]string{"docs/big.md": "docs/big.md is not indexed: too large", "docs/a.md": "", "lease.run": ""} {
		if got := f.search(Query{Text: query, Mode: Keyword}).Hint; want != "" && got != want || want == "" && strings.Contains(got, "indexed") {
			t.Errorf("%q: hint %q, want %q", query, got, want)
		}
	}
}
