package archtest

// room is a group of packages: those whose path begins with its name, but not with the
// longer name of another room.
type room struct {
	name    string
	allowed string // the rooms that it may import
	lines   int    // the budget of hand-written lines of Go outside tests
}

// rooms lists the rooms bottom up: a row names only rooms above it. A change that exceeds a
// budget folds something, or raises the budget and says why.
var rooms = []room{
	{"graphrank", "", 880},
	{"skills", "", 30},
	{"internal/base", "", 4068},
	{"models", "", 7860},
	{"internal/base/testutil", "internal/base models", 540},
	{"internal/text", "", 17862},
	{"internal/store", "internal/base models internal/text", 16236},
	{"indexer", "internal/base models internal/text internal/store", 2989},
	{"retriever", "graphrank internal/base models internal/text internal/store", 5496},
	{"internal/toolbox", "graphrank internal/base models internal/text internal/store", 13210},
	{"internal/task", "graphrank internal/base internal/text internal/store", 7626},
	{"internal/stage", "internal/base internal/text internal/store retriever", 5047},
	{"internal/folder", "graphrank internal/base models internal/text internal/store indexer retriever internal/toolbox internal/task internal/stage", 10402},
	{"cairn", "internal/base internal/store retriever internal/toolbox internal/folder", 210},
	{"tools", "graphrank skills internal/base internal/text internal/store retriever internal/toolbox internal/task internal/stage internal/folder", 8016},
	{"internal/face", "graphrank internal/base internal/text internal/store retriever internal/toolbox internal/task internal/stage internal/folder tools", 12087},
	{"benchmarks", "graphrank internal/base models internal/text internal/store indexer retriever internal/toolbox internal/stage internal/folder tools", 6779},
	{"deploy", "", 265},
	{"cmd", "graphrank skills internal/base models internal/text indexer retriever internal/toolbox internal/task internal/stage internal/folder tools internal/face benchmarks", 7066},
}

// row names the packages of ours that a package may import.
type row struct{ name, allowed string }

