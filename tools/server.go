package tools

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/fit"
	"cairn/internal/index"
	"cairn/internal/job"
	"cairn/internal/observe"
	"cairn/internal/scan"
	"cairn/internal/toolbox"
	"cairn/internal/workspace"
	"cairn/retriever"
)

// Engine is the workspace that the tools work on; *workspace.Workspace is one.
// Every method may be called concurrently.
type Engine interface {
	Search(ctx context.Context, q retriever.Query) (*retriever.Answer, error)
	Read(ctx context.Context, r retriever.ReadRequest) (*retriever.Reading, error)
	ReadAll(ctx context.Context, r retriever.ReadRequest) (*retriever.Readings, error)
	Documents(ctx context.Context, r index.DocumentsRequest) (*index.Documents, error)
	Scan(ctx context.Context, r scan.Request) (*scan.Answer, error)
	Index(ctx context.Context, r index.IndexRequest, progress func(job.Progress)) (*index.IndexReport, error)
	Status(ctx context.Context) (*index.Status, error)
	Skipped(ctx context.Context) ([]index.SkippedFile, error)
}

// Options configures New. Nil and zero fields select the defaults.
type Options struct {
	// Version is the server's own version; "" is "devel".
	Version string
	// Logger receives failures that no answer reports; nil discards them.
	Logger *slog.Logger
	// NoRateLimit turns the limits of the specification off.
	NoRateLimit bool
	// DefaultMode is the mode of read_context when none is given; "" is hybrid.
	DefaultMode retriever.Mode
	// Groups are the tools to offer; nil is Core. Clients can call no others, unless
	// Auto is among the groups.
	Groups []Group
	// Budget bounds an answer of get_tool that sets no max_tokens; Tasks has its own.
	Budget fit.Budget
	// Toolbox serves the tools of Catalog. If it is nil, they are not offered.
	Toolbox *toolbox.Toolbox
	// Tasks serves the tools of Tasks and DAG, and those of Docs that do more than read.
	// If it is nil, they are not offered.
	Tasks *workspace.Tasks
	// Stages serves the tools of Stages. If it is nil, they are not offered.
	Stages *workspace.Stages
	// Recorder records what sessions look for and use; nil records nothing. The
	// caller closes it after the last session.
	Recorder *Recorder
	// Watch calls fn after documents have changed, until ctx ends, so that clients are
	// notified. It is nil for a workspace that is not watched.
	Watch func(ctx context.Context, fn func(index.WatchEvent)) error
	// Listener receives calls and the stages of their work. Nil discards them.
	Listener observe.Listener
	// Lacked, unless it is nil, is called after each search that needs vectors with what
	// the index lacked, or an empty list.
	Lacked func([]string)
	// Workspace is the name of the workspace in the events of Listener; "" where
	// there is only one.
	Workspace string
	// Extend, when not nil, changes the options of the SDK's server, and returns a
	// function that registers more with it; stop is called when the server ends.
	// The conformance suite needs it, the product does not.
	Extend func(*mcp.ServerOptions) (register func(*mcp.Server) (stop func()))
	// Now is the clock of the limits; nil is time.Now.
	Now func() time.Time
}

// Server offers the tools to any number of sessions.
type Server struct {
	engine  Engine
	options Options
	tools   []tool // that clients can call; offered returns those to list
	limits  *limiter
	// scanWait bounds the look at the documents that starts with the server, and how
	// long the first list waits for it.
	scanWait time.Duration
	// running bounds the calls that run at once, over all sessions: more would not
	// finish sooner, only hold memory.
	running chan struct{}
}

// maxRunning is a small multiple of the cores of a server; further calls wait.
const maxRunning = 16

// New returns a server over engine.
func New(engine Engine, o *Options) *Server {
	s := &Server{engine: engine, scanWait: defaultScanWait, running: make(chan struct{}, maxRunning)}
	if o != nil {
		s.options = *o
	}
	if s.options.Version == "" {
		s.options.Version = "devel"
	}
	if s.options.Logger == nil {
		s.options.Logger = slog.New(slog.DiscardHandler)
	}
	if s.options.DefaultMode == "" {
		s.options.DefaultMode = retriever.Hybrid
	}
	if s.options.Now == nil {
		s.options.Now = time.Now
	}
	if s.options.Groups == nil {
		s.options.Groups = []Group{Core}
	}
	s.limits = newLimiter(s.options.Now)
	s.tools = slices.DeleteFunc(allTools(engine, &s.options), func(t tool) bool { return !t.callable(s.options.Groups) })
	if s.auto() {
		s.tools = append(s.tools, s.more(s.tools))
	}
	return s
}
