package archtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// imports lists every package of cairn with the packages of ours that it may
// import, bottom up: a row names only packages of the rows above it. A new import
// is a decision, so it is a change of this table.
var imports = []struct{ name, allowed string }{
	{"benchmarks/agent", ""},
	{"graphrank", ""},
	{"internal/base/archtest", ""},
	{"internal/base/atomicfile", ""},
	{"internal/base/checksum", ""},
	{"internal/base/packed", ""},
	{"internal/base/draw", ""},
	{"internal/text/fit", ""},
	{"internal/text/outline", ""},
	{"internal/text/convert", ""},
	{"internal/text/highlight", ""},
	{"internal/face/finder", "internal/text/highlight"},
	{"internal/base/job", ""},
	{"internal/face/manual", ""},
	{"internal/base/observe", ""},
	{"internal/base/quota", ""},
	{"internal/text/invisible", ""},
	{"internal/text/query", ""},
	{"internal/text/secret", ""},
	{"internal/store/qdrant/qdranttest", ""},
	{"internal/base/offheap", ""},
	{"internal/base/taskdag", ""},
	{"internal/base/testutil/pgtest", ""},
	{"internal/text/walk", "internal/text/outline"},
	{"models", ""},
	{"skills", ""},
	{"models/wordpiece", ""},
	{"internal/store/kv", "internal/base/atomicfile internal/base/checksum"},
	{"internal/base/home", "internal/base/atomicfile"},
	{"internal/base/testutil", "internal/base/home models"},
	{"internal/base/owner", "internal/base/home"},
	{"internal/folder/config", "internal/base/atomicfile internal/base/home internal/text/secret internal/text/walk"},
	{"internal/face/connect", "internal/base/atomicfile"},
	{"internal/base/metrics", "internal/base/observe"},
	{"internal/toolbox/records", "internal/store/kv"},
	{"internal/task", "internal/base/draw internal/base/taskdag"},
	{"internal/task/files", "internal/base/atomicfile internal/text/walk"},
	{"internal/face/token", "internal/base/atomicfile"},
	{"internal/base/tracing", "internal/base/observe"},
	{"internal/face/upgrade", "internal/base/atomicfile"},
	{"internal/text/watch", "internal/text/walk"},
	{"models/bert", "internal/base/offheap models models/wordpiece"},
	{"models/bpe", "models"},
	{"models/onnx", "models models/wordpiece"},
	{"internal/text/markdown", "internal/text/convert internal/text/outline internal/text/secret"},
	{"internal/store", "internal/text/markdown internal/text/outline internal/text/query"},
	{"internal/toolbox/catalog", "internal/base/packed internal/text/invisible internal/text/markdown internal/toolbox/records"},
	{"internal/toolbox/records/postgres", "internal/toolbox/records"},
	{"internal/folder/scan", "internal/store internal/text/secret internal/text/walk"},
	{"internal/store/docs", "internal/base/checksum internal/base/packed internal/store internal/store/kv models"},
	{"internal/store/flat", "internal/base/atomicfile internal/base/checksum internal/base/offheap internal/base/packed internal/store"},
	{"internal/store/keyword", "internal/base/checksum internal/store internal/store/kv internal/text/query"},
	{"internal/store/storetest", "internal/store internal/text/query"},
	{"internal/toolbox/usage", "graphrank internal/base/packed internal/toolbox/records"},
	{"models/minilm", "models models/bert models/wordpiece"},
	{"indexer", "internal/base/job internal/store internal/store/docs internal/text/markdown internal/text/outline internal/text/secret internal/text/walk models"},
	{"internal/task/scene", "internal/text/markdown internal/text/secret"},
	{"internal/store/qdrant", "internal/store internal/store/docs internal/store/keyword internal/text/query"},
	{"internal/task/cards", "internal/base/taskdag internal/task internal/task/files internal/text/markdown internal/text/walk internal/text/watch"},
	{"internal/task/workflow", "internal/text/markdown internal/text/walk"},
	{"internal/toolbox/toolsearch", "graphrank internal/base/job internal/store internal/store/flat internal/store/keyword internal/text/query internal/toolbox/catalog models"},
	{"retriever", "graphrank internal/base/observe internal/store internal/store/docs internal/store/keyword internal/text/invisible internal/text/markdown internal/text/outline internal/text/query internal/text/secret internal/text/walk models"},
	{"tools/client", "internal/toolbox/catalog"},
	{"internal/folder/mirror", "indexer internal/base/job internal/store internal/store/docs internal/store/flat internal/store/keyword internal/store/qdrant models"},
	{"internal/stage/support", "internal/store/keyword internal/text/markdown"},
	{"internal/stage", "internal/stage/support retriever"},
	{"internal/toolbox/suggest", "graphrank internal/base/taskdag internal/toolbox/catalog internal/toolbox/toolsearch"},
	{"internal/task/doctask", "internal/base/taskdag internal/store internal/task internal/task/files internal/task/workflow internal/text/fit internal/text/markdown internal/text/walk"},
	{"internal/folder/index", "graphrank indexer internal/base/checksum internal/base/job internal/base/owner internal/folder/config internal/folder/mirror internal/store internal/store/docs internal/store/flat internal/store/keyword internal/store/kv internal/text/markdown internal/text/query internal/text/secret internal/text/walk internal/text/watch models models/bpe retriever"},
	{"internal/stage/embedded", "internal/stage internal/store/kv"},
	{"internal/stage/openai", "internal/stage"},
	{"internal/stage/postgres", "internal/stage"},
	{"internal/stage/rabbitmq", "internal/stage"},
	{"internal/stage/redis", "internal/stage"},
	{"internal/stage/rest", "internal/stage"},
	{"internal/stage/stagetest", "internal/stage"},
	{"internal/stage/websearch", "internal/stage"},
	{"internal/task/taskgraph", "graphrank internal/base/taskdag internal/task internal/task/cards internal/task/doctask"},
	{"internal/toolbox", "graphrank internal/base/atomicfile internal/base/checksum internal/base/home internal/base/job internal/base/owner internal/store internal/store/flat internal/store/keyword internal/store/kv internal/text/query internal/toolbox/catalog internal/toolbox/records internal/toolbox/records/postgres internal/toolbox/suggest internal/toolbox/toolsearch internal/toolbox/usage models"},
	{"internal/folder/workspace", "graphrank internal/base/checksum internal/base/home internal/base/job internal/base/owner internal/folder/config internal/folder/index internal/folder/mirror internal/folder/scan internal/stage internal/stage/embedded internal/store internal/store/docs internal/store/kv internal/task internal/task/cards internal/task/doctask internal/task/files internal/task/scene internal/task/taskgraph internal/text/fit internal/text/markdown internal/text/walk internal/toolbox internal/toolbox/records models models/bpe retriever"},
	{"internal/face/doctor", "internal/base/owner internal/folder/config internal/folder/index internal/folder/workspace internal/task/cards internal/task/taskgraph internal/text/markdown internal/text/walk"},
	{"tools", "graphrank internal/base/job internal/base/observe internal/base/owner internal/base/quota internal/folder/index internal/folder/mirror internal/folder/scan internal/folder/workspace internal/stage internal/store internal/task/cards internal/task/doctask internal/task/taskgraph internal/text/fit internal/text/markdown internal/toolbox internal/toolbox/catalog internal/toolbox/suggest internal/toolbox/toolsearch internal/toolbox/usage retriever skills"},
	{"benchmarks", "benchmarks/agent graphrank indexer internal/base/job internal/folder/config internal/folder/index internal/folder/workspace internal/stage internal/store internal/store/flat internal/store/keyword internal/store/kv internal/text/markdown internal/text/walk internal/toolbox/catalog internal/toolbox/records internal/toolbox/suggest internal/toolbox/toolsearch internal/toolbox/usage models retriever tools"},
	{"internal/face/server", "internal/base/metrics internal/base/observe internal/base/quota internal/face/token internal/folder/index tools"},
	{"internal/face/term", "graphrank internal/base/draw internal/base/home internal/base/job internal/face/doctor internal/face/token internal/folder/index internal/stage internal/store internal/store/keyword internal/task internal/task/cards internal/task/doctask internal/task/scene internal/task/taskgraph internal/task/workflow internal/text/markdown internal/text/query internal/text/walk internal/toolbox/catalog internal/toolbox/suggest internal/toolbox/toolsearch retriever"},
	{"internal/face/web", "graphrank internal/base/taskdag internal/folder/index internal/folder/workspace internal/store internal/store/keyword internal/task internal/task/cards internal/text/highlight internal/text/markdown internal/text/query internal/text/walk internal/toolbox internal/toolbox/suggest retriever tools"},
	{"benchmarks/conformance", "internal/face/server internal/folder/config internal/folder/workspace models models/minilm tools"},
	{"benchmarks/definitions", "internal/text/outline"},
	{"benchmarks/embedding", "benchmarks models/bert"},
	{"benchmarks/stdio", "benchmarks benchmarks/agent"},
	{"benchmarks/watch", "benchmarks benchmarks/agent"},
	{"deploy/packages", ""},
	{"internal/face/host", "internal/base/metrics internal/base/observe internal/base/tracing internal/face/server internal/face/token internal/face/web internal/folder/config internal/folder/index internal/folder/workspace internal/stage internal/stage/openai internal/stage/postgres internal/stage/rabbitmq internal/stage/redis internal/stage/rest internal/stage/websearch internal/toolbox models models/bert models/minilm models/onnx retriever tools"},
	{"cmd/cairn", "benchmarks graphrank indexer internal/base/atomicfile internal/base/home internal/base/job internal/base/metrics internal/face/connect internal/face/doctor internal/face/finder internal/face/host internal/face/manual internal/face/server internal/face/term internal/face/token internal/face/upgrade internal/folder/config internal/folder/index internal/folder/mirror internal/folder/scan internal/folder/workspace internal/stage internal/store internal/task internal/task/cards internal/task/doctask internal/task/scene internal/task/taskgraph internal/text/markdown internal/text/walk internal/toolbox internal/toolbox/catalog internal/toolbox/suggest internal/toolbox/toolsearch internal/toolbox/usage models models/bert models/bpe models/minilm retriever tools tools/client"},
}