// imports lists every package of cairn bottom up: a row names only packages of the rows
// above it. A new import is a decision, so it is a change of this table.
var imports = []row{
	{"graphrank", ""},
	{"skills", ""},
	{"internal/base", ""},
	{"internal/base/archtest", ""},
	{"internal/base/atomicfile", ""},
	{"internal/base/checksum", ""},
	{"internal/base/draw", ""},
	{"internal/base/health", ""},
	{"internal/base/heap", ""},
	{"internal/base/home", "internal/base/atomicfile internal/base/checksum"},
	{"internal/base/job", ""},
	{"internal/base/observe", ""},
	{"internal/base/metrics", "internal/base/observe"},
	{"internal/base/owner", "internal/base/home"},
	{"internal/base/packed", ""},
	{"internal/base/pg", ""},
	{"internal/base/quota", ""},
	{"internal/base/taskdag", ""},
	{"internal/base/tracing", "internal/base/observe"},
	{"models", ""},
	{"models/bpe", "models"},
	{"models/offheap", ""},
	{"models/wordpiece", ""},
	{"models/bert", "models models/offheap models/wordpiece"},
	{"models/minilm", "models models/bert models/wordpiece"},
	{"models/onnx", "models models/wordpiece"},
	{"internal/base/testutil", "internal/base/home models models/minilm"},
	{"internal/base/testutil/pgtest", ""},
	{"internal/text", ""},
	{"internal/text/convert", ""},
	{"internal/text/fit", ""},
	{"internal/text/git", ""},
	{"internal/text/highlight", ""},
	{"internal/text/invisible", ""},
	{"internal/text/jsonedit", ""},
	{"internal/text/outline", ""},
	{"internal/text/query", ""},
	{"internal/text/sandbox", ""},
	{"internal/text/secret", ""},
	{"internal/text/markdown", "internal/text/convert internal/text/outline internal/text/sandbox internal/text/secret"},
	{"internal/text/receipt", "internal/text/markdown"},
	{"internal/text/walk", "internal/text/outline"},
	{"internal/text/watch", "internal/text/walk"},
	{"internal/store", "internal/base/packed internal/text/markdown internal/text/outline internal/text/query"},
	{"internal/store/flat", "internal/base/atomicfile internal/base/checksum internal/base/health internal/base/packed internal/store models/offheap"},
	{"internal/store/kv", "internal/base/atomicfile internal/base/checksum internal/base/health"},
	{"internal/store/keyword", "internal/base/health internal/store internal/store/kv internal/text/query"},
	{"internal/store/legs", "internal/store internal/store/flat internal/text/query models"},
	{"internal/store/ngram", "models/offheap"},
	{"internal/store/docs", "internal/base/health internal/base/packed internal/store internal/store/kv internal/store/ngram models"},
	{"internal/store/qdrant", "internal/store internal/store/docs internal/store/keyword internal/text/query"},
	{"internal/store/qdrant/qdranttest", ""},
	{"internal/store/storetest", ""},
	{"indexer", "internal/base/job internal/store internal/store/docs internal/store/kv internal/store/ngram internal/text/convert internal/text/markdown internal/text/outline internal/text/sandbox internal/text/secret internal/text/walk models"},
	{"retriever", "graphrank internal/base/observe internal/store internal/store/docs internal/store/keyword internal/text/invisible internal/text/markdown internal/text/outline internal/text/query internal/text/receipt internal/text/secret internal/text/walk models"},
	{"internal/toolbox/records", "internal/store/kv"},
	{"internal/toolbox/catalog", "internal/base/packed internal/text/fit internal/text/invisible internal/text/markdown internal/toolbox/records"},
	{"internal/toolbox/records/postgres", "internal/base/pg internal/toolbox/records"},
	{"internal/toolbox/toolsearch", "graphrank internal/base/job internal/store internal/store/keyword internal/store/legs internal/text/query internal/toolbox/catalog models"},
	{"internal/toolbox/suggest", "graphrank internal/base/taskdag internal/text/query internal/toolbox/catalog internal/toolbox/toolsearch"},
	{"internal/toolbox/plancheck", "internal/base/taskdag internal/toolbox/catalog internal/toolbox/suggest internal/toolbox/toolsearch"},
	{"internal/toolbox/planrun", "internal/base/atomicfile internal/base/home internal/base/owner internal/text/fit internal/text/secret internal/toolbox/plancheck"},
	{"internal/toolbox/usage", "graphrank internal/base/packed internal/text/secret internal/toolbox/records"},
	{"internal/toolbox", "graphrank internal/base/health internal/base/home internal/base/job internal/base/owner internal/store internal/store/flat internal/store/keyword internal/store/kv internal/store/legs internal/text/secret internal/toolbox/catalog internal/toolbox/plancheck internal/toolbox/records internal/toolbox/records/postgres internal/toolbox/suggest internal/toolbox/toolsearch internal/toolbox/usage models"},
	{"internal/task", "graphrank internal/base/draw internal/base/taskdag"},
	{"internal/task/files", "internal/base/atomicfile internal/text/walk"},
	{"internal/task/cards", "internal/task internal/task/files internal/text/jsonedit internal/text/markdown internal/text/walk"},
	{"internal/task/doctask", "internal/store internal/task internal/task/files internal/text/fit internal/text/markdown internal/text/walk"},
	{"internal/task/notes", "internal/task internal/task/cards internal/task/files internal/text/invisible internal/text/markdown internal/text/receipt internal/text/secret"},
	{"internal/task/scene", "internal/text/convert internal/text/markdown internal/text/secret"},
	{"internal/task/taskgraph", "internal/base/taskdag internal/task internal/task/cards internal/task/doctask"},
	{"internal/stage/support", "internal/store/keyword internal/text/fit internal/text/markdown"},
	{"internal/stage", "internal/stage/support internal/store retriever"},
	{"internal/stage/embedded", "internal/stage internal/store/kv"},
	{"internal/stage/openai", "internal/stage"},
	{"internal/stage/postgres", "internal/base/pg internal/stage"},
	{"internal/stage/rabbitmq", "internal/stage"},
	{"internal/stage/redis", "internal/stage"},
	{"internal/stage/rest", "internal/stage"},
	{"internal/stage/websearch", "internal/stage"},
	{"internal/folder", ""},
	{"internal/folder/config", "internal/base/atomicfile internal/base/home internal/text/markdown internal/text/secret internal/text/walk"},
	{"internal/folder/history", "graphrank internal/base/atomicfile internal/base/checksum internal/store/keyword internal/text/git"},
	{"internal/folder/mirror", "indexer internal/base/job internal/store internal/store/docs internal/store/flat internal/store/keyword internal/store/qdrant models"},
	{"internal/folder/scan", "internal/store internal/store/docs internal/store/ngram internal/text/fit internal/text/markdown internal/text/secret internal/text/walk"},
	{"internal/folder/bundle", "graphrank internal/folder/history internal/store internal/store/docs internal/text/fit internal/text/highlight internal/text/invisible internal/text/markdown internal/text/outline internal/text/receipt retriever"},
	{"internal/folder/index", "graphrank indexer internal/base/health internal/base/job internal/base/owner internal/folder/bundle internal/folder/config internal/folder/history internal/folder/mirror internal/folder/scan internal/store internal/store/docs internal/store/flat internal/store/keyword internal/store/kv internal/text/markdown internal/text/query internal/text/secret internal/text/walk internal/text/watch models models/bpe retriever"},
	{"internal/folder/workspace", "graphrank internal/base/atomicfile internal/base/health internal/base/home internal/base/job internal/base/owner internal/folder/bundle internal/folder/config internal/folder/history internal/folder/index internal/folder/mirror internal/folder/scan internal/stage internal/stage/embedded internal/store internal/store/docs internal/store/kv internal/task internal/task/cards internal/task/doctask internal/task/files internal/task/notes internal/task/scene internal/task/taskgraph internal/text/fit internal/text/git internal/text/markdown internal/text/receipt internal/text/secret internal/text/walk internal/toolbox internal/toolbox/records models models/bpe retriever"},
	{"internal/folder/encoder", "internal/base/atomicfile internal/base/home internal/folder/workspace models models/bert models/minilm models/onnx"},
	{"cairn", "internal/base/job internal/folder/config internal/folder/encoder internal/folder/index internal/folder/workspace internal/store internal/toolbox internal/toolbox/catalog internal/toolbox/suggest retriever"},
	{"tools/client", "internal/toolbox/catalog"},
	{"tools/gateway", "internal/base/atomicfile internal/base/home internal/base/owner internal/text/fit internal/toolbox internal/toolbox/catalog internal/toolbox/toolsearch tools/client"},
	{"tools/mcptask", ""},
	{"tools", "graphrank internal/base/job internal/base/observe internal/base/owner internal/base/quota internal/folder/bundle internal/folder/index internal/folder/mirror internal/folder/scan internal/folder/workspace internal/stage internal/store internal/task internal/task/cards internal/task/notes internal/task/taskgraph internal/text/fit internal/text/markdown internal/text/secret internal/toolbox internal/toolbox/catalog internal/toolbox/plancheck internal/toolbox/planrun internal/toolbox/suggest internal/toolbox/toolsearch internal/toolbox/usage retriever skills tools/gateway tools/mcptask"},
	{"internal/face", ""},
	{"internal/face/connect", "internal/base/atomicfile internal/base/home internal/text/jsonedit"},
	{"internal/face/doctor", "internal/base/owner internal/folder/config internal/folder/index internal/folder/workspace internal/task internal/task/cards internal/task/taskgraph internal/text/markdown internal/text/walk internal/toolbox internal/toolbox/plancheck"},
	{"internal/face/drift", "internal/face/doctor internal/folder/config internal/folder/workspace internal/task/cards internal/text/git internal/text/markdown internal/text/outline internal/text/walk"},
	{"internal/face/finder", "internal/text/highlight"},
	{"internal/face/service", "internal/base/atomicfile"},
	{"internal/face/token", "internal/base/atomicfile"},
	{"internal/face/server", "internal/base/metrics internal/base/observe internal/base/owner internal/base/quota internal/face/token internal/folder/index tools"},
	{"internal/face/upgrade", "internal/base/atomicfile"},
	{"internal/face/view", "graphrank internal/store/keyword internal/text/query internal/toolbox/suggest retriever"},
	{"internal/face/term", "graphrank internal/base/draw internal/base/home internal/base/job internal/face/doctor internal/face/token internal/face/view internal/folder/index internal/stage internal/store internal/task internal/task/cards internal/task/doctask internal/task/scene internal/task/taskgraph internal/text/markdown internal/text/walk internal/toolbox internal/toolbox/catalog internal/toolbox/plancheck internal/toolbox/suggest internal/toolbox/toolsearch retriever"},
	{"internal/face/web", "graphrank internal/base/observe internal/base/owner internal/base/taskdag internal/face/drift internal/face/view internal/folder/index internal/folder/scan internal/folder/workspace internal/store internal/task internal/task/cards internal/text/highlight internal/text/markdown internal/text/walk internal/toolbox internal/toolbox/suggest retriever tools"},
	{"internal/face/host", "internal/base/job internal/base/metrics internal/base/observe internal/base/owner internal/base/tracing internal/face/server internal/face/token internal/face/web internal/folder/config internal/folder/index internal/folder/workspace internal/stage internal/stage/openai internal/stage/postgres internal/stage/rabbitmq internal/stage/redis internal/stage/rest internal/stage/websearch internal/toolbox internal/toolbox/planrun retriever tools tools/gateway"},
	{"benchmarks/agent", ""},
	{"benchmarks", "benchmarks/agent graphrank indexer internal/base/job internal/folder/config internal/folder/index internal/folder/workspace internal/stage internal/store internal/store/flat internal/store/keyword internal/store/kv internal/store/legs internal/text/git internal/text/markdown internal/text/outline internal/text/walk internal/toolbox/catalog internal/toolbox/records internal/toolbox/suggest internal/toolbox/toolsearch internal/toolbox/usage models retriever tools"},
	{"benchmarks/conformance", ""},
	{"benchmarks/measure", "benchmarks benchmarks/agent models/bert"},
	{"deploy/packages", ""},
	{"cmd/cairn/internal/cli", "indexer internal/base/job internal/base/owner internal/face/finder internal/face/host internal/face/term internal/face/token internal/folder/config internal/folder/encoder internal/folder/index internal/folder/mirror internal/folder/workspace internal/stage internal/task retriever"},
	{"cmd/cairn/internal/bench", "benchmarks cmd/cairn/internal/cli internal/base/home internal/face/host internal/face/term internal/face/view internal/folder/config internal/folder/index internal/folder/workspace internal/stage models models/bpe retriever"},
	{"cmd/cairn/internal/care", "cmd/cairn/internal/cli internal/base/atomicfile internal/base/job internal/base/owner internal/face/doctor internal/face/drift internal/face/term internal/face/upgrade internal/face/view internal/folder/index internal/folder/workspace internal/toolbox"},
	{"cmd/cairn/internal/catalogue", "cmd/cairn/internal/cli graphrank internal/base/home internal/base/job internal/base/owner internal/face/connect internal/face/term internal/face/view internal/toolbox internal/toolbox/catalog internal/toolbox/plancheck internal/toolbox/planrun internal/toolbox/suggest internal/toolbox/toolsearch internal/toolbox/usage tools tools/client tools/gateway"},
	{"cmd/cairn/internal/tasks", "cmd/cairn/internal/cli internal/base/atomicfile internal/base/job internal/face/host internal/face/term internal/face/view internal/folder/config internal/folder/workspace internal/stage internal/task internal/task/cards internal/task/doctask internal/task/notes internal/task/scene internal/task/taskgraph internal/text/walk retriever"},
	{"cmd/cairn/internal/agents", "cmd/cairn/internal/catalogue cmd/cairn/internal/cli cmd/cairn/internal/tasks internal/base/home internal/base/metrics internal/face/connect internal/face/host internal/face/server internal/face/service internal/face/term internal/face/token internal/task/taskgraph skills tools"},
	{"cmd/cairn/internal/folder", "cmd/cairn/internal/cli cmd/cairn/internal/tasks internal/base/atomicfile internal/base/home internal/face/term internal/face/upgrade internal/face/view internal/folder/config internal/folder/encoder internal/folder/index internal/folder/mirror internal/folder/workspace internal/text/walk models/bpe models/minilm"},
	{"cmd/cairn/internal/search", "cmd/cairn/internal/cli cmd/cairn/internal/tasks internal/face/finder internal/face/server internal/face/term internal/face/view internal/folder/bundle internal/folder/index internal/folder/scan internal/folder/workspace internal/text/markdown internal/text/outline internal/text/receipt retriever tools"},
	{"cmd/cairn", "cmd/cairn/internal/agents cmd/cairn/internal/bench cmd/cairn/internal/care cmd/cairn/internal/catalogue cmd/cairn/internal/cli cmd/cairn/internal/folder cmd/cairn/internal/search cmd/cairn/internal/tasks internal/base/heap internal/face/term internal/face/view models/bert models/minilm"},
}

