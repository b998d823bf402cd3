// Package health checks the parts of a folder's files and repairs those that are damaged.
// A part is a file or a folder, such as the documents, the keyword index, the vectors, the
// tool catalogue, the usage or the question tasks. Each knows its own check and its own
// repair: derived parts are built again, and records come from their snapshot.
package health

import (
	"context"
	"slices"
)

// File is the result of checking a part.
type File struct {
	Name     string   `json:"name"`
	Bytes    int64    `json:"bytes"`
	Records  int      `json:"records,omitempty"`
	Problems []string `json:"problems,omitempty"`
	// Outdated reports that the part is undamaged, but of another version or made with other
	// settings. Its next use rebuilds it.
	Outdated bool `json:"outdated,omitempty"`
	// Repaired describes the repair, "" for none.
	Repaired string `json:"repaired,omitempty"`
}

// Damaged reports whether f has damage that was not repaired.
func (f *File) Damaged() bool { return len(f.Problems) > 0 && f.Repaired == "" && !f.Outdated }

// Report is the result of checking several parts.
type Report struct {
	Files []File `json:"files"`
}

// Damaged reports whether a part is damaged.
func (r *Report) Damaged() bool {
	return slices.ContainsFunc(r.Files, func(f File) bool { return f.Damaged() })
}

// Part is a file or a folder that can be checked and repaired without the others.
type Part struct {
	// Check reads the part and compares its checksums. A part that does not exist has no
	// name. An error means that Check could not check.
	Check func(context.Context) (File, error)
	// Repair repairs a damaged part and returns what it did.
	Repair func(context.Context, File) (did string, err error)
}

// Check checks parts. With repair, it then repairs those that are damaged or
// outdated.
func Check(ctx context.Context, parts []Part, repair bool) (*Report, error) {
	r := &Report{Files: []File{}}
	var checked []Part // by index of the file
	for _, p := range parts {
		f, err := p.Check(ctx)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		if f.Name != "" {
			r.Files, checked = append(r.Files, f), append(checked, p)
		}
	}
	for i, f := range r.Files {
		if !repair || !f.Damaged() && !f.Outdated {
			continue
		}
		var err error
		if r.Files[i].Repaired, err = checked[i].Repair(ctx, f); err != nil {
			return r, err
		}
	}
	return r, nil
}
