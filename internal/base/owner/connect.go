package owner

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// connectLimit bounds the wait for an owner that is closing its files: it no longer
// answers and still has the lock. retryEvery is the pause between two attempts.
const (
	connectLimit = 3 * time.Second
	retryEvery   = 10 * time.Millisecond
)

// connect takes the lock and becomes the owner, or connects to the owner. The caller
// holds f.mu.
func (f *Folder) connect(ctx context.Context) (*session, error) {
	if err := f.o.Make(); err != nil {
		return nil, err
	}
	lock, socket := newLock(filepath.Join(f.o.Dir, LockFile)), socketPath(f.o.Dir, os.TempDir())
	for deadline := time.Now().Add(connectLimit); ; {
		me := Holder{PID: os.Getpid(), Command: f.o.Command, StartedAt: f.o.Now().UTC().Truncate(time.Second)}
		owned, err := lock.tryOwn(me)
		if err != nil {
			return nil, err
		}
		if owned {
			return f.own(lock, socket, me)
		}
		c, err := dial(ctx, f.o.network, socket, readHolder(lock.path), f.o.Errors)
		switch {
		case err == nil:
			if f.o.Accept != nil {
				err = f.o.Accept(c.owner.Holder, c.owner.Identity)
			}
			if err != nil {
				c.close()
				return nil, err
			}
			return &session{client: c}, nil
		case errors.Is(err, errSilent):
			return nil, &LockError{LockFile: lock.path, Holder: readHolder(lock.path), Doing: "using", Silent: true}
		case !errors.Is(err, ErrEnded):
			return nil, err
		case time.Now().After(deadline):
			return nil, &LockError{LockFile: lock.path, Holder: readHolder(lock.path), Doing: "using"}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(retryEvery):
		}
	}
}

// own starts the service in this process, which holds the lock, and opens the socket
// for other processes.
func (f *Folder) own(l *lock, socket string, me Holder) (*session, error) {
	ln, err := f.o.network.listen(socket)
	if err != nil {
		return nil, errors.Join(err, l.release())
	}
	s := &session{lock: l, server: newServer(f.o.Errors)}
	s.server.Holder, s.server.Held = me, l.held
	if s.service, err = f.o.Serve(s.server); err != nil {
		return nil, errors.Join(err, ln.Close(), l.release())
	}
	s.listener = s.server.serve(ln, hello{Protocol: protocol, Identity: f.o.Identity, Holder: me}, s.removed, f.o.Logger)
	return s, nil
}

// maxSocketPath bounds the path of a Unix socket in bytes: macOS allows 103, Linux 107.
const maxSocketPath = 100

// socketPath returns the path of the socket of the owner of dir: socketName in dir or, if
// that path is too long, a hash of it in a private directory below temp.
func socketPath(dir, temp string) string {
	path := filepath.Join(dir, socketName)
	if len(path) <= maxSocketPath {
		return path
	}
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(temp, fmt.Sprintf("cairn-%d", os.Getuid()), fmt.Sprintf("%x.sock", sum[:8]))
}
