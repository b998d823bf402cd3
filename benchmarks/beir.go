package benchmarks

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// beirDocument is a line of corpus.jsonl.
type beirDocument struct {
	ID    string `json:"_id"`
	Title string `json:"title"`
	Text  string `json:"text"`
	path  string // of its file; "" means one derived from the ID
}

// beirSet is a retrieval set in BEIR's layout: corpus.jsonl, queries.jsonl and
// qrels/SPLIT.tsv (Thakur et al., NeurIPS 2021).
type beirSet struct {
	documents []beirDocument
	queries   []RunQuery // those with a relevant document, in the order of the judgements; their texts are not trimmed
}

// readBEIR reads one split of the set in folder dir. If several documents have the same ID,
// the last is used.
func readBEIR(dir, split string) (*beirSet, error) {
	set := &beirSet{}
	at := map[string]int{}
	err := readLines(filepath.Join(dir, "corpus.jsonl"), func(line []byte) error {
		var d beirDocument
		if err := json.Unmarshal(line, &d); err != nil {
			return err
		}
		if d.ID == "" {
			return errors.New("a document without _id")
		}
		if i, ok := at[d.ID]; ok {
			set.documents[i] = d
			return nil
		}
		at[d.ID] = len(set.documents)
		set.documents = append(set.documents, d)
		return nil
	})
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	err = readLines(filepath.Join(dir, "queries.jsonl"), func(line []byte) error {
		var q struct {
			ID   string `json:"_id"`
			Text string `json:"text"`
		}
		if err := json.Unmarshal(line, &q); err != nil {
			return err
		}
		texts[q.ID] = q.Text
		return nil
	})
	if err != nil {
		return nil, err
	}
	judged := map[string]int{}
	err = readQrels(filepath.Join(dir, "qrels", split+".tsv"), func(query, document string, grade int) error {
		text, ok := texts[query]
		if !ok && grade > 0 {
			return fmt.Errorf("query %q is not in queries.jsonl", query)
		}
		i, ok := judged[query]
		switch {
		case grade <= 0:
			return nil
		case !ok:
			i = len(set.queries)
			judged[query] = i
			set.queries = append(set.queries, RunQuery{ID: query, Text: text, Relevant: Relevance{}})
		}
		set.queries[i].Relevant[document] = grade
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(set.documents) == 0 || len(set.queries) == 0 {
		return nil, fmt.Errorf("%s has %d documents and %d judged queries for split %q", dir, len(set.documents), len(set.queries), split)
	}
	return set, nil
}

// markdown returns the content of the document's file: its text, with its title in the front
// matter. It does not change a text whose front matter has a title.
func (d *beirDocument) markdown() string {
	title, _ := json.Marshal(d.Title) // a JSON string is a YAML string, and strings marshal
	line := "title: " + string(title) + "\n"
	rest, ok := strings.CutPrefix(d.Text, "---\n")
	switch end := strings.Index("\n"+rest, "\n---"); {
	case d.Title == "":
		return d.Text
	case !ok || end < 0:
		return "---\n" + line + "---\n\n" + d.Text
	case strings.HasPrefix(rest, "title:") || strings.Contains(rest[:end], "\ntitle:"):
		return d.Text
	default:
		return "---\n" + line + rest
	}
}
