package keyword

import (
	"context"
	"testing"

	"cairn/internal/store"
	"cairn/internal/text/query"
)

// corpus contains texts about code that are hard to tokenise. Each document is named after
// the subject of its cases.
var corpus = map[string]string{
	"handle":    "func handle_read_context(ctx) dispatches the call",
	"camel":     "The readContext method and its ReadContextOptions",
	"read":      "How to read a file into a buffer",
	"context":   "A context carries deadlines across goroutines",
	"http":      "HTTPServer listens; XMLHttpRequest is the browser's client",
	"apis":      "Public APIs are versioned, IDs are opaque",
	"version":   "Upgrade to v1.2.3 before the end of the month",
	"oldver":    "Release 1.11.0 removed the flag",
	"utf8":      "Strings are utf8 encoded, never latin1",
	"utf":       "The UTF-8 byte order mark is skipped",
	"sha":       "Checksums use sha256 in hexadecimal",
	"ipv6":      "Bind to an ipv6 address in brackets",
	"login":     "See docs/auth/login.md for the login flow",
	"logout":    "See docs/auth/logout.md for ending a session",
	"state":     "State-of-the-art retrieval, end-to-end",
	"readonly":  "The volume is mounted read-only",
	"email":     "Send an e-mail to the operator",
	"node":      "node.js is needed to build the pages",
	"dotnet":    "The .NET runtime runs managed assemblies",
	"aspnet":    "ASP.NET hosts web applications",
	"cpp":       "Templates in C++ are compiled twice, C++20 has modules",
	"csharp":    "C# records are immutable",
	"plainc":    "The C language has no exceptions",
	"flag":      "Use --dry-run to see what would change",
	"tarx":      "tar -x extracts an archive, tar -xzf a compressed one",
	"find":      "find . -name pattern lists files whose name fits",
	"jaguarcar": "The jaguar is a car made in Coventry",
	"jaguarcat": "The jaguar is a cat that swims",
	"cafe":      "Le café est fermé; naïve façade",
	"strasse":   "Die Straße nach Köln",
	"cjk":       "全文検索エンジンは形態素解析を使う",
	"cjk2":      "数据库索引与查询优化",
	"korean":    "데이터베이스 검색 엔진",
	"rolling":   "A rolling update replaces pods one by one",
	"rolled":    "An update of the rolling stock timetable",
	"tobe":      "To be or not to be",
	"oreilly":   "O'Reilly publishes animals, don't they",
	"possess":   "Kubernetes's scheduler binds pods; users' quotas differ",
	"env":       "Set CAIRN_WORKSPACE or MAX_OPEN_FILES in the environment",
	"dunder":    "Python calls __init__ after __new__",
	"scoped":    "Prefer std::unique_ptr over owning pointers",
	"url":       "Fetch https://example.org/download/index.html first",
	"mail":      "Write to ops@example.net for access",
	"k8s":       "k8s is short for kubernetes clusters",
	"error":     "Error E0382: use of moved value",
	"date":      "Released on 2024-03-15 in the spring",
	"number":    "The ratio is 3.14159 to one",
	"hex":       "Magic number 0xCAFEBABE begins a class file",
	"fullwidth": "ＡＢＣ１２３ is full width",
	"gitignore": "Patterns in .gitignore are globs",
	"percent":   "A load of 95% is too much",
	"stemming":  "Indexing documents and querying indices",
	"greek":     "Η Αθήνα είναι πόλη",
	"cyrillic":  "Ёлка и еж в лесу",
	"long":      "token aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa end",
	"jwt":       "The JWTParser validates a signature",
	"semver":    "Requires go1.26 or newer",
	"table":     "| tenant_id | owner | createdAt |",
	"quote":     "Answer “yes” to the session token prompt",
}

func corpusIndex(t *testing.T) *Index {
	t.Helper()
	x, err := Memory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	var entries []store.KeywordEntry
	for name, body := range corpus {
		entries = append(entries, store.KeywordEntry{Chunk: name, Body: body})
	}
	if err := x.Update(context.Background(), entries, nil); err != nil {
		t.Fatal(err)
	}
	return x
}

