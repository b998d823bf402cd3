package qdrant

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pb "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/status"
)

// Options configures Dial. Nil and the zero value mean the defaults.
type Options struct {
	// APIKey, if not empty, is sent with every call. It is never logged.
	APIKey string
	// CAFile is a PEM file with the certificate authorities for TLS; "" means those of
	// the system.
	CAFile string
	// Shards, Replicas and WriteConsistency apply to new collections; 0 means the
	// server's default.
	Shards, Replicas, WriteConsistency uint32
	// Exact searches without quantisation and without an approximate index.
	Exact bool
	// ReadTimeout is the time limit for one attempt to search or read; 0 means 2 s.
	ReadTimeout time.Duration
	// Log may be nil.
	Log *slog.Logger
}

// maxMessage is the size of the largest message. Texts are divided into parts of partBytes.
const maxMessage = 64 << 20

// Client is a connection to one store. It is safe for concurrent use.
type Client struct {
	target  Target
	options Options
	log     *slog.Logger
	grpc    *pb.GrpcClient
	breaker breaker
	checked once        // of the server's version
	creates atomic.Bool // see Create

	open  context.Context // until Close
	close context.CancelFunc
	tasks sync.WaitGroup // in the background
}

// Dial prepares a connection. The first call connects.
func Dial(t Target, o *Options) (*Client, error) {
	c := &Client{target: t, options: *cmp.Or(o, &Options{})}
	c.open, c.close = context.WithCancel(context.Background())
	c.log = cmp.Or(c.options.Log, slog.New(slog.DiscardHandler))
	if c.options.ReadTimeout <= 0 {
		c.options.ReadTimeout = 2 * time.Second
	}
	config := &pb.Config{
		Host: t.Host, Port: t.Port, UseTLS: t.TLS, SkipCompatibilityCheck: true, PoolSize: 1, KeepAliveTime: 10, KeepAliveTimeout: 10,
		GrpcOptions: []grpc.DialOption{
			// By default, the delay between attempts to connect grows to two minutes.
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 500 * time.Millisecond},
				MinConnectTimeout: 2 * time.Second,
			}),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage), uncompressed()),
		},
	}
	if c.options.APIKey != "" {
		// Not Config.APIKey, because then the client writes to the default log.
		config.Headers = map[string]string{"api-key": c.options.APIKey}
		if !t.TLS {
			c.log.Warn("the API key is sent over a connection without TLS", "store", t.Addr())
		}
	}
	if t.TLS {
		tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.Host}
		if c.options.CAFile != "" {
			pem, err := os.ReadFile(c.options.CAFile)
			if err != nil {
				return nil, fmt.Errorf("reading certificates: %w", err)
			}
			tlsConfig.RootCAs = x509.NewCertPool()
			if !tlsConfig.RootCAs.AppendCertsFromPEM(pem) {
				return nil, fmt.Errorf("reading certificates: %s holds none", c.options.CAFile)
			}
		}
		config.TLSConfig = tlsConfig
	}
	var err error
	if c.grpc, err = pb.NewGrpcClient(config); err != nil {
		return nil, fmt.Errorf("preparing the connection to %s: %w", t.Addr(), err)
	}
	return c, nil
}

// Create makes the client create collections that are missing. Lease calls it, because a
// reader would replace a lost collection by an empty one.
func (c *Client) Create() { c.creates.Store(true) }

// Close closes the connection.
func (c *Client) Close() error {
	c.close()
	c.tasks.Wait()
	return c.grpc.Close()
}

// UnavailableError reports that the server cannot answer now. A write may or may not have
// been applied.
type UnavailableError struct {
	Addr string
	Err  error
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("qdrant at %s cannot answer (%v); check that it runs, that the address is right, and that its limits allow the requests", e.Addr, e.Err)
}

func (e *UnavailableError) Unwrap() error { return e.Err }

// errMissing is wrapped by the errors of calls to collections that the server does not have.
var errMissing = errors.New("the store is incomplete or was never written; run `cairn index` or `cairn store copy` with this store for its folder")

// portError reports that the server at an address does not use gRPC.
func portError(addr string) error {
	return fmt.Errorf("%s does not speak gRPC: Qdrant's gRPC port is %d by default, %d is its REST port", addr, grpcPort, restPort)
}

