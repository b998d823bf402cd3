// Package qdranttest implements a fake Qdrant server for tests: the gRPC services of the
// generated client, with all data in memory. It is as strict as the engine: it rejects the
// same requests, applies a batch in pieces, returns equal scores in random order, and
// searches quantised vectors. Options select behaviours that the engine only shows under
// some conditions, so that tests cover both.
//
// The behaviour follows Qdrant's documentation and the embedded version of its engine
// (qdrant-edge 0.9); internal/store/qdrant/ORACLE.md lists the comparisons.
package qdranttest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Options selects behaviours of the engine. Nil and the zero value mean those of a
// current server.
type Options struct {
	// APIKey, if not empty, is required in every call.
	APIKey string
	// Version is the version in the health check; "" means "1.18.3".
	Version string
	// Unquantised disables quantisation, as the engine does for segments below its
	// indexing threshold.
	Unquantised bool
	// Fault, if not nil, is called before every call and can make it fail or wait.
	Fault func(ctx context.Context, method string) error
}

// Server is a running fake. It is safe for concurrent use.
type Server struct {
	pb.UnimplementedQdrantServer
	pb.UnimplementedCollectionsServer
	pb.UnimplementedPointsServer
	options Options
	calls   atomic.Int64
	spent   atomic.Int64 // by Measured

	mu          sync.RWMutex
	collections map[string]*collection
	aliases     map[string]string

	run     sync.Mutex
	address string
	grpc    *grpc.Server
}

// Both services have methods Get and Delete, so each is registered as a type of
// its own.
type (
	collectionsService struct{ *Server }
	pointsService      struct{ *Server }
)

// New returns a server that listens on a free port of this machine and is
// stopped at the end of the test.
func New(t testing.TB, o *Options) *Server {
	t.Helper()
	s := &Server{collections: map[string]*collection{}, aliases: map[string]string{}, address: "127.0.0.1:0", options: *cmp.Or(o, &Options{})}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// Addr returns the server's host:port. It does not change when the server is stopped and
// started again.
func (s *Server) Addr() string {
	s.run.Lock()
	defer s.run.Unlock()
	return s.address
}

// Calls returns the number of calls so far.
func (s *Server) Calls() int { return int(s.calls.Load()) }

// Collections returns the names of all collections, sorted.
func (s *Server) Collections() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Sorted(maps.Keys(s.collections))
}

// Drop deletes a collection and its aliases, like another program.
func (s *Server) Drop(name string) {
	_, _ = collectionsService{s}.Delete(context.Background(), &pb.DeleteCollection{CollectionName: name}) // never fails
}

// maxMessage is the size of the largest request, as in Qdrant's max_request_size_mb.
const maxMessage = 32 << 20

// Start listens again after Stop, with the same data.
func (s *Server) Start() error {
	s.run.Lock()
	defer s.run.Unlock()
	if s.grpc != nil {
		return nil
	}
	l, err := net.Listen("tcp", s.address)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	s.address = l.Addr().String()
	s.grpc = grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage), grpc.UnaryInterceptor(s.intercept),
		// By default, this server closes the connection at the third ping; the engine does not.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}))
	pb.RegisterQdrantServer(s.grpc, s)
	pb.RegisterCollectionsServer(s.grpc, collectionsService{s})
	pb.RegisterPointsServer(s.grpc, pointsService{s})
	server := s.grpc
	go server.Serve(l)
	return nil
}

// Stop closes all connections immediately, like a server that is killed.
func (s *Server) Stop() {
	s.run.Lock()
	defer s.run.Unlock()
	if s.grpc != nil {
		s.grpc.Stop()
		s.grpc = nil
	}
}

func (s *Server) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	s.calls.Add(1)
	if s.options.APIKey != "" {
		md, _ := metadata.FromIncomingContext(ctx)
		if got := md.Get("api-key"); len(got) != 1 || got[0] != s.options.APIKey {
			return nil, status.Error(codes.Unauthenticated, "Must provide an API key or an Authorization bearer token")
		}
	}
	if s.options.Fault != nil {
		if err := s.options.Fault(ctx, info.FullMethod); err != nil {
			return nil, err
		}
	}
	return next(ctx, req)
}

// HealthCheck implements pb.QdrantServer.
func (s *Server) HealthCheck(context.Context, *pb.HealthCheckRequest) (*pb.HealthCheckReply, error) {
	v := cmp.Or(s.options.Version, "1.18.3")
	return &pb.HealthCheckReply{Title: "qdrant - vector search engine (fake)", Version: v}, nil
}

func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

func missing(name string) error {
	return status.Errorf(codes.NotFound, "Not found: Collection `%s` doesn't exist!", name)
}

// resolve returns the collection of that name or alias.
func (s *Server) resolve(name string) (*collection, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if target, ok := s.aliases[name]; ok {
		name = target
	}
	if c, ok := s.collections[name]; ok {
		return c, nil
	}
	return nil, missing(name)
}

// write runs fn for a caller that waits for it, as cairn always does: the engine
// applies other writes later, and loses their errors.
func (s *Server) write(name string, wait *bool, fn func(c *collection) error) (*pb.PointsOperationResponse, error) {
	c, err := s.resolve(name)
	if err == nil && (wait == nil || !*wait) {
		err = invalid("cairn waits for its writes")
	}
	if err == nil {
		err = fn(c)
	}
	if err != nil {
		return nil, err
	}
	return &pb.PointsOperationResponse{Result: &pb.UpdateResult{Status: pb.UpdateStatus_Completed}}, nil
}
