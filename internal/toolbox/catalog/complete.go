package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/errgroup"
)

// partTools is the number of tools completed at a time, knownSchemas the number of cached
// schemas. Tools of one server share many schemas.
const (
	partTools    = 512
	knownSchemas = 4096
)

// parameterBytes is the size of a Parameter without its texts.
const parameterBytes = 96

// completer adds tools to a Batch as they are read, so that only the results are in memory.
type completer struct {
	batch   Batch
	read    int            // number of tools read
	last    map[string]int // position of the last tool with an ID
	schemas *schemaCache
}

// complete completes the tools that read passes to add. If several have the same ID, it keeps the
// last. It stops at the end of ctx and at the first error of read.
func complete(ctx context.Context, server string, read func(add func(Tool) error) error) (*Batch, error) {
	c := &completer{schemas: newSchemas(knownSchemas), last: map[string]int{}}
	part := make([]Tool, 0, partTools)
	err := read(func(t Tool) error {
		if c.read+len(part) == MaxTools {
			return fmt.Errorf("more than %d tools in one import", MaxTools)
		}
		if part = append(part, t); len(part) < cap(part) {
			return nil
		}
		err := c.add(ctx, part)
		part = part[:0]
		return err
	})
	if err == nil {
		err = c.add(ctx, part)
	}
	if err != nil {
		return nil, err
	}
	b := &c.batch
	b.Tools = slices.DeleteFunc(b.Tools, func(t Tool) bool { return t.ID == "" })
	if len(b.Tools) == 0 && b.Refused > 0 {
		return nil, fmt.Errorf("no tool can be kept; %s; %s", b.Warnings[0], wanted)
	}
	if b.more > 0 {
		b.Warnings = append(b.Warnings, fmt.Sprintf("and %d more", b.more))
	}
	return b, nil
}

// add completes tools on all processors. Nearly all the work is the compilation of schemas.
func (c *completer) add(ctx context.Context, part []Tool) error {
	errs := make([]error, len(part))
	var workers errgroup.Group
	workers.SetLimit(runtime.GOMAXPROCS(0))
	for i := range part {
		workers.Go(func() error {
			if ctx.Err() != nil {
				return fmt.Errorf("reading the tools: %w", context.Cause(ctx))
			}
			part[i], errs[i] = newTool(part[i], c.schemas)
			return nil
		})
	}
	if err := workers.Wait(); err != nil {
		return err
	}
	for i, t := range part {
		c.read++
		if errs[i] != nil {
			c.batch.Refused++
			c.batch.warn("tool %d is refused: %v", c.read, errs[i])
			continue
		}
		if before, twice := c.last[t.ID]; twice {
			c.batch.Tools[before] = Tool{}
			c.batch.warn("tool %q occurs twice; the later one is kept", t.ID)
		}
		c.last[t.ID] = len(c.batch.Tools)
		c.batch.Tools = append(c.batch.Tools, t)
	}
	return nil
}

// schemaCache reads the schemas of an import. Equal schemas share their text and their
// parameters. It is safe for concurrent use.
type schemaCache struct {
	known *lru.Cache[[sha256.Size]byte, readSchema]
	bytes atomic.Int64 // size of the parameters of all tools
}

// readSchema is a schema with its parameters.
type readSchema struct {
	text       json.RawMessage
	parameters []Parameter
	bytes      int
	err        error
}

var errParameters = fmt.Errorf("the parameters of the tools before it take more than %d MiB, the limit of one import", maxReadBytes>>20)

func (c *schemaCache) read(schema json.RawMessage) (json.RawMessage, []Parameter, error) {
	if c.bytes.Load() > maxReadBytes {
		return schema, nil, errParameters
	}
	key := sha256.Sum256(schema)
	r, ok := c.known.Get(key)
	if !ok {
		r.text = schema
		r.parameters, r.err = Parameters(schema)
		for _, p := range r.parameters {
			r.bytes += parameterBytes + len(p.Name) + len(p.Path) + len(p.Description)
		}
		c.known.Add(key, r)
	}
	c.bytes.Add(int64(r.bytes)) // each tool is stored with its own copy
	return r.text, r.parameters, r.err
}

// newSchemas returns a cache that keeps the last schemas.
func newSchemas(kept int) *schemaCache {
	known, _ := lru.New[[sha256.Size]byte, readSchema](kept) // the number is positive
	return &schemaCache{known: known}
}
