package qdrant

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"
)

// Generation is a set of collections that are created and removed together. It is safe
// for concurrent use.
type Generation struct {
	client *Client
	number int // 0 for the current generation
}

// Current returns the generation of the aliases. Each call uses the generation that is
// current at that time.
func (c *Client) Current() *Generation { return &Generation{client: c} }

// Next returns an empty generation after the current one. It removes the remains of an
// interrupted attempt.
func (c *Client) Next(ctx context.Context) (*Generation, error) {
	all, err := c.aliases(ctx)
	if err != nil {
		return nil, fmt.Errorf("choosing the next generation: %w", err)
	}
	newest := 0
	for _, alias := range c.names() {
		newest = max(newest, numberOf(alias, all[alias]))
	}
	g := &Generation{client: c, number: newest + 1}
	for n := 0; n < len(c.names()); n++ {
		name := g.name(c.names()[n])
		exists, ours, err := c.kind(ctx, n, name)
		if err != nil {
			return nil, err
		}
		if exists && !ours || all[name] != "" { // of another store or program
			g.number++
			n = -1
		}
	}
	return g, g.Remove(ctx)
}

// names returns the aliases of a store.
func (c *Client) names() []string {
	n := c.target.Collection
	return []string{n, n + "-documents"}
}

// claim fails if a name of the store is not an alias for a collection of its kind. Then it
// belongs to another program or to a store such as docs, whose collections are docs-1 and
// docs-documents-1. A writer would mix the two, and a rebuild would remove them.
func (c *Client) claim(ctx context.Context) error {
	all, err := c.aliases(ctx)
	for n, name := range c.names() {
		var exists, ours bool
		if err == nil {
			exists, ours, err = c.kind(ctx, n, name)
		}
		if exists && (!ours || all[name] == "") {
			return fmt.Errorf("collection %s belongs to another store or program; choose another name", name)
		}
	}
	return err
}

// kind reports whether a collection exists, and whether it is one for the n-th alias.
func (c *Client) kind(ctx context.Context, n int, name string) (exists, ours bool, err error) {
	info, err := c.describe(ctx, name)
	if errors.Is(err, errMissing) {
		return false, false, nil
	}
	meta := info.GetConfig().GetMetadata()
	return err == nil, meta["cairn_format"] != nil && (n == 0) == (meta["cairn_dimension"].GetIntegerValue() > 0), err
}

// numberOf returns the generation in a collection's name, or 0 if there is none.
func numberOf(alias, name string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(name, alias+"-"))
	if err != nil || n < 1 {
		return 0
	}
	return n
}

// collection returns the collection of the n-th alias.
func (g *Generation) collection(n int, s shape) collection {
	s.unaliased = g.number > 0
	return collection{client: g.client, name: g.name(g.client.names()[n]), shape: s}
}

func (g *Generation) name(alias string) string {
	if g.number == 0 {
		return alias
	}
	return alias + "-" + strconv.Itoa(g.number)
}

// Chunks returns the chunks of the generation. The first use of the Chunks creates the
// collection if it is missing, and fails if it has another model or dimension.
func (g *Generation) Chunks(dim int, model string) *Chunks {
	documents := g.Documents()
	names, _ := lru.New[uuid.UUID, string](maxNames) // the size is positive
	return &Chunks{
		collection: g.collection(0, shape{dim: dim, model: model, fields: labelFields}),
		documents:  documents, terms: newTerms(documents), names: names,
	}
}

// Documents returns the documents of the generation. Their first use creates the
// collection if it is missing.
func (g *Generation) Documents() *Documents {
	return &Documents{collection: g.collection(1, shape{fields: documentFields}), kept: newKeptDocuments()}
}

// Activate moves all aliases to the generation in one operation, and then removes the
// previous collections. Concurrent searches use either generation.
func (g *Generation) Activate(ctx context.Context) error {
	before, err := g.client.aliases(ctx)
	if err != nil {
		return fmt.Errorf("activating generation %d: %w", g.number, err)
	}
	targets := map[string]string{}
	for _, alias := range g.client.names() {
		targets[alias] = g.name(alias)
	}
	if err := g.client.alias(ctx, targets); err != nil {
		return err
	}
	for _, alias := range g.client.names() {
		if old := before[alias]; old != "" && old != targets[alias] {
			if err := g.client.drop(ctx, old); err != nil {
				return err
			}
		}
	}
	return nil
}

// Remove deletes the collections of the generation that exist.
func (g *Generation) Remove(ctx context.Context) error {
	for _, alias := range g.client.names() {
		if err := g.client.drop(ctx, g.name(alias)); err != nil {
			return err
		}
	}
	return nil
}
