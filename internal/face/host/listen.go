package host

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"cairn/internal/face/token"
)

// ListenOptions configures Listen.
type ListenOptions struct {
	Address   string
	Auth      string // on, off, or auto: on unless only this user can reach the address
	Proxied   bool   // a proxy forwards requests of others to the address
	Tokens    func() (*token.Store, error)
	Cert, Key string // PEM files for TLS; "" disables TLS
	// Shared reports whether other users can log in to this machine, and so reach its
	// loopback addresses. If it is nil, Listen reads the users of the system.
	Shared func() bool
}

// Listen opens an address. It returns the store of the accepted tokens, nil if requests
// need no token.
func Listen(ctx context.Context, o ListenOptions, log *slog.Logger) (_ net.Listener, _ *token.Store, err error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Address)
	if err != nil {
		return nil, nil, fmt.Errorf("listening on %s: %w; choose another address with --addr", o.Address, err)
	}
	defer func() {
		if err != nil {
			l.Close()
		}
	}()
	local := l.Addr().(*net.TCPAddr).IP.IsLoopback()
	shared := o.Shared
	if shared == nil {
		shared = otherUsers
	}
	var tokens *token.Store
	switch {
	case o.Auth == "auto" && local && (o.Proxied || shared()):
		if tokens, err = o.Tokens(); err != nil {
			return nil, nil, err
		}
		if _, err := tokens.Local(ctx); err != nil {
			return nil, nil, err
		}
		log.Info("others can reach the address, from this machine or by a proxy, so each request needs a token; yours is in a file, and `cairn open --web` prints a link for your browser", "file", tokens.LocalPath())
	case o.Auth == "on" || o.Auth == "auto" && !local:
		if tokens, err = o.Tokens(); err != nil {
			return nil, nil, err
		}
		known, err := tokens.List()
		if err != nil {
			return nil, nil, err
		}
		if len(known) == 0 {
			return nil, nil, fmt.Errorf("serving on %s needs a token and %s has none: create one with `cairn token new NAME`, or serve without tokens with --auth off", l.Addr(), tokens.Path())
		}
		if !local && o.Cert == "" {
			log.Warn("tokens are sent without encryption; set --tls-cert and --tls-key, or use a proxy with TLS")
		}
	case !local:
		log.Warn("anyone who reaches this address may read and write", "address", l.Addr().String())
	}
	if o.Cert == "" {
		return l, tokens, nil
	}
	pair, err := tls.LoadX509KeyPair(o.Cert, o.Key)
	if err != nil {
		return nil, nil, fmt.Errorf("reading --tls-cert and --tls-key: %w", err)
	}
	var last atomic.Pointer[tls.Certificate]
	last.Store(&pair)
	renewed := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if next, err := tls.LoadX509KeyPair(o.Cert, o.Key); err == nil {
			last.Store(&next)
		} else {
			log.Warn("the server keeps its certificate, because it cannot read the present one", "error", err)
		}
		return last.Load(), nil
	}
	return tls.NewListener(l, &tls.Config{GetCertificate: renewed, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}), tokens, nil
}

// firstUser is the lowest user ID of a person, by the convention of Linux and the BSDs.
const firstUser = 1000

// otherUsers reports whether people other than the user of this process can log in to this
// machine. It reads the local list of users, which lacks the users of a directory service.
func otherUsers() bool {
	switch runtime.GOOS {
	case "windows":
		return false
	case "darwin":
		homes, _ := filepath.Glob("/Users/[^.]*")
		self, _ := os.UserHomeDir()
		return slices.ContainsFunc(homes, func(home string) bool { return home != self && home != "/Users/Shared" })
	}
	text, err := os.ReadFile("/etc/passwd")
	return err == nil && listsOthers(string(text), os.Getuid())
}

// listsOthers reports whether passwd contains a person other than self with a login shell.
func listsOthers(passwd string, self int) bool {
	for line := range strings.Lines(passwd) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) != 7 {
			continue
		}
		uid, err := strconv.Atoi(fields[2])
		shell := filepath.Base(fields[6])
		if err == nil && uid >= firstUser && uid != self && shell != "nologin" && shell != "false" {
			return true
		}
	}
	return false
}
