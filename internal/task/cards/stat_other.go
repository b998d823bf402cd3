//go:build !linux

package cards

import (
	"io/fs"
	"os"
)

// statAt looks at a file of a folder without following links.
func statAt(_ *os.File, root *os.Root, name string) (stat, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return stat{}, err
	}
	return statOf(info), nil
}

func statOf(info fs.FileInfo) stat {
	at := info.ModTime().UnixNano()
	return stat{size: info.Size(), modTime: at, changeTime: at, dir: info.IsDir()}
}