// owners names the one package (with those below it) that may import a third
// party's packages. Where a library is split over several modules, its prefix
// covers them. Anything third-party that is not listed fails the test: a new
// dependency is a decision.
var owners = map[string][]string{
	"github.com/blevesearch/":                  {"internal/store/keyword"},
	"github.com/RoaringBitmap/roaring":         {"internal/store/keyword"},
	"go.etcd.io/bbolt":                         {"internal/store/kv"},
	"github.com/qdrant/go-client":              {"internal/store/qdrant"},
	"google.golang.org/grpc":                   {"internal/store/qdrant"}, // the client's options and codes
	"github.com/google/uuid":                   {"internal/store/qdrant"},
	"github.com/knights-analytics/hugot":       {"models/onnx"},
	"github.com/gomlx/":                        {"models/onnx"},
	"github.com/pkoukk/tiktoken-go":            {"models/bpe"},
	"github.com/pkoukk/tiktoken-go-loader":     {"models/bpe"},
	"github.com/modelcontextprotocol/go-sdk":   {"tools", "benchmarks/conformance"}, // the protocol; its suite's fixtures
	"github.com/google/jsonschema-go":          {"tools"},
	"github.com/yuin/goldmark":                 {"internal/text/markdown", "internal/face/web"}, // the parser and the reader's renderer
	"github.com/microcosm-cc/bluemonday":       {"internal/face/web"},
	"github.com/chromedp/":                     nil,                          // tests
	"github.com/goccy/go-yaml":                 {"internal/text/markdown"},   // edits front matter where it stands
	"go.yaml.in/yaml/v3":                       {"internal/toolbox/catalog"}, // reads large descriptions in linear time
	"github.com/pelletier/go-toml/v2":          {"internal/folder/config", "internal/face/connect"},
	"github.com/tailscale/hujson":              {"internal/face/connect"},
	"github.com/fsnotify/fsnotify":             {"internal/text/watch"},
	"charm.land/bubbletea/v2":                  {"internal/face/finder"},
	"github.com/charmbracelet/x/ansi":          {"internal/face/finder"},
	"github.com/sahilm/fuzzy":                  {"internal/face/finder"},
	"github.com/anishathalye/porcupine":        {"internal/stage/embedded", "internal/task/cards", "internal/base/testutil", "internal/toolbox"}, // in tests: checks histories
	"github.com/atotto/clipboard":              {"cmd/cairn"},
	"golang.org/x/mod":                         {"internal/face/upgrade"},
	"github.com/gofrs/flock":                   {"internal/base/owner", "internal/store/kv", "internal/face/token", "internal/task/files", "benchmarks"}, // each locks its own file
	"github.com/spf13/cobra":                   {"cmd/cairn", "internal/face/manual"},
	"github.com/spf13/pflag":                   {"cmd/cairn", "internal/face/manual"}, // the flags of cobra
	"github.com/schollz/progressbar/v3":        {"internal/face/term"},
	"github.com/bmatcuk/doublestar/v4":         {"internal/text/walk"},
	"google.golang.org/protobuf":               {"models/bert", "models/onnx", "internal/store/qdrant"}, // ONNX files; gRPC messages
	"github.com/rogpeppe/go-internal":          nil,                                                     // tests; the diffs of internal/face/connect
	"github.com/santhosh-tekuri/jsonschema/v6": {"internal/toolbox/catalog"},
	"github.com/getkin/kin-openapi":            {"internal/face/server"}, // tests
	"github.com/prometheus/client_golang":      {"internal/base/metrics"},
	"go.opentelemetry.io/":                     {"internal/base/tracing"}, // the API, the SDK and the exporter
	"github.com/google/go-cmp":                 nil,                       // tests
	"github.com/hashicorp/golang-lru/v2":       nil,                       // a cache, used wherever one is
	"golang.org/x/net":                         {"internal/text/convert"}, // the parser of HTML
	"golang.org/x/sys":                         nil,                       // the operating system and the processor
	"golang.org/x/sync":                        nil,
	"golang.org/x/time":                        {"internal/face/server"},
	"golang.org/x/text":                        nil,
	"github.com/gomodule/redigo":               {"internal/stage/redis"},
	"github.com/jackc/pgx/v5":                  {"internal/stage/postgres", "internal/toolbox/records/postgres", "internal/base/testutil/pgtest"}, // tasks; records; their tests
	"github.com/pressly/goose/v3":              {"internal/stage/postgres"},
	"github.com/rabbitmq/amqp091-go":           {"internal/stage/rabbitmq"},
	"golang.org/x/term":                        {"internal/face/term"},
	"gonum.org/v1/gonum":                       {"graphrank"},
}

