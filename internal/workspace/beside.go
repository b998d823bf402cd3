package workspace

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"cairn/internal/kv"
	"cairn/retriever"
)

// OwnerLacking is what Answer.Degraded and Status.Degraded call an owner that
// does not answer.
const OwnerLacking = "owner"

// beside answers from what an owner that does not answer has left on disk:
// documents and vectors can be read beside it, and the keyword index as it was
// when beside was opened. It holds no lock and writes nothing. As soon as the
// owner answers, or the folder is free, every call is errGone and the workspace
// opens anew.
type beside struct {
	*local
	silent *LockError
	back   chan struct{} // closed when there is a better way into the folder
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

// openBeside opens an existing index next to its owner, and fails with a
// *LockError where that cannot be done. lock is not held.
func openBeside(w *Workspace, access Access, lock *fileLock) (engine, error) {
	silent := &LockError{LockFile: lock.path, Holder: readHolder(w.dir), Doing: "using", Silent: true}
	if ok, err := w.indexed(); !ok || err != nil {
		return nil, silent
	}
	l := &local{w: w, lock: lock}
	l.start()
	if err := l.openStores(apart); err != nil {
		w.options.Logger.Warn("reading the index beside its owner", "owner", silent.Holder.PID, "error", err)
		l.close()
		return nil, silent
	}
	w.options.Logger.Warn("answering beside the owner of the folder, which does not answer", "owner", silent.Holder.PID)
	b := &beside{local: l, silent: silent, back: make(chan struct{})}
	var ctx context.Context
	ctx, b.cancel = context.WithCancel(context.Background())
	b.ended.Go(func() { b.await(ctx, access) })
	return b, nil
}

// Bounds of the pause between two looks at a silent owner: each leaves it a
// connection to deal with.
const (
	firstLook = 100 * time.Millisecond
	lastLook  = time.Second
)

// await closes b.back when the owner answers or access can be had without it.
func (b *beside) await(ctx context.Context, access Access) {
	path, lock := socketPath(b.w.dir, os.TempDir()), newFileLock(b.w.dir)
	look := time.NewTimer(0)
	defer look.Stop()
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		r, err := dial(ctx, b.w, path)
		if err == nil {
			r.close()
		} else if free, lockErr := lock.free(access); lockErr == nil && free {
			err = nil
		}
		if err == nil && ctx.Err() == nil {
			close(b.back)
			return
		}
		look.Reset(pause)
	}
}

// besides runs fn on the stores, unless there is a better way by now.
func besides[T any](b *beside, fn func() (*T, error)) (*T, error) {
	select {
	case <-b.back:
		return nil, errGone
	default:
	}
	v, err := fn()
	if _, locked := errors.AsType[*kv.LockedError](err); locked {
		return nil, b.silent // it was stopped in the instant in which nobody may read
	}
	return v, err
}

func (b *beside) Search(ctx context.Context, q retriever.Query) (*retriever.Answer, error) {
	return besides(b, func() (*retriever.Answer, error) {
		a, err := b.local.Search(ctx, q)
		if err != nil {
			return nil, err
		}
		a.Degraded = append(slices.Clone(a.Degraded), OwnerLacking)
		a.Hint = b.silent.Error()
		return a, nil
	})
}

func (b *beside) Explain(ctx context.Context, r ExplainRequest) (*retriever.Trace, error) {
	return besides(b, func() (*retriever.Trace, error) { return b.local.Explain(ctx, r) })
}

func (b *beside) Read(ctx context.Context, r retriever.ReadRequest) (*retriever.Reading, error) {
	return besides(b, func() (*retriever.Reading, error) { return b.local.Read(ctx, r) })
}

func (b *beside) ReadAll(ctx context.Context, r retriever.ReadRequest) (*retriever.Readings, error) {
	return besides(b, func() (*retriever.Readings, error) { return b.local.ReadAll(ctx, r) })
}

func (b *beside) Documents(ctx context.Context, r DocumentsRequest) (*Documents, error) {
	return besides(b, func() (*Documents, error) { return b.local.Documents(ctx, r) })
}

func (b *beside) Status(ctx context.Context) (*Status, error) {
	return besides(b, func() (*Status, error) {
		s, err := b.local.Status(ctx)
		if err != nil {
			return nil, err
		}
		s.Degraded, s.Problem = []string{OwnerLacking}, b.silent.Error()
		if b.silent.Holder.PID != 0 {
			s.Owner = &b.silent.Holder
		}
		return s, nil
	})
}

// Index implements engine: only the owner writes.
func (b *beside) Index(context.Context, IndexRequest, func(Progress)) (*IndexReport, error) {
	return besides(b, func() (*IndexReport, error) { return nil, b.silent })
}

// Watch implements engine: it tells that nobody sees changes now, and ends when
// there is somebody again.
func (b *beside) Watch(ctx context.Context, fn func(WatchEvent)) error {
	fn(WatchEvent{At: b.w.options.Now(), Problem: b.silent.Error()})
	select {
	case <-b.back:
		return errGone
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *beside) close() error {
	b.cancel()
	b.ended.Wait()
	return b.local.close()
}