// check fails if the server is older than 1.16. It calls the server until that has succeeded.
func (c *Client) check(ctx context.Context) error {
	return c.checked.do(func() error {
		reply, err := read(ctx, c, c.grpc.Qdrant().HealthCheck, &pb.HealthCheckRequest{})
		if err != nil {
			return err
		}
		var major, minor int
		if _, err := fmt.Sscanf(reply.Version, "%d.%d", &major, &minor); err != nil || major < 1 || major == 1 && minor < 16 {
			return fmt.Errorf("qdrant at %s is version %s, want 1.16 or newer", c.target.Addr(), reply.Version)
		}
		return nil
	})
}

// once runs a function until it has succeeded. Concurrent callers wait.
type once struct {
	mu   sync.Mutex
	done bool
}

func (o *once) do(fn func() error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done {
		return nil
	}
	err := fn()
	o.done = err == nil
	return err
}

// The number of attempts of a call that fails for a transient reason. The wait between
// attempts begins with firstWait, doubles each time, and is shortened at random by up to
// half.
const (
	readAttempts  = 2
	writeAttempts = 6
	// writeTimeout is the time limit for one attempt of a write call.
	writeTimeout = 30 * time.Second
	firstWait    = 50 * time.Millisecond
)

// method is a method of the generated client.
type method[Q, R any] = func(context.Context, Q, ...grpc.CallOption) (R, error)

// read makes a call that does not change the store. A call that passes over a collection has
// as much time as a write.
func read[Q, R any](ctx context.Context, c *Client, fn method[Q, R], request Q) (reply R, err error) {
	limit := c.options.ReadTimeout
	switch any(request).(type) {
	case *pb.CountPoints, *pb.ScrollPoints:
		limit = max(limit, writeTimeout)
	}
	err = c.call(ctx, readAttempts, limit, func(ctx context.Context) (err error) {
		reply, err = fn(ctx, request)
		return err
	})
	return reply, err
}

// write makes a call that changes the store. The call must be idempotent. write ignores
// errors with one of the codes in ignored.
func write[Q, R any](ctx context.Context, c *Client, fn method[Q, R], request Q, ignored ...codes.Code) error {
	return c.call(ctx, writeAttempts, writeTimeout, func(ctx context.Context) error {
		_, err := fn(ctx, request)
		if err != nil && slices.Contains(ignored, status.Code(err)) {
			return nil
		}
		return err
	})
}

// points returns the requested points that exist, in no particular order.
func (c *Client) points(ctx context.Context, request *pb.GetPoints) ([]*pb.RetrievedPoint, error) {
	r, err := read(ctx, c, c.grpc.Points().Get, request)
	return r.GetResult(), err
}

// call runs fn with a time limit per attempt, and repeats it if it fails for a transient
// reason. While the breaker is open, call fails at once.
func (c *Client) call(ctx context.Context, attempts int, limit time.Duration, fn func(context.Context) error) error {
	wait := firstWait
	for n := 1; ; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.breaker.err(); err != nil && n == 1 {
			return &UnavailableError{Addr: c.target.Addr(), Err: err}
		}
		attempt, cancel := context.WithTimeout(ctx, limit)
		err := fn(attempt)
		cancel()
		if err == nil {
			c.breaker.succeeded()
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		err, transient := c.classify(err)
		if !transient {
			return err
		}
		if n == attempts {
			c.failed(err)
			return &UnavailableError{Addr: c.target.Addr(), Err: err}
		}
		select {
		case <-time.After(wait/2 + rand.N(wait/2)):
		case <-ctx.Done():
			return ctx.Err()
		}
		wait *= 2
	}
}

// wrap adds what a method does, and its arguments, to the error that it returns.
func wrap(err *error, format string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf(format+": %w", append(args, *err)...)
	}
}

