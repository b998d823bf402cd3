package qdrant

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	pb "github.com/qdrant/go-client/qdrant"

	"cairn/internal/store/keyword"
)

// terms is the dictionary of a keyword index. The engine stores only the number of a term
// and cannot find near spellings. The dictionary lists the terms that a misspelt word may
// stand for (keyword.Spellable), most common first. Document frequencies come from the
// engine, so the dictionary may include terms whose chunks were removed.
//
// The dictionary is a text in the collection of documents, so each generation has its
// own: terms separated by line feeds, at most maxTerms bytes. The writer replaces it if
// its own index has a term that is missing. A server reads the hash from a point of its own
// at each fuzzy query, and the text if the hash has changed. A million terms, which a million chunks may have,
// take 10 to 17 MB on the server and as much in the memory of each process that has
// searched for a misspelt word.
//
// A text that does not match its hash is ignored, and the next query reads it again.
type terms struct {
	documents *Documents
	maxBytes  int

	mu     sync.Mutex
	hash   string             // of words
	words  keyword.Dictionary // as last read; nil before
	warned string             // hash of the damaged text that was logged
}

// maxTerms is the maximum size of the dictionary in bytes. Rarer terms match only as
// typed.
const maxTerms = 32 << 20

// The points of the dictionary and of its revision, which is its hash.
const (
	dictionaryPoint = "dictionary:"
	revisionPoint   = "revision:"
)

func newTerms(d *Documents) *terms { return &terms{documents: d, maxBytes: maxTerms} }

// refresh reads the dictionary if the hash in a field of a point has changed. The caller
// must hold t.mu.
func (t *terms) refresh(ctx context.Context, point, field string) error {
	if err := t.documents.Open(ctx); err != nil {
		return err
	}
	head, err := t.documents.fields(ctx, point, field)
	if err != nil || t.hash != "" && head[field].GetStringValue() == t.hash {
		return err
	}
	t.hash, t.words = "", nil
	head, err = t.documents.fields(ctx, dictionaryPoint, "hash", "text", "parts")
	if err != nil {
		return err
	}
	hash := head["hash"].GetStringValue()
	if hash == "" {
		return nil
	}
	text, _, err := t.documents.textOf(ctx, "", head)
	if err != nil {
		return err
	}
	if hashOf(text) != hash {
		if t.warned != hash {
			t.warned = hash
			t.documents.client.log.Warn("the store's dictionary is missing or damaged: misspelt words are not corrected until the next change is indexed", "collection", t.documents.name)
		}
		return nil
	}
	t.hash, t.words = hash, keyword.NewDictionary(string(text))
	return nil
}

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// known returns the terms as last read, or nil if they have not been read.
func (t *terms) known() keyword.Dictionary {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.words
}

// dictionary returns the current terms.
func (t *terms) dictionary(ctx context.Context) (keyword.Dictionary, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refresh(ctx, revisionPoint, "revision"); err != nil {
		return nil, fmt.Errorf("reading the dictionary: %w", err)
	}
	return t.words, nil
}

// complete replaces the dictionary by all, the most common terms first, if there is no
// dictionary or a term is missing.
func (t *terms) complete(ctx context.Context, all []string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refresh(ctx, dictionaryPoint, "hash"); err != nil {
		return err
	}
	size, n := 0, 0
	for n < len(all) && size+len(all[n]) < t.maxBytes {
		size += len(all[n]) + 1
		n++
	}
	if n < len(all) {
		t.documents.client.log.Warn("the store's dictionary is full: misspelt rare words find nothing", "terms", n, "of", len(all))
	}
	all = all[:n]
	if t.words != nil && t.words.HasAll(all) {
		return nil
	}
	text := []byte(strings.Join(all, "\n"))
	hash := hashOf(text)
	if err := t.documents.putText(ctx, "dictionary", "", hash, text, map[string]*pb.Value{"revision": pb.NewValueString(hash)}); err != nil {
		return err
	}
	t.hash, t.words = hash, keyword.NewDictionary(string(text))
	return nil
}
