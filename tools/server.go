package tools

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/semaphore"

	"cairn/internal/base/observe"
	"cairn/internal/base/owner"
	"cairn/internal/folder/index"
	"cairn/internal/folder/scan"
	"cairn/internal/folder/workspace"
	"cairn/internal/text/fit"
	"cairn/retriever"
)

// Options configures New. Nil and zero fields select the defaults.
type Options struct {
	// Version is the version of cairn; "" is "devel".
	Version string
	// Logger receives internal errors of tools; nil discards them.
	Logger *slog.Logger
	// NoRateLimit disables the rate limits.
	NoRateLimit bool
	// DefaultMode is the default mode of read_context; "" is hybrid.
	DefaultMode retriever.Mode
	// Groups are the tools to offer; nil is Core. Clients cannot call other tools unless
	// Groups contains Auto.
	Groups []Group
	// Budget bounds the answers to calls without max_tokens. Tasks has a budget of its own.
	Budget fit.Budget
	// Status is the request for the state of the folder.
	Status index.StatusRequest
	// Scan finds lines of the folder's files.
	Scan func(ctx context.Context, r scan.Request) (*scan.Answer, error)
	// Toolbox serves the tools of Catalog. If it is nil, they are not offered.
	Toolbox *owner.Folder
	// Tasks serves the tools of Tasks and DAG, and those of Docs except for search and
	// reading. If it is nil, they are not offered.
	Tasks *workspace.Tasks
	// Proxy calls tools of other servers. If it is nil, call_tool and read_result are not
	// offered.
	Proxy *Proxy
	// Stages serves the tools of Stages. If it is nil, they are not offered.
	Stages *workspace.Stages
	// Recorder records searches and uses of tools and documents; nil records nothing. The
	// caller closes it after the last session.
	Recorder *Recorder
	// Watch calls fn after each change of documents until ctx ends; the server then
	// notifies clients. It is nil if the workspace is not watched.
	Watch func(ctx context.Context, fn func(index.WatchEvent)) error
	// Listener receives the calls and the stages of their work; nil discards them.
	Listener observe.Listener
	// Lacked, unless it is nil, is called after each search that needs vectors, with the
	// parts that the index lacked, such as "vectors", or an empty list.
	Lacked func([]string)
	// Workspace is the name of the workspace in the events of Listener; "" if the process
	// serves only one.
	Workspace string
	// Extend, unless it is nil, changes the options of the SDK's server and returns a
	// function that registers more features with the server. stop is called at the end of
	// the server. Only the conformance suite uses Extend.
	Extend func(*mcp.ServerOptions) (register func(*mcp.Server) (stop func()))
	// Now is the clock of the limits; nil is time.Now.
	Now func() time.Time
}

// budget returns the budget of an answer to a call with maxTokens, which may be nil.
func (o *Options) budget(maxTokens *integer) fit.Budget {
	b := o.Budget
	if maxTokens != nil && b.Count != nil {
		b.Tokens = int(*maxTokens)
	}
	return b
}

// Server offers the tools to any number of sessions.
type Server struct {
	folder  *owner.Folder
	options Options
	tools   []tool // tools that clients can call; see offered for those that are listed
	limits  *limiter
	// examples are shown in failures for invalid arguments.
	examples *examples
	// running bounds the concurrent calls of all sessions. More calls would use more
	// memory and not finish sooner.
	running *semaphore.Weighted
}

// maxRunning is a small multiple of the number of cores of a server.
const maxRunning = 16

// New returns a server of the tools that call the operations of folder.
func New(folder *owner.Folder, o *Options) *Server {
	s := &Server{folder: folder, running: semaphore.NewWeighted(maxRunning), options: *cmp.Or(o, &Options{})}
	s.options.Version = cmp.Or(s.options.Version, "devel")
	s.options.Logger = cmp.Or(s.options.Logger, slog.New(slog.DiscardHandler))
	s.options.DefaultMode = cmp.Or(s.options.DefaultMode, retriever.Hybrid)
	if s.options.Now == nil {
		s.options.Now = time.Now
	}
	if s.options.Groups == nil {
		s.options.Groups = []Group{Core}
	}
	s.limits, s.examples = newLimiter(s.options.Now), newExamples()
	s.tools = allTools(folder, &s.options)
	if s.auto() {
		s.tools = append(s.tools, s.more(s.tools))
	} else {
		s.tools = slices.DeleteFunc(s.tools, func(t tool) bool { return !t.offeredBy(s.options.Groups) })
	}
	return s
}
