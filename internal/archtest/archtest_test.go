package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// layers, from the top: a package imports its own layer and those below it.
// The longest matching prefix counts.
var layers = []struct {
	layer    int
	packages []string
}{
	{8, []string{"cmd"}},
	{7, []string{"internal/host"}},
	{6, []string{"tools", "internal/server", "internal/web", "internal/doctor", "internal/term", "benchmarks"}},
	{5, []string{"internal/connect", "internal/scene", "internal/upgrade", "internal/finder", "internal/manual", "internal/workspace", "internal/index", "internal/toolbox"}},
	{4, []string{"retriever", "indexer", "internal/mirror", "internal/watch", "internal/toolsearch", "internal/suggest", "internal/task", "internal/stage", "internal/config"}},
	{3, []string{"internal/store/docs", "internal/store/keyword", "internal/store/flat", "internal/store/qdrant", "internal/usage", "internal/store/storetest", "internal/catalog", "internal/walk", "internal/metrics", "internal/tracing"}},
	{2, []string{"internal/store", "internal/query", "internal/kv", "internal/records", "internal/markdown", "graphrank", "internal/taskdag", "internal/draw", "internal/token", "internal/observe", "internal/atomicfile", "internal/job", "internal/owner"}},
	{1, []string{"models"}},
}

// alone import nothing of ours, so that they can be lifted out as they are.
var alone = []string{"graphrank", "internal/taskdag"}

// owners names the one package (with those below it) that may import a third
// party's packages. Where a library is split over several modules, its prefix
// covers them. Anything third-party that is not listed fails the test: a new
// dependency is a decision.
var owners = map[string][]string{
	"github.com/blevesearch/":                  {"internal/store/keyword"},
	"github.com/RoaringBitmap/roaring":         {"internal/store/keyword"},
	"go.etcd.io/bbolt":                         {"internal/kv"},
	"github.com/qdrant/go-client":              {"internal/store/qdrant"},
	"google.golang.org/grpc":                   {"internal/store/qdrant"}, // the client's options and codes
	"github.com/google/uuid":                   {"internal/store/qdrant"},
	"github.com/knights-analytics/hugot":       {"models/onnx"},
	"github.com/gomlx/":                        {"models/onnx"},
	"github.com/pkoukk/tiktoken-go":            {"models/bpe"},
	"github.com/pkoukk/tiktoken-go-loader":     {"models/bpe"},
	"github.com/modelcontextprotocol/go-sdk":   {"tools", "benchmarks/conformance"}, // the protocol; its suite's fixtures
	"github.com/google/jsonschema-go":          {"tools"},
	"github.com/yuin/goldmark":                 {"internal/markdown", "internal/web"}, // the parser and the reader's renderer
	"github.com/microcosm-cc/bluemonday":       {"internal/web"},
	"github.com/chromedp/":                     nil, // tests
	"github.com/goccy/go-yaml":                 {"internal/markdown", "internal/catalog"},
	"github.com/pelletier/go-toml/v2":          {"internal/config", "internal/connect"},
	"github.com/tailscale/hujson":              {"internal/connect"},
	"github.com/fsnotify/fsnotify":             {"internal/watch"},
	"charm.land/bubbletea/v2":                  {"internal/finder"},
	"github.com/charmbracelet/x/ansi":          {"internal/finder"},
	"github.com/sahilm/fuzzy":                  {"internal/finder"},
	"github.com/atotto/clipboard":              {"cmd/cairn"},
	"golang.org/x/mod":                         {"internal/upgrade"},
	"github.com/gofrs/flock":                   {"internal/owner", "internal/kv", "internal/token", "internal/task/files"}, // each locks its own file
	"github.com/spf13/cobra":                   {"cmd/cairn", "internal/manual"},
	"github.com/spf13/pflag":                   {"cmd/cairn", "internal/manual"}, // the flags of cobra
	"github.com/schollz/progressbar/v3":        {"internal/term"},
	"github.com/bmatcuk/doublestar/v4":         {"internal/walk"},
	"github.com/go-git/go-git/v5":              {"internal/walk"},
	"github.com/go-git/go-billy/v5":            {"internal/walk"},
	"github.com/mmcloughlin/avo":               {"models/bert/asm", "models/bert/avo", "internal/store/flat"},
	"google.golang.org/protobuf":               {"models/bert", "models/onnx", "internal/store/qdrant"}, // ONNX files; gRPC messages
	"github.com/rogpeppe/go-internal":          nil,                                                     // tests
	"github.com/santhosh-tekuri/jsonschema/v6": {"internal/catalog"},
	"github.com/getkin/kin-openapi":            {"internal/server"}, // tests
	"github.com/prometheus/client_golang":      {"internal/metrics"},
	"go.opentelemetry.io/":                     {"internal/tracing"}, // the API, the SDK and the exporter
	"github.com/google/go-cmp":                 nil,                  // tests
	"github.com/hashicorp/golang-lru/v2":       nil,                  // a cache, used wherever one is
	"golang.org/x/sys":                         nil,                  // the operating system and the processor
	"golang.org/x/sync":                        nil,
	"golang.org/x/text":                        nil,
	"github.com/gomodule/redigo":               {"internal/stage/redis"},
	"github.com/jackc/pgx/v5":                  {"internal/stage/postgres", "internal/records/postgres"}, // tasks; records
	"github.com/pressly/goose/v3":              {"internal/stage/postgres"},
	"github.com/rabbitmq/amqp091-go":           {"internal/stage/rabbitmq"},
	"golang.org/x/term":                        {"internal/term"},
	"gonum.org/v1/gonum":                       {"graphrank"},
}