// classify converts the error of a call to an error of this package. transient reports
// whether another attempt may succeed.
func (c *Client) classify(err error) (_ error, transient bool) {
	if _, ok := errors.AsType[*pb.QdrantResourceExhaustedError](err); ok {
		return err, true
	}
	s := status.Convert(err)
	message := strings.TrimSpace(s.Message())
	switch s.Code() {
	case codes.Unavailable:
		// An HTTP/1 server sends a line that is not an HTTP/2 frame.
		if strings.Contains(message, "HTTP/1") || strings.Contains(message, "http2: frame too large") {
			return portError(c.target.Addr()), false
		}
		switch {
		case c.target.Port == restPort:
			err = portError(c.target.Addr())
		case strings.Contains(message, "failed to verify certificate"):
			err = errors.New("set QDRANT_CA_FILE to the certificate authority of the server")
		case strings.Contains(message, "does not look like a TLS handshake"):
			err = errors.New("a server without TLS needs an address with qdrant://")
		case strings.Contains(message, "EOF") && !c.target.TLS: // also from a proxy whose server does not run yet
			err = errors.New("a server with TLS needs an address with qdrants://")
		default:
			return errors.New(message), true
		}
		return fmt.Errorf("%s; %w", message, err), true
	case codes.DeadlineExceeded:
		return errors.New("no answer in time"), true
	case codes.ResourceExhausted:
		return errors.New(message), !strings.Contains(message, "larger than max")
	case codes.NotFound:
		return fmt.Errorf("%s: %w", message, errMissing), false
	case codes.Aborted:
		return errors.New(message), true
	case codes.Unauthenticated, codes.PermissionDenied:
		return fmt.Errorf("qdrant at %s refuses access: set QDRANT_API_KEY to a key that may read and write", c.target.Addr()), false
	case codes.Unimplemented, codes.Unknown:
		// A REST port with HTTP/2 answers a gRPC call with a page.
		if strings.Contains(message, "unexpected HTTP status code") || strings.Contains(message, "content-type") {
			return portError(c.target.Addr()), false
		}
	}
	return err, false
}

// plain is the only compression that a Client accepts. No server knows it, so answers are
// sent as they are. With gzip, which a module for tracing registers for all clients, the
// engine compresses ids and scores, which takes a quarter of its processor time for a search
// and saves little. AcceptCompressors without a name has no effect.
type plain struct{}

func init() { encoding.RegisterCompressor(plain{}) }

// uncompressed is the option of calls whose answers are not compressed.
func uncompressed() grpc.CallOption { return experimental.AcceptCompressors(plain{}.Name()) }

func (plain) Name() string { return "cairn-plain" }

func (plain) Compress(w io.Writer) (io.WriteCloser, error) { return plainWriter{w}, nil }

func (plain) Decompress(r io.Reader) (io.Reader, error) { return r, nil }

type plainWriter struct{ io.Writer }

func (plainWriter) Close() error { return nil }

const (
	// failuresToOpen is the number of consecutive calls that must fail, each after all
	// attempts, before the breaker opens.
	failuresToOpen = 2
	// probeEvery is the interval at which an unavailable server is probed.
	probeEvery = 250 * time.Millisecond
)

// breaker is a circuit breaker: while it is open, calls fail at once instead of waiting
// for an unavailable server. It then probes the server, and closes when the server
// answers.
type breaker struct {
	mu       sync.Mutex
	failures int
	reason   error // why the breaker is open; nil if it is closed
}

// err returns the error that opened the breaker, or nil if it is closed.
func (b *breaker) err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reason
}

func (b *breaker) succeeded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures = 0
}

// failed counts a failed call. If that opens the breaker, it probes the server in the
// background until it answers.
func (c *Client) failed(err error) {
	b := &c.breaker
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures++; b.failures < failuresToOpen || b.reason != nil || c.open.Err() != nil {
		return
	}
	b.reason = err
	c.tasks.Go(func() {
		tick := time.NewTicker(probeEvery)
		defer tick.Stop()
		for {
			select {
			case <-c.open.Done():
				return
			case <-tick.C:
			}
			attempt, cancel := context.WithTimeout(c.open, 2*time.Second)
			_, err := c.grpc.Qdrant().HealthCheck(attempt, &pb.HealthCheckRequest{})
			cancel()
			if err == nil {
				b.mu.Lock()
				b.failures, b.reason = 0, nil
				b.mu.Unlock()
				return
			}
		}
	})
}