type pkg struct {
	ImportPath                         string
	Standard                           bool
	Imports, TestImports, XTestImports []string
}

// load lists our packages as one system sees them.
func load(t *testing.T, environ ...string) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Standard,Imports,TestImports,XTestImports", "cairn/...")
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), environ...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pkgs []pkg
	for dec := json.NewDecoder(out); ; {
		var p pkg
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if len(pkgs) < 5 {
		t.Fatalf("go list found %d packages, want them all", len(pkgs))
	}
	return pkgs
}

// violations returns what is wrong with the imports of one of our packages, named
// without "cairn/".
func violations(name string, imported []string) (wrong []string) {
	row := slices.IndexFunc(imports, func(r struct{ name, allowed string }) bool { return r.name == name })
	if row < 0 {
		return []string{fmt.Sprintf("%s has no row in the table of imports", name)}
	}
	allowed := strings.Fields(imports[row].allowed)
	for _, imp := range imported {
		if imp, ours := strings.CutPrefix(imp, "cairn/"); ours && !slices.Contains(allowed, imp) {
			wrong = append(wrong, fmt.Sprintf("%s imports %s, which its row does not allow", name, imp))
		}
	}
	return wrong
}

func TestImports(t *testing.T) {
	used := map[[2]string]bool{}
	for _, system := range [][]string{nil, {"GOOS=windows", "GOARCH=amd64"}, {"GOOS=darwin", "GOARCH=arm64"}} {
		for _, p := range load(t, system...) {
			name := strings.TrimPrefix(p.ImportPath, "cairn/")
			for _, wrong := range violations(name, p.Imports) {
				t.Error(wrong)
			}
			used[[2]string{name, ""}] = true
			for _, imp := range p.Imports {
				used[[2]string{name, strings.TrimPrefix(imp, "cairn/")}] = true
			}
		}
	}
	above := map[string]bool{}
	for _, row := range imports {
		if !used[[2]string{row.name, ""}] {
			t.Errorf("the table has a row for %s, which is not there", row.name)
		}
		for _, imp := range strings.Fields(row.allowed) {
			if !above[imp] {
				t.Errorf("the row of %s names %s, which is not above it", row.name, imp)
			}
			if !used[[2]string{row.name, imp}] {
				t.Errorf("%s may import %s and does not: take it out of the row", row.name, imp)
			}
		}
		above[row.name] = true
	}
}