// maxImports is the maximum length of a row.
const maxImports = 15

// wide lists the rows that exceed maxImports: the packages that put others together.
var wide = map[string]int{
	"benchmarks":                   25,
	"cmd/cairn/internal/catalogue": 18,
	"cmd/cairn/internal/search":    15,
	"internal/face/host":           23,
	"cmd/cairn/internal/tasks":     17,
	"internal/face/term":           23,
	"internal/face/web":            19,
	"internal/folder/index":        23,
	"internal/folder/workspace":    35,
	"internal/toolbox":             19,
	"tools":                        30,
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
	"github.com/google/uuid":                   {"internal/stage", "internal/store/qdrant"},
	"github.com/knights-analytics/hugot":       {"models/onnx"},
	"github.com/gomlx/":                        {"models/onnx"},
	"github.com/pkoukk/tiktoken-go":            {"models/bpe"},
	"github.com/pkoukk/tiktoken-go-loader":     {"models/bpe"},
	"github.com/modelcontextprotocol/go-sdk":   {"tools", "benchmarks/conformance"}, // the protocol; its suite's fixtures
	"github.com/google/jsonschema-go":          {"tools"},
	"golang.org/x/oauth2":                      {"tools/client"},                                // the tokens of the protocol's login
	"github.com/yuin/goldmark":                 {"internal/text/markdown", "internal/face/web"}, // the parser and the reader's renderer
	"github.com/microcosm-cc/bluemonday":       {"internal/face/web"},
	"github.com/chromedp/":                     nil,                                                    // tests
	"go.yaml.in/yaml/v3":                       {"internal/text/markdown", "internal/toolbox/catalog"}, // front matter; descriptions of interfaces
	"github.com/pelletier/go-toml/v2":          {"internal/folder/config", "internal/face/connect"},
	"github.com/tailscale/hujson":              {"internal/text/jsonedit", "internal/face/connect"}, // edits members; arranges those of clients
	"github.com/elastic/go-seccomp-bpf":        {"internal/text/sandbox"},
	"github.com/fsnotify/fsnotify":             {"internal/text/watch"},
	"charm.land/bubbletea/v2":                  {"internal/face/finder"},
	"github.com/charmbracelet/x/ansi":          {"internal/face/finder"},
	"github.com/sahilm/fuzzy":                  {"internal/face/finder"},
	"github.com/anishathalye/porcupine":        {"internal/stage/embedded", "internal/task/cards", "internal/base/testutil", "internal/toolbox"}, // in tests: checks histories
	"github.com/atotto/clipboard":              {"cmd/cairn"},
	"golang.org/x/mod":                         {"internal/face/upgrade"},
	"github.com/gofrs/flock":                   {"internal/base/owner", "internal/store/kv", "internal/face/token", "internal/task/files", "benchmarks"}, // each locks its own file
	"github.com/spf13/cobra":                   {"cmd/cairn"},
	"github.com/spf13/pflag":                   {"cmd/cairn"}, // the flags of cobra
	"github.com/bmatcuk/doublestar/v4":         {"internal/text/walk"},
	"google.golang.org/protobuf":               {"models/bert", "models/onnx", "internal/store/qdrant"}, // ONNX files; gRPC messages
	"github.com/rogpeppe/go-internal":          nil,                                                     // tests; the diffs of internal/face/connect
	"github.com/santhosh-tekuri/jsonschema/v6": {"internal/toolbox/catalog"},
	"github.com/getkin/kin-openapi":            {"internal/face/server"}, // tests
	"github.com/prometheus/client_golang":      {"internal/base/metrics"},
	"go.opentelemetry.io/":                     {"internal/base/tracing"},                      // the API, the SDK and the exporter
	"github.com/google/go-cmp":                 nil,                                            // tests
	"github.com/hashicorp/golang-lru/v2":       nil,                                            // a cache, used wherever one is
	"golang.org/x/image":                       {"internal/text/convert"},                      // the LZW variant of PDF
	"golang.org/x/net":                         {"internal/text/convert", "internal/face/web"}, // the parser of HTML
	"golang.org/x/sys":                         nil,                                            // the operating system and the processor
	"golang.org/x/sync":                        nil,
	"golang.org/x/time":                        {"internal/face/server"},
	"golang.org/x/text":                        nil,
	"github.com/gomodule/redigo":               {"internal/stage/redis"},
	"github.com/jackc/pgx/v5":                  {"internal/base/pg", "internal/stage/postgres", "internal/base/testutil/pgtest"}, // connections; the codes of errors; their tests
	"github.com/jackc/puddle/v2":               {"internal/base/pg"},
	"github.com/rabbitmq/amqp091-go":           {"internal/stage/rabbitmq"},
	"golang.org/x/term":                        {"internal/face/term"},
	"gonum.org/v1/gonum":                       {"graphrank"},
}
