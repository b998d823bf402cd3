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
		m.o.Measured(a.Name, i, len(m.o.Adapters))
		run, err := m.runAdapter(ctx, a, exchange)
		if err != nil {
			return fmt.Errorf("adapter %s: %w", a.Name, err)
		}
		m.add(run, a.Command)
	}
	return nil
}

// jsonl builds a file with one JSON value per line.
type jsonl struct {
	bytes.Buffer
	err error
}

func (j *jsonl) add(v any) {
	line, err := json.Marshal(v)
	j.err = cmp.Or(j.err, err)
	j.Write(append(line, '\n'))
}

// writeExchange writes the files that adapters read.
func (m *measurement) writeExchange(ctx context.Context, dir, source string) error {
	var set, files, passages, queries jsonl
	var passageVectors, queryVectors bytes.Buffer
	d := m.o.Embedder.Description()
	set.add(map[string]any{"documents": source, "dimension": d.Dimension, "model": d.ID, "depth": runDepth})
	vectors, ok := m.stores.Vectors.(interface {
		Vectors(context.Context, []string) ([][]float32, error)
	})
	if !ok {
		return errors.New("the vector store does not give its vectors") // unreachable: it is a flat store
	}
	chunker := indexer.NewChunker(d, m.o.Embedder.Tokenizer(), nil)
	for _, document := range m.set.documents {
		id, path := trecEscape.Replace(document.ID), m.paths[document.ID]
		files.add(map[string]string{"document": id, "path": path})
		var names []string
		err := m.eachChunk(path, func(doc *store.Document, section, n int, text string) {
			names = append(names, store.ChunkID(path, doc.Sections[section].Anchor, n))
			passages.add(map[string]string{"document": id, "text": chunker.EmbedText(doc, section, n, text)})
		})
		if err != nil {
			return err
		}
		all, err := vectors.Vectors(ctx, names)
		if err != nil {
			return err
		}
		for i, v := range all {
			if v == nil {
				return fmt.Errorf("%s has no vector", names[i])
			}
			_ = binary.Write(&passageVectors, binary.LittleEndian, v) // a buffer returns no error
		}
	}
	for _, q := range m.set.queries {
		start := time.Now()
		v, err := m.o.Embedder.EmbedQuery(ctx, strings.TrimSpace(q.Text))
		if err != nil {
			return err
		}
		queries.add(map[string]any{"query": trecEscape.Replace(q.ID), "text": strings.TrimSpace(q.Text), "embed_ms": float64(time.Since(start).Microseconds()) / 1000})
		_ = binary.Write(&queryVectors, binary.LittleEndian, v)
	}
	if err := errors.Join(set.err, files.err, passages.err, queries.err); err != nil {
		return err
	}
	for name, text := range map[string]*bytes.Buffer{"set.json": &set.Buffer, "files.jsonl": &files.Buffer, "passages.jsonl": &passages.Buffer,
		"passages.f32": &passageVectors, "queries.jsonl": &queries.Buffer, "queries.f32": &queryVectors} {
		if err := os.WriteFile(filepath.Join(dir, name), text.Bytes(), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// eachChunk calls fn with every chunk of a document. A document that is not indexed, such as
// an empty one, has none.
func (w *bench) eachChunk(path string, fn func(doc *store.Document, section, n int, text string)) error {
	doc, err := w.stores.Docs.Document(path)
	if err != nil || doc == nil {
		return err
	}
	text, _, err := w.stores.Docs.Text(path)
	if err != nil {
		return err
	}
	for i := range doc.Sections {
		for n := range doc.Sections[i].Chunks {
			fn(doc, i, n, string(text))
		}
	}
	return nil
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
		return nil, fmt.Errorf("%s: %w: %s", a.Command, err, lastLines(string(out), 5))
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

// lastLines returns the last n lines of a program's output.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
