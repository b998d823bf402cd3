package toolbox

import (
	"errors"
	"os"
	"path/filepath"

	"cairn/internal/store/keyword"
)

// keywordsFolder contains the keyword index of a large catalogue.
const keywordsFolder = "tool-keywords"

// KeywordsDir returns the folder of the keyword index of tools below dir, the folder of an
// index.
func KeywordsDir(dir string) string { return filepath.Join(dir, keywordsFolder) }

// minStored is the minimum number of tools for which the index is stored. For fewer tools,
// indexing in memory takes less time than opening files.
const minStored = 2000

// openKeywords opens the keyword index in a folder. Unless readOnly is set, an empty index
// replaces one that is damaged or of another format. created reports whether the index is
// empty.
func openKeywords(dir string, readOnly bool) (k *keyword.Index, created bool, err error) {
	if readOnly {
		k, err = keyword.Open(dir, &keyword.Options{ReadOnly: true})
		return k, false, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, false, err
	}
	k, err = keyword.Open(dir, nil)
	if errors.Is(err, keyword.ErrCorrupt) || errors.Is(err, keyword.ErrFormat) {
		if err := os.RemoveAll(dir); err != nil {
			return nil, false, err
		}
		return openKeywords(dir, false)
	}
	if err != nil {
		return nil, false, err
	}
	n, err := k.Count()
	if err != nil {
		return nil, false, errors.Join(err, k.Close())
	}
	return k, n == 0, nil
}
