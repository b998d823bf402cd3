package toolsearch

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"cairn/internal/base/job"
	"cairn/internal/store"
	"cairn/internal/toolbox/catalog"
	"cairn/models"
)

// nameText returns the text to embed for a name.
func nameText(t *catalog.Tool) string {
	if w := Words(t.BareName()); len(w) > 0 {
		return strings.Join(w, " ")
	}
	return t.Name
}

// vectorText returns the text to embed for a tool. It has no parameters, because many tools
// share them and vectors would be less distinct.
func vectorText(t *catalog.Tool) string {
	if t.Description == "" {
		return nameText(t)
	}
	return nameText(t) + ". " + t.Description
}

// keywordEntry returns the entry of the keyword index: the words of the name as the
// title, the description, and the top level of inputs and outputs.
func keywordEntry(t *catalog.Tool) store.KeywordEntry {
	var body strings.Builder
	body.WriteString(t.Description)
	for _, list := range [][]catalog.Parameter{t.Takes, t.Gives} {
		for _, p := range list {
			if strings.Contains(p.Path, ".") {
				continue
			}
			body.WriteString(" . ")
			body.WriteString(strings.Join(Words(p.Name), " "))
			body.WriteByte(' ')
			body.WriteString(p.Description)
		}
	}
	return store.KeywordEntry{Chunk: t.ID, Title: nameText(t), Body: body.String()}
}

// digest identifies the indexed texts of a tool.
func digest(t *catalog.Tool) string {
	e := keywordEntry(t)
	sum := sha256.Sum256([]byte(vectorText(t) + "\x00" + e.Title + "\x00" + e.Body))
	return string(sum[:])
}

// Texts returns the texts that NewUsage embeds: each intent and its parts.
func Texts(traces []Trace) []string {
	list := make([]*Trace, len(traces))
	for i := range traces {
		list[i] = &traces[i]
	}
	return textsOf(list)
}

func textsOf(traces []*Trace) []string {
	var texts []string
	for _, t := range traces {
		texts = append(texts, t.Intent)
		for _, p := range Parts(t.Intent) {
			texts = append(texts, p.Text)
		}
	}
	return texts
}

// Unknown returns the texts that have no vector in the cache, each once.
func Unknown(texts []string, cache VectorCache) ([]string, error) {
	texts = Distinct(texts)
	_, vectors, err := lookUp(texts, cache)
	if err != nil {
		return nil, err
	}
	var unknown []string
	for i, v := range vectors {
		if v == nil {
			unknown = append(unknown, texts[i])
		}
	}
	return unknown, nil
}

// Distinct returns texts without duplicates, in their order.
func Distinct(texts []string) []string {
	seen := make(map[string]bool, len(texts))
	var once []string
	for _, t := range texts {
		if !seen[t] {
			seen[t] = true
			once = append(once, t)
		}
	}
	return once
}

// EmbedTexts adds the vectors of texts to the cache. After an error some may have been
// added. progress may be nil.
func EmbedTexts(ctx context.Context, texts []string, e models.Embedder, cache VectorCache, progress func(job.Progress)) error {
	done := 0
	for batch := range slices.Chunk(texts, 2*vectorBatch) {
		if _, err := embedAll(ctx, e, cache, batch); err != nil {
			return fmt.Errorf("embedding past intents: %w", err)
		}
		if done += len(batch); progress != nil {
			progress(job.Progress{Phase: "tools intents", Done: done, Total: len(texts)})
		}
	}
	return nil
}

// lookUp returns the keys of texts in a cache, and their vectors, nil for a missing one.
func lookUp(texts []string, cache VectorCache) (keys [][32]byte, vectors [][]float32, err error) {
	for _, t := range texts {
		keys = append(keys, sha256.Sum256([]byte(t)))
	}
	if vectors, err = cache.Get(keys); err != nil {
		return nil, nil, fmt.Errorf("reading known vectors: %w", err)
	}
	return keys, vectors, nil
}

// embedAll returns the vectors of texts. It embeds those that are not in the cache and adds
// them to it. A nil cache is empty.
func embedAll(ctx context.Context, e models.Embedder, cache VectorCache, texts []string) ([][]float32, error) {
	if cache == nil {
		return e.EmbedDocuments(ctx, texts)
	}
	keys, vectors, err := lookUp(texts, cache)
	if err != nil {
		return nil, err
	}
	var wanted []string
	var wantedKeys [][32]byte
	at := map[[32]byte]int{} // places in wanted, by key: a text may occur twice
	for i, v := range vectors {
		if _, twice := at[keys[i]]; v == nil && !twice {
			at[keys[i]] = len(wanted)
			wanted, wantedKeys = append(wanted, texts[i]), append(wantedKeys, keys[i])
		}
	}
	if len(wanted) == 0 {
		return vectors, nil
	}
	made, err := e.EmbedDocuments(ctx, wanted)
	if err != nil {
		return nil, err
	}
	if err := cache.Put(wantedKeys, made); err != nil {
		return nil, fmt.Errorf("keeping vectors: %w", err)
	}
	for i, v := range vectors {
		if v == nil {
			vectors[i] = made[at[keys[i]]]
		}
	}
	return vectors, nil
}
