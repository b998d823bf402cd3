package toolbox

import (
	"path/filepath"

	"cairn/internal/catalog"
	"cairn/internal/home"
	"cairn/internal/kv"
	"cairn/internal/records"
	"cairn/internal/usage"
)

// Files are the names of the files of an earlier version that Adopt reads.
var Files = []string{catalogFile, usageFile, journalFile}

const journalFile = "usage.log" // of format 2 of the usage

// Adopt adds the catalogue and the usage in dir to those of a folder, which keep what they
// have. dir holds copies of Files, which are changed. The caller has the lock. It returns
// the number of records added, and calls recovered for each file that was damaged.
func Adopt(dir string, place home.Place, recovered func(*kv.Recovery)) (added int, err error) {
	tools, err := kv.Adopt(filepath.Join(dir, catalogFile), filepath.Join(place.Records, catalogFile), catalog.Buckets(), func(db *kv.DB) error {
		_, err := catalog.Open(records.NewFile(db, catalog.Buckets()...))
		return err
	}, recovered)
	if err != nil {
		return 0, err
	}
	learnt, err := kv.Adopt(filepath.Join(dir, usageFile), filepath.Join(place.Records, usageFile), usage.Buckets(), func(db *kv.DB) error {
		s, err := usage.Open(records.NewFile(db, usage.Buckets()...), nil)
		if err != nil {
			return err
		}
		return s.ImportJournal(filepath.Join(dir, journalFile))
	}, recovered)
	return tools + learnt, err
}
