package benchmarks

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cairn/indexer"
	"cairn/internal/store"
)

// Adapter is a command that answers the queries of a set with another system. Its last
// argument is a folder with the files that docs/measure.md describes. White space in their
// identifiers is escaped, as in TREC files.
type Adapter struct {
	Name string
	// Command is the command, split at spaces.
	Command string
}

// ParseAdapter parses "name=command".
func ParseAdapter(s string) (Adapter, error) {
	name, command, ok := strings.Cut(s, "=")
	a := Adapter{strings.TrimSpace(name), strings.TrimSpace(command)}
	if !ok || a.Name == "" || a.Command == "" {
		return a, fmt.Errorf("adapter %q, want name=command", s)
	}
	return a, nil
}

// adapterFiles lists the files that an adapter writes. They are removed before a run.
var adapterFiles = []string{"run", "times.tsv", "system.json"}

// measureAdapters runs every adapter. dir is a folder for temporary files.
func (m *measurement) measureAdapters(ctx context.Context, dir string) error {
	if len(m.o.Adapters) == 0 {
		return nil
	}
	exchange := filepath.Join(dir, "exchange")
	if err := os.Mkdir(exchange, 0o700); err != nil {
		return err
	}
	if err := m.writeExchange(ctx, exchange, filepath.Join(dir, sourceFolder)); err != nil {
		return fmt.Errorf("writing the files for adapters: %w", err)
	}
	for i, a := range m.o.Adapters {
		show(m.o.Progress, a.Name+" searches", i, len(m.o.Adapters))
		run, err := m.runAdapter(ctx, a, exchange)
		if err != nil {
			return fmt.Errorf("adapter %s: %w", a.Name, err)
		}
		m.add(run, a.Command)
	}
	return nil
}

// writeExchange writes the files that adapters read.
func (m *measurement) writeExchange(ctx context.Context, dir, source string) error {
	files := map[string]*bytes.Buffer{}
	var failed error
	add := func(name string, v any) {
		if files[name] == nil {
			files[name] = &bytes.Buffer{}
		}
		if vector, ok := v.([]float32); ok {
			failed = cmp.Or(failed, binary.Write(files[name], binary.LittleEndian, vector))
		} else {
			failed = cmp.Or(failed, json.NewEncoder(files[name]).Encode(v))
		}
	}
	d := m.o.Embedder.Description()
	add("set.json", map[string]any{"documents": source, "dimension": d.Dimension, "model": d.ID, "depth": runDepth})
	vectors, ok := m.stores.Vectors.(interface {
		Vectors(context.Context, []string) ([][]float32, error)
	})
	if !ok {
		return errors.New("the vector store does not give its vectors") // unreachable: it is a flat store
	}
	chunker, err := indexer.NewChunker(m.o.Embedder, nil)
	if err != nil {
		return err
	}
	for _, document := range m.set.documents {
		id, path := trecEscape.Replace(document.ID), m.paths[document.ID]
		add("files.jsonl", map[string]string{"document": id, "path": path})
		doc, err := m.stores.Docs.Document(path)
		if err != nil {
			return err
		}
		if doc == nil {
			continue // an empty document is not indexed
		}
		text, _, err := m.stores.Docs.Text(path)
		if err != nil {
			return err
		}
		var names []string
		for i := range doc.Sections {
			for n := range doc.Sections[i].Chunks {
				names = append(names, store.ChunkID(path, doc.Sections[i].Anchor, n))
				add("passages.jsonl", map[string]string{"document": id, "text": chunker.EmbedText(doc, i, n, string(text))})
			}
		}
		all, err := vectors.Vectors(ctx, names)
		if err != nil {
			return err
		}
		for i, v := range all {
			if v == nil {
				return fmt.Errorf("%s has no vector", names[i])
			}
			add("passages.f32", v)
		}
	}
	for _, q := range m.set.queries {
		start := time.Now()
		v, err := m.o.Embedder.EmbedQuery(ctx, strings.TrimSpace(q.Text))
		if err != nil {
			return err
		}
		add("queries.jsonl", map[string]any{"query": trecEscape.Replace(q.ID), "text": strings.TrimSpace(q.Text), "embed_ms": milliseconds(time.Since(start))})
		add("queries.f32", v)
	}
	for name, text := range files {
		failed = cmp.Or(failed, os.WriteFile(filepath.Join(dir, name), text.Bytes(), 0o600))
	}
	return failed
}

// runAdapter runs one adapter and reads its files.
func (m *measurement) runAdapter(ctx context.Context, a Adapter, dir string) (*Run, error) {
	for _, name := range adapterFiles {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	words := append(strings.Fields(a.Command), dir)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	if out, err := cmd.CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return nil, fmt.Errorf("%s: %w: %s", a.Command, err, strings.Join(lines[max(0, len(lines)-5):], "\n"))
	}
	run := &Run{System: a.Name}
	for _, q := range m.set.queries {
		q.Text = strings.TrimSpace(q.Text)
		run.Queries = append(run.Queries, q)
	}
	if err := run.readRankings(filepath.Join(dir, "run")); err != nil {
		return nil, err
	}
	var system struct {
		Program string  `json:"program"`
		Seconds float64 `json:"index_seconds"`
	}
	text, err := os.ReadFile(filepath.Join(dir, "system.json"))
	if err == nil {
		err = json.Unmarshal(text, &system)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading system.json: %w", err)
	}
	run.Fingerprint.Program = cmp.Or(system.Program, a.Name)
	if system.Seconds > 0 {
		run.Index = &IndexReport{Seconds: system.Seconds}
	}
	return run, run.readTimes(filepath.Join(dir, "times.tsv"))
}

// readTimes reads the times of queries, if the file exists.
func (r *Run) readTimes(file string) error {
	at := r.byID()
	err := readLines(file, func(line []byte) error {
		query, text, _ := strings.Cut(string(line), "\t")
		ms, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || !(ms >= 0) {
			return fmt.Errorf("want a query, a tab, and milliseconds")
		}
		if q := at[trecUnescape.Replace(query)]; q != nil {
			q.Milliseconds = ms
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
