package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"

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
	dropped map[int]bool   // positions of tools that a later one replaces
	schemas schemaCache
}

// complete completes the tools of a source. If several have the same ID, it keeps the last.
// It stops at the end of ctx and at the first error of tools.
func complete(ctx context.Context, tools iter.Seq2[Tool, error], server string) (*Batch, error) {
	c := &completer{batch: Batch{Server: server}, last: map[string]int{}, dropped: map[int]bool{}}
	part := make([]Tool, 0, partTools)
	for t, err := range tools {
		if err != nil {
			return nil, err
		}
		if c.read+len(part) == MaxTools {
			return nil, fmt.Errorf("more than %d tools in one import", MaxTools)
		}
		if part = append(part, t); len(part) == cap(part) {
			if err := c.add(ctx, part); err != nil {
				return nil, err
			}
			part = part[:0]
		}
	}
	if err := c.add(ctx, part); err != nil {
		return nil, err
	}
	return c.end()
}

// add completes tools on all processors. Nearly all the work is the compilation of schemas.
func (c *completer) add(ctx context.Context, part []Tool) error {
	errs := make([]error, len(part))
	var workers errgroup.Group
	workers.SetLimit(runtime.GOMAXPROCS(0))
	for i := range part {
		workers.Go(func() error {
			if ctx.Err() == nil {
				part[i], errs[i] = newTool(part[i], &c.schemas)
			}
			return nil
		})
	}
	_ = workers.Wait() // no call returns an error
	if ctx.Err() != nil {
		return fmt.Errorf("reading the tools: %w", context.Cause(ctx))
	}
	for i, t := range part {
		c.read++
		if errs[i] != nil {
			c.batch.Refused++
			c.batch.warn("tool %d is refused: %v", c.read, errs[i])
			continue
		}
		if before, twice := c.last[t.ID]; twice {
			c.dropped[before] = true
			c.batch.warn("tool %q occurs twice; the later one is kept", t.ID)
		}
		c.last[t.ID] = len(c.batch.Tools)
		c.batch.Tools = append(c.batch.Tools, t)
	}
	return nil
}

// end returns the batch.
func (c *completer) end() (*Batch, error) {
	b := &c.batch
	at := -1
	b.Tools = slices.DeleteFunc(b.Tools, func(Tool) bool { at++; return c.dropped[at] })
	if len(b.Tools) == 0 && b.Refused > 0 {
		return nil, fmt.Errorf("no tool can be kept; %s; %s", b.Warnings[0], wanted)
	}
	if b.more > 0 {
		b.Warnings = append(b.Warnings, fmt.Sprintf("and %d more", b.more))
	}
	return b, nil
}

// schemaCache reads the schemas of an import. Equal schemas share their text and their
// parameters. It is safe for concurrent use.
type schemaCache struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]readSchema
	bytes int // size of the parameters of all tools
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
	key := sha256.Sum256(schema)
	c.mu.Lock()
	r, ok := c.known[key]
	full := c.bytes > maxReadBytes
	c.mu.Unlock()
	if full {
		return schema, nil, errParameters
	}
	if !ok {
		r.text = schema
		r.parameters, r.err = Parameters(schema)
		for _, p := range r.parameters {
			r.bytes += parameterBytes + len(p.Name) + len(p.Path) + len(p.Description)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= knownSchemas || c.known == nil {
		c.known = map[[sha256.Size]byte]readSchema{}
	}
	c.known[key] = r
	c.bytes += r.bytes // each tool is stored with its own copy
	return r.text, r.parameters, r.err
}
