package main

import (
	"io/fs"
	"os"
)

// handbook is the sample folder, without an index that may be in it.
func handbook() fs.FS { return visible{os.DirFS("../../examples/handbook")} }

// visible hides names that begin with a dot.
type visible struct{ fs.FS }

func (v visible) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(v.FS, name)
	shown := entries[:0]
	for _, e := range entries {
		if e.Name()[0] != '.' {
			shown = append(shown, e)
		}
	}
	return shown, err
}