// TestTestsHaveTheirOwnHome: the tests of a package that can open a workspace or read a
// configuration run with a private CAIRN_HOME, not with the developer's.
func TestTestsHaveTheirOwnHome(t *testing.T) {
	pkgs := load(t)
	imported := map[string][]string{}
	for _, p := range pkgs {
		imported[p.ImportPath] = p.Imports
	}
	for _, p := range pkgs {
		reached := map[string]bool{}
		for next := slices.Concat([]string{p.ImportPath}, p.TestImports, p.XTestImports); len(next) > 0; next = next[1:] {
			if !reached[next[0]] {
				reached[next[0]] = true
				next = append(next, imported[next[0]]...)
			}
		}
		dir := filepath.Join("../../..", strings.TrimPrefix(p.ImportPath, "cairn/"))
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil || len(files) == 0 || !reached["cairn/internal/folder/config"] && !reached["cairn/internal/toolbox"] {
			continue
		}
		private := slices.ContainsFunc(files, func(name string) bool {
			text, err := os.ReadFile(name)
			return err == nil && (strings.Contains(string(text), "testutil.Main(m)") || strings.Contains(string(text), "testutil.Homed{"))
		})
		if !private {
			t.Errorf("the tests of %s have no TestMain with testutil.Main", p.ImportPath)
		}
	}
}

