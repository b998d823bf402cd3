package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"cairn/indexer"
	"cairn/internal/base/health"
	"cairn/internal/store/docs"
)

// VerifyRequest is a request to check all files.
type VerifyRequest struct {
	// Repair rebuilds what is damaged.
	Repair bool `json:"repair,omitempty"`
}

// Verified is the result of a check, by file.
type Verified = health.Report

// Verify reads the whole index and compares all checksums.
func (x *Index) Verify(ctx context.Context, r VerifyRequest) (*Verified, error) {
	return health.Check(ctx, []health.Part{
		x.part(DocumentsFile, func(_ context.Context, s *Stores) (health.File, error) { return s.Docs.Verify() }),
		x.part(keywordFolder, func(ctx context.Context, s *Stores) (health.File, error) {
			return verifyDerived(ctx, s, docs.Keyword, s.text)
		}),
		x.part(vectorFolder, func(ctx context.Context, s *Stores) (health.File, error) {
			return verifyDerived(ctx, s, docs.Vectors, s.vectors)
		}),
	}, r.Repair)
}

// part returns a part of the index. check checks it in open stores.
func (x *Index) part(name string, check func(context.Context, *Stores) (health.File, error)) health.Part {
	return health.Part{Repair: x.restore, Check: func(ctx context.Context) (f health.File, err error) {
		s, err := x.use()
		if err != nil {
			return f, err
		}
		defer x.mu.RUnlock()
		damage := x.damage[name]
		if s != nil && s.own {
			f, err = check(ctx, s)
			f.Name = name
		}
		if damagedPart(err) != "" {
			damage, err = err, nil
		}
		if damage != nil {
			f.Name, f.Problems = name, append(f.Problems, damage.Error())
		}
		return f, err
	}}
}

// restore sets a damaged part aside and rebuilds it.
func (x *Index) restore(ctx context.Context, f health.File) (did string, err error) {
	if building, _ := x.building(); building { // the stores cannot be replaced during a run
		if _, err := x.Index(ctx, IndexRequest{Join: true}, nil); err != nil && damagedPart(err) == "" {
			return "", err
		}
	}
	x.setAside(Damage{f.Name: errors.New(f.Problems[0])})
	if _, err := x.Index(ctx, IndexRequest{Join: true}, nil); err != nil {
		return "", fmt.Errorf("rebuilding what is damaged: %w", err)
	}
	return "rebuilt", nil
}

// verifyRegularly verifies and repairs the index at intervals until Close.
func (x *Index) verifyRegularly() {
	tick := time.NewTicker(cmp.Or(x.options.VerifyEvery, 24*time.Hour))
	defer tick.Stop()
	for {
		select {
		case <-x.life.Done():
			return
		case <-tick.C:
		}
		v, err := x.Verify(x.life, VerifyRequest{Repair: true})
		switch {
		case x.life.Err() != nil:
			return
		case err != nil:
			x.options.Logger.Error("verifying the index", "error", err)
		default:
			for _, f := range v.Files {
				if len(f.Problems) > 0 {
					x.options.Logger.Warn("a part of the index was damaged", "part", f.Name, "problems", f.Problems, "repaired", f.Repaired)
				}
			}
		}
	}
}

// verifyDerived checks a derived index. In a reader x is nil if it is damaged.
func verifyDerived[T any, X interface {
	*T
	indexer.Derived
	Verify(context.Context) (health.File, error)
}](ctx context.Context, s *Stores, kind docs.Kind, x X) (f health.File, err error) {
	if x == nil {
		return f, nil
	}
	if f, err = x.Verify(ctx); err != nil {
		return f, err
	}
	if lacks := s.derivedDamage(kind, x); lacks != nil {
		f.Problems = append(f.Problems, lacks.Error())
	}
	return f, nil
}
