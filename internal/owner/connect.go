package owner

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// connectLimit bounds the wait for an owner that neither answers nor has released
// the lock: it is closing its files. retryEvery is the pause between two tries.
const (
	connectLimit = 3 * time.Second
	retryEvery   = 10 * time.Millisecond
)

// connect finds the way into the folder. f.mu is held.
func (f *Folder) connect(ctx context.Context) (*session, error) {
	if f.create {
		if err := f.o.Make(); denied(err) {
			return f.share(err)
		} else if err != nil {
			return nil, err
		}
	} else if _, err := os.Stat(f.o.Dir); errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return f.hold(Absent, nil, nil, Holder{})
	}
	lock, socket := newLock(filepath.Join(f.o.Dir, f.o.Lock)), socketPath(f.o.Dir, f.o.Socket, os.TempDir())
	for deadline := time.Now().Add(connectLimit); ; {
		me := Holder{PID: os.Getpid(), Command: f.o.Command, StartedAt: f.o.Now().UTC().Truncate(time.Second)}
		owned, ownErr := lock.tryOwn(me)
		if owned {
			return f.own(lock, socket, me)
		}
		if ownErr != nil && !denied(ownErr) {
			return nil, ownErr
		}
		c, err := dial(ctx, socket, f.o.Errors)
		switch {
		case err == nil:
			return f.accept(c)
		case errors.Is(err, errSilent):
			return nil, &LockError{LockFile: lock.path, Holder: readHolder(lock.path), Doing: "using", Silent: true}
		case !errors.Is(err, ErrEnded):
			return nil, err
		case ownErr != nil:
			return f.share(ownErr)
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

// denied reports whether the system does not let this process write.
func denied(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// accept uses the owner behind c unless the caller refuses it.
func (f *Folder) accept(c *client) (*session, error) {
	if f.o.Accept != nil {
		if err := f.o.Accept(c.owner.Holder, c.owner.Identity); err != nil {
			c.close()
			return nil, err
		}
	}
	return &session{client: c}, nil
}

// own makes this process, which has the lock, the owner.
func (f *Folder) own(l *lock, socket string, me Holder) (*session, error) {
	ln, err := listen(socket)
	if err != nil {
		if err := errors.Join(err, l.release()); denied(err) {
			return f.share(err)
		}
		return nil, err
	}
	f.unwritable = nil
	return f.hold(Owned, l, ln, me)
}

// share reads a folder that cannot be written, which why says.
func (f *Folder) share(why error) (*session, error) {
	f.unwritable = why
	l := newLock(filepath.Join(f.o.Dir, f.o.Lock))
	if ok, err := l.tryShare(); err != nil && !denied(err) || err == nil && !ok {
		return nil, errors.Join(err, &LockError{LockFile: l.path, Holder: readHolder(l.path), Doing: "using"})
	}
	return f.hold(ReadOnly, l, nil, Holder{})
}

// hold starts the service and, with a listener, lets other processes use it.
func (f *Folder) hold(m Mode, l *lock, ln net.Listener, me Holder) (*session, error) {
	s := &session{lock: l, server: &Server{Mode: m, Holder: me, Denied: f.unwritable, kinds: f.o.Errors, local: map[string]any{}, mux: http.NewServeMux()}}
	if m == Owned {
		s.server.Held = l.held
	}
	service, err := f.o.Serve(s.server)
	if err != nil {
		if ln != nil {
			ln.Close()
		}
		if l != nil {
			err = errors.Join(err, l.release())
		}
		return nil, err
	}
	s.service = service
	if ln != nil {
		s.listener = s.server.serve(ln, hello{Protocol: protocol, Identity: f.o.Identity, Holder: me}, f.o.Logger)
	}
	return s, nil
}