// TestImportsCanFail makes sure that the table refuses what it is there to refuse.
func TestImportsCanFail(t *testing.T) {
	for _, c := range []struct{ name, imp string }{
		{"retriever", "indexer"},
		{"tools", "internal/store/flat"},
		{"tools", "internal/store/kv"},
		{"graphrank", "internal/store"},
		{"internal/base/taskdag", "models"},
		{"internal/face/web", "internal/store/docs"},
		{"internal/storehouse", "models"},
	} {
		if len(violations(c.name, []string{"cairn/" + c.imp})) == 0 {
			t.Errorf("%s may import %s", c.name, c.imp)
		}
	}
	if wrong := violations("indexer", []string{"fmt", "cairn/internal/store"}); len(wrong) > 0 {
		t.Error(wrong)
	}
}

func TestThirdPartyHasOneImporter(t *testing.T) {
	used := map[string]bool{} // library and package
	for _, p := range load(t) {
		name := strings.TrimPrefix(p.ImportPath, "cairn/")
		tests := slices.Concat(p.TestImports, p.XTestImports)
		for _, imp := range slices.Concat(p.Imports, tests) {
			first, _, _ := strings.Cut(imp, "/")
			if !strings.Contains(first, ".") {
				continue // the standard library, or ours
			}
			prefix, ok := ownerOf(imp)
			if !ok {
				t.Errorf("%s imports %s, which has no owner: add it to owners with its reason", name, imp)
				continue
			}
			own := slices.IndexFunc(owners[prefix], func(o string) bool { return within(name, o) })
			if owners[prefix] != nil && own < 0 {
				t.Errorf("%s imports %s, which belongs to %v", name, imp, owners[prefix])
			}
			if own >= 0 {
				used[prefix+" "+owners[prefix][own]] = true
			}
			used[prefix] = true
		}
	}
	for library, packages := range owners {
		if !used[library] {
			t.Errorf("%s has an owner and no importer", library)
		}
		for _, p := range packages {
			if !used[library+" "+p] {
				t.Errorf("%s owns %s and does not import it", p, library)
			}
		}
	}
}

func within(name, prefix string) bool { return name == prefix || strings.HasPrefix(name, prefix+"/") }

// ownerOf finds the longest prefix of owners that covers imp.
func ownerOf(imp string) (prefix string, ok bool) {
	for p := range maps.Keys(owners) {
		if within(imp, strings.TrimSuffix(p, "/")) && len(p) > len(prefix) {
			prefix, ok = p, true
		}
	}
	return prefix, ok
}

// TestOwners makes sure that owners match whole path elements.
func TestOwners(t *testing.T) {
	for imp, want := range map[string]string{
		"github.com/blevesearch/bleve/v2/analysis": "github.com/blevesearch/", "go.etcd.io/bbolt": "go.etcd.io/bbolt", "go.etcd.io/bbolted": "", "example.com/x": "",
	} {
		if got, _ := ownerOf(imp); got != want {
			t.Errorf("ownerOf(%q) = %q, want %q", imp, got, want)
		}
	}
}
