package toolsearch

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"cairn/internal/catalog"
	"cairn/internal/store"
	"cairn/models"
)

// ownName is a tool's name without its server's.
func ownName(t *catalog.Tool) string {
	if name, ok := strings.CutPrefix(t.Name, t.Server+":"); ok && t.Server != "" {
		return name
	}
	return t.Name
}

// nameText is what the vector of a name is made of.
func nameText(t *catalog.Tool) string {
	if w := Words(ownName(t)); len(w) > 0 {
		return strings.Join(w, " ")
	}
	return t.Name
}

// vectorText is what a tool's own vector is made of. Parameters are left out:
// many tools share them, and they blur what tells the tools apart.
func vectorText(t *catalog.Tool) string {
	if t.Description == "" {
		return nameText(t)
	}
	return nameText(t) + ". " + t.Description
}

// keywordEntry is what keywords are looked up in: the name's words with the
// weight of a heading, the description, and the top level of what the tool
// takes and gives.
func keywordEntry(t *catalog.Tool) store.TextEntry {
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
	return store.TextEntry{Chunk: t.ID, Title: nameText(t), Body: body.String()}
}

// digest tells whether what is indexed of a tool has changed.
func digest(t *catalog.Tool) string {
	e := keywordEntry(t)
	sum := sha256.Sum256([]byte(vectorText(t) + "\x00" + e.Title + "\x00" + e.Body))
	return string(sum[:])
}

// embedAll embeds texts, those that the cache does not know.
func embedAll(ctx context.Context, e models.Embedder, cache VectorCache, texts []string) ([][]float32, error) {
	if cache == nil {
		return e.EmbedDocuments(ctx, texts)
	}
	keys := make([][32]byte, len(texts))
	for i, t := range texts {
		keys[i] = sha256.Sum256([]byte(t))
	}
	vectors, err := cache.Get(keys)
	if err != nil {
		return nil, fmt.Errorf("reading known vectors: %w", err)
	}
	var wanted []string
	var wantedKeys [][32]byte
	var places []int
	for i, v := range vectors {
		if v == nil {
			wanted, wantedKeys, places = append(wanted, texts[i]), append(wantedKeys, keys[i]), append(places, i)
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
	for n, i := range places {
		vectors[i] = made[n]
	}
	return vectors, nil
}
