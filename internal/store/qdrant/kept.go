package qdrant

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"cairn/internal/store/docs"
)

// maxKept is the largest number of bytes of text in a keptDocuments. The decoded sections
// take about as much again.
const maxKept = 64 << 20

// keptDocuments holds the most recently loaded documents. Each stored version of a document
// has a random revision, so that a search that finds the document again reads only that.
type keptDocuments struct {
	mu    sync.Mutex
	lru   *simplelru.LRU[string, keptDocument] // by path
	bytes int
}

type keptDocument struct {
	docs.Loaded
	revision string
}

func newKeptDocuments() *keptDocuments {
	k := &keptDocuments{}
	var err error
	// maxKept is reached before this number of documents, unless they are very short.
	if k.lru, err = simplelru.NewLRU(1<<16, func(_ string, d keptDocument) { k.bytes -= len(d.Text) }); err != nil {
		panic(err) // unreachable: the size is positive
	}
	return k
}

// get returns the document of a path; ok is false if there is none.
func (k *keptDocuments) get(path string) (d keptDocument, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lru.Get(path)
}

// put keeps a document unless it is large.
func (k *keptDocuments) put(path string, d keptDocument) {
	if len(d.Text) > maxKept/16 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lru.Remove(path)
	k.lru.Add(path, d)
	for k.bytes += len(d.Text); k.bytes > maxKept; {
		k.lru.RemoveOldest()
	}
}