type pkg struct {
	ImportPath                         string
	Standard                           bool
	Imports, TestImports, XTestImports []string
}

// load lists our packages as seen by one set of build tags.
func load(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Standard,Imports,TestImports,XTestImports", "cairn/...")
	cmd.Stderr = os.Stderr
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

// layerOf returns the layer of one of our packages, named without "cairn/".
func layerOf(name string) (layer int, ok bool) {
	best := ""
	for _, l := range layers {
		for _, prefix := range l.packages {
			if within(name, prefix) && len(prefix) > len(best) {
				best, layer, ok = prefix, l.layer, true
			}
		}
	}
	return layer, ok
}

func within(name, prefix string) bool { return name == prefix || strings.HasPrefix(name, prefix+"/") }

// free packages stand outside the layers: tests use them from anywhere.
func free(name string) bool {
	return within(name, "internal/testutil") || within(name, "internal/archtest")
}

func TestImportsRunOneWay(t *testing.T) {
	for _, p := range load(t) {
		name := strings.TrimPrefix(p.ImportPath, "cairn/")
		if free(name) {
			continue
		}
		from, ok := layerOf(name)
		if !ok {
			t.Errorf("%s is in no layer: add it to archtest", name)
			continue
		}
		for _, imp := range p.Imports {
			to, ours := strings.CutPrefix(imp, "cairn/")
			if !ours {
				continue
			}
			if layer, _ := layerOf(to); free(to) || layer > from {
				t.Errorf("%s (layer %d) imports %s (layer %d)", name, from, to, layer)
			}
			if slices.ContainsFunc(alone, func(a string) bool { return within(name, a) && !within(to, a) }) {
				t.Errorf("%s imports %s, want nothing of ours", name, to)
			}
		}
	}
}

func TestThirdPartyHasOneImporter(t *testing.T) {
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
				t.Errorf("%s imports %s, which has no owner: add it to archtest with its reason", name, imp)
				continue
			}
			if own := owners[prefix]; own != nil && !slices.ContainsFunc(own, func(o string) bool { return within(name, o) }) {
				t.Errorf("%s imports %s, which belongs to %v", name, imp, own)
			}
		}
	}
}

// ownerOf finds the longest prefix of owners that imp lies below.
func ownerOf(imp string) (prefix string, ok bool) {
	for p := range maps.Keys(owners) {
		if within(imp, strings.TrimSuffix(p, "/")) && len(p) > len(prefix) {
			prefix, ok = p, true
		}
	}
	return prefix, ok
}

// TestRules makes sure that the rules above can fail.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		name string
		want int
		ok   bool
	}{{"internal/store", 2, true}, {"internal/store/keyword", 3, true}, {"models/bert/asm", 1, true}, {"cmd/cairn", 8, true}, {"internal/storehouse", 0, false}} {
		if got, ok := layerOf(c.name); got != c.want || ok != c.ok {
			t.Errorf("layerOf(%q) = %d, %v, want %d, %v", c.name, got, ok, c.want, c.ok)
		}
	}
	for imp, want := range map[string]string{
		"github.com/blevesearch/bleve/v2/analysis": "github.com/blevesearch/", "go.etcd.io/bbolt": "go.etcd.io/bbolt", "go.etcd.io/bbolted": "", "example.com/x": "",
	} {
		if got, _ := ownerOf(imp); got != want {
			t.Errorf("ownerOf(%q) = %q, want %q", imp, got, want)
		}
	}
}