func TestTokenising(t *testing.T) {
	x := corpusIndex(t)
	for _, c := range []struct {
		query, want string
		not         string // a document that must not be found, if any
	}{
		{"read_context", "handle", ""},
		{"read_context", "camel", ""},
		{"readContext", "camel", ""},
		{"readcontext", "camel", ""},
		{"handle read", "handle", ""},
		{"handleReadContext", "handle", ""},
		{"ReadContextOptions", "camel", ""},
		{"http server", "http", ""},
		{"httpserver", "http", ""},
		{"XmlHttpRequest", "http", ""},
		{"xml request", "http", ""},
		{"API", "apis", ""},
		{"id opaque", "apis", ""},
		{"v1.2.3", "version", "oldver"},
		{"1.2.3", "version", ""},
		{"1.2", "version", ""},
		{"1.11", "oldver", "version"},
		{"utf8", "utf8", ""},
		{"UTF-8", "utf", ""},
		{"utf-8", "utf8", ""},
		{"SHA256", "sha", ""},
		{"IPv6", "ipv6", ""},
		{"docs/auth/login.md", "login", ""},
		{"login.md", "login", ""},
		{"auth login", "login", ""},
		{"state of the art", "state", ""},
		{"end-to-end", "state", ""},
		{"readonly", "readonly", ""},
		{"read-only volume", "readonly", ""},
		{"email", "email", ""},
		{"nodejs", "node", ""},
		{"Node.js", "node", ""},
		{".NET", "dotnet", ""},
		{"ASP.NET", "aspnet", ""},
		{"C++", "cpp", "plainc"},
		{"c++20", "cpp", ""},
		{"C#", "csharp", "plainc"},
		{"C language", "plainc", ""},
		{"--dry-run", "flag", ""},
		{"dry run", "flag", ""},
		{"tar -x", "tarx", ""},
		{"tar -xzf archive", "tarx", ""},
		{"find -name", "find", ""},
		{"jaguar -car", "jaguarcat", "jaguarcar"},
		{`jaguar -"is a cat"`, "jaguarcar", "jaguarcat"},
		{"-jaguar", "jaguarcat", ""},
		{"cafe", "cafe", ""},
		{"CAFÉ", "cafe", ""},
		{"naive facade", "cafe", ""},
		{"strasse", "strasse", ""},
		{"Koln", "strasse", ""},
		{"検索", "cjk", "cjk2"},
		{"検索エンジン", "cjk", ""},
		{"析", "cjk", ""},
		{"索引", "cjk2", "cjk"},
		{"검색", "korean", ""},
		{`"rolling update"`, "rolling", "rolled"},
		{`"rolling updates" pods`, "rolling", "rolled"},
		{`"to be or not to be"`, "tobe", ""},
		{"to be", "tobe", ""},
		{"oreilly", "oreilly", ""},
		{"O'Reilly's", "oreilly", ""},
		{"kubernetes", "possess", ""},
		{"user quota", "possess", ""},
		{"cairn workspace", "env", ""},
		{"max_open_files", "env", ""},
		{"__init__", "dunder", ""},
		{"init", "dunder", ""},
		{"std::unique_ptr", "scoped", ""},
		{"unique_ptr", "scoped", ""},
		{"example.org", "url", ""},
		{"ops@example.net", "mail", ""},
		{"K8s", "k8s", ""},
		{"e0382", "error", ""},
		{"2024-03-15", "date", ""},
		{"3.14159", "number", ""},
		{"0xcafebabe", "hex", ""},
		{"abc123", "fullwidth", ""},
		{".gitignore", "gitignore", ""},
		{"95%", "percent", ""},
		{"document index query", "stemming", ""},
		{"αθηνα", "greek", ""},
		{"елка", "cyrillic", ""},
		{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "long", ""},
		{"jwt parser", "jwt", ""},
		{"go1.26", "semver", ""},
		{"tenantId", "table", ""},
		{"created_at", "table", ""},
		{"“session token”", "quote", ""},
		{`"session token`, "quote", ""}, // left open: plain text
	} {
		hits, err := x.Search(context.Background(), query.Parse(c.query), 10, store.Filter{})
		if err != nil {
			t.Errorf("Search(%q): %v", c.query, err)
			continue
		}
		rank := 0
		for i, h := range hits {
			if h.Chunk == c.want {
				rank = i + 1
			}
			if h.Chunk == c.not {
				t.Errorf("Search(%q) found %q: %v", c.query, c.not, hits)
			}
		}
		if rank == 0 || rank > 3 {
			t.Errorf("Search(%q) = %v, want %q in the first three", c.query, hits, c.want)
		}
	}
}
