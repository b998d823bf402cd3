package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"cairn/internal/base/checksum"
	"cairn/internal/store/docs"
)

// VerifyRequest is a request to check all files.
type VerifyRequest struct {
	// Repair rebuilds what is damaged.
	Repair bool `json:"repair,omitempty"`
}

// Verified is the result of a check, by file.
type Verified struct {
	Files []checksum.File `json:"files"`
}

// Damaged reports whether a file has a problem that was not repaired.
func (v *Verified) Damaged() bool {
	for _, f := range v.Files {
		if len(f.Problems) > 0 && f.Repaired == "" {
			return true
		}
	}
	return false
}

// Verify reads the whole index and compares all checksums.
func (x *Index) Verify(ctx context.Context, r VerifyRequest) (*Verified, error) {
	v, err := x.verify(ctx)
	if err != nil || !r.Repair || !v.Damaged() {
		return v, err
	}
	if building, _ := x.building(); building { // the stores cannot be replaced during a run
		if _, err := x.Index(ctx, IndexRequest{Join: true}, nil); err != nil && damagedPart(err) == "" {
			return v, err
		}
	}
	found := Damage{}
	for _, f := range v.Files {
		if len(f.Problems) > 0 {
			found[f.Name] = errors.New(f.Problems[0])
		}
	}
	x.setAside(found)
	if _, err := x.Index(ctx, IndexRequest{Join: true}, nil); err != nil {
		return v, fmt.Errorf("rebuilding what is damaged: %w", err)
	}
	for i := range v.Files {
		if len(v.Files[i].Problems) > 0 {
			v.Files[i].Repaired = "rebuilt"
		}
	}
	return v, nil
}

// verifyRegularly verifies and repairs the index at intervals until Close.
func (x *Index) verifyRegularly() {
	tick := time.NewTicker(cmp.Or(x.o.VerifyEvery, 24*time.Hour))
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
			x.o.Logger.Error("verifying the index", "error", err)
		default:
			for _, f := range v.Files {
				if len(f.Problems) > 0 {
					x.o.Logger.Warn("a part of the index was damaged", "part", f.Name, "problems", f.Problems, "repaired", f.Repaired)
				}
			}
		}
	}
}

// verify checks the parts of the index. Damaged parts may not be open.
func (x *Index) verify(ctx context.Context) (*Verified, error) {
	s, err := x.use()
	if err != nil {
		return nil, err
	}
	defer x.mu.RUnlock()
	v := &Verified{Files: []checksum.File{}}
	if why := x.damage[documentsFile]; why != nil {
		v.Files = append(v.Files, checksum.File{Name: documentsFile, Problems: []string{why.Error()}})
	}
	if s == nil || !s.own {
		return v, nil
	}
	for _, part := range []struct {
		name  string
		check func() (checksum.File, error)
	}{
		{documentsFile, s.Docs.Verify},
		{keywordFolder, func() (checksum.File, error) {
			return verifyDerived(ctx, s, docs.Keyword, s.text, x.damage[keywordFolder])
		}},
		{vectorFolder, func() (checksum.File, error) {
			return verifyDerived(ctx, s, docs.Vectors, s.vectors, x.damage[vectorFolder])
		}},
	} {
		f, err := part.check()
		if damagedPart(err) != "" {
			f.Problems, err = append(f.Problems, err.Error()), nil
		}
		if err != nil {
			return nil, err
		}
		f.Name = part.name
		v.Files = append(v.Files, f)
	}
	return v, nil
}

// verifyDerived checks a derived index. In a reader x is nil if it is damaged.
func verifyDerived[T any, X interface {
	*T
	Count() (int, error)
	Verify(context.Context) (checksum.File, error)
}](ctx context.Context, s *Stores, kind docs.Kind, x X, known error) (f checksum.File, err error) {
	if x != nil {
		if f, err = x.Verify(ctx); err == nil {
			known = s.countDamage(kind, x.Count)
		}
	}
	if known != nil {
		f.Problems = append(f.Problems, known.Error())
	}
	return f, err
}
