package qdrant

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	"cairn/internal/store/keyword"
)

// terms is the dictionary of a keyword index: the engine knows a term by its
// number and cannot tell which others are near. It holds what a misspelt word
// may stand for (keyword.Spellable), the commonest terms first. How common a term
// is now the engine says, so a term whose chunks have left may stay.
//
// It is a text in the collection of documents, so that each generation has its own:
// terms separated by line feeds, at most maxTerms bytes. The one writer replaces it
// when its own index has a term that it lacks. A server reads its hash at each fuzzy
// query, and the text when the hash is another: none before the first one. A million
// terms, as a million chunks may have, are 10 to 17 MB here, and as much in the
// memory of each server that was asked for a misspelt word.
//
// A text that does not have its hash is skipped, and read again by the next query.
type terms struct {
	documents *Documents
	maxBytes  int

	mu     sync.Mutex
	hash   string             // of words
	words  keyword.Dictionary // as read last; nil until then
	warned string             // the hash of a text that could not be read
}

// maxTerms bounds the dictionary. Terms that are rarer than those in it are found as
// typed alone.
const maxTerms = 32 << 20

const dictionaryPoint = "dictionary:"

func newTerms(d *Documents) *terms { return &terms{documents: d, maxBytes: maxTerms} }

// refresh reads the dictionary if it has changed. t.mu is held.
func (t *terms) refresh(ctx context.Context) error {
	if err := t.documents.Open(ctx); err != nil {
		return err
	}
	head, err := t.documents.fields(ctx, dictionaryPoint, "hash")
	hash := head["hash"].GetStringValue()
	if err != nil || hash == t.hash {
		return err
	}
	t.hash, t.words = "", nil
	if hash == "" {
		return nil
	}
	head, err = t.documents.fields(ctx, dictionaryPoint, "hash", "text", "parts")
	if err != nil {
		return err
	}
	hash = head["hash"].GetStringValue()
	text, _, err := t.documents.textOf(ctx, "", head)
	if err != nil {
		return err
	}
	if hashOf(text) != hash {
		if t.warned != hash {
			t.warned = hash
			t.documents.client.log.Warn("the store's dictionary is missing or damaged: misspelt words are not put right until the next change is indexed", "collection", t.documents.name)
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

// known returns the terms as they were read last, nil before the first time.
func (t *terms) known() keyword.Dictionary {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.words
}

// dictionary returns the terms as they are stored now.
func (t *terms) dictionary(ctx context.Context) (keyword.Dictionary, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refresh(ctx); err != nil {
		return nil, fmt.Errorf("reading the dictionary: %w", err)
	}
	return t.words, nil
}

// complete replaces the dictionary by all, the commonest term first, if there is none
// or it lacks one of them.
func (t *terms) complete(ctx context.Context, all []string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refresh(ctx); err != nil {
		return err
	}
	size, n := 0, 0
	for n < len(all) && size+len(all[n]) < t.maxBytes {
		size += len(all[n]) + 1
		n++
	}
	if n < len(all) {
		t.documents.client.log.Warn("the store's dictionary is full: rare words are not found when they are misspelt", "terms", n, "of", len(all))
	}
	all = all[:n]
	if t.words != nil && t.words.HasAll(all) {
		return nil
	}
	text := []byte(strings.Join(all, "\n"))
	hash := hashOf(text)
	if err := t.documents.putText(ctx, "dictionary", "", hash, text, nil); err != nil {
		return err
	}
	t.hash, t.words = hash, keyword.NewDictionary(string(text))
	return nil
}
