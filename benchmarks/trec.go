package benchmarks

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// A run has three files: FILE in the format of TREC runs and FILE.qrels in that of TREC
// judgements, both for trec_eval, and FILE.jsonl with the other fields: the run on the first
// line, then one query per line.
//
//	query Q0 document rank score system
//	query 0 document grade
const (
	qrelsSuffix = ".qrels"
	sideSuffix  = ".jsonl"
)

// White space separates fields in trec_eval.
var (
	trecEscape   = strings.NewReplacer("%", "%25", " ", "%20", "\t", "%09", "\n", "%0A", "\r", "%0D", "\v", "%0B", "\f", "%0C")
	trecUnescape = strings.NewReplacer("%25", "%", "%20", " ", "%09", "\t", "%0A", "\n", "%0D", "\r", "%0B", "\v", "%0C", "\f")
)

// Write writes the run to file and the two files named after it.
func (r *Run) Write(file string) error {
	var run, qrels, side bytes.Buffer
	lines := json.NewEncoder(&side)
	lines.SetEscapeHTML(false)
	if err := lines.Encode(r); err != nil {
		return err
	}
	for i := range r.Queries {
		q := &r.Queries[i]
		if err := lines.Encode(q); err != nil {
			return err
		}
		id := trecEscape.Replace(q.ID)
		for _, d := range slices.Sorted(maps.Keys(q.Relevant)) {
			fmt.Fprintf(&qrels, "%s 0 %s %d\n", id, trecEscape.Replace(d), q.Relevant[d])
		}
		// trec_eval ignores ranks and sorts by 32-bit scores, so a score that is not less than the one
		// before it is lowered.
		last := float32(math.Inf(1))
		for i, d := range q.Ranking {
			if s := float32(d.Score); s < last {
				last = s
			} else {
				last = math.Nextafter32(last, float32(math.Inf(-1)))
			}
			fmt.Fprintf(&run, "%s Q0 %s %d %s %s\n", id, trecEscape.Replace(d.ID), i+1, strconv.FormatFloat(float64(last), 'g', -1, 32), strings.ReplaceAll(r.System, " ", "_"))
		}
	}
	for _, f := range []struct {
		name string
		text *bytes.Buffer
	}{{file, &run}, {file + qrelsSuffix, &qrels}, {file + sideSuffix, &side}} {
		if err := os.WriteFile(f.name, f.text.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// ReadRun reads a run. qrels is a file of judgements that replace those of the run; "" means
// none. A run of another system needs one, unless it has a file FILE.qrels.
func ReadRun(file, qrels string) (*Run, error) {
	r := &Run{}
	err := readSide(file+sideSuffix, r)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil && qrels == "" {
		qrels = file + qrelsSuffix
		if _, err := os.Stat(qrels); err != nil {
			return nil, fmt.Errorf("%s has no judgements: %s%s is missing, and no file of judgements is named", file, file, sideSuffix)
		}
	}
	if qrels != "" {
		if err := r.judge(qrels); err != nil {
			return nil, err
		}
	}
	return r, r.readRankings(file)
}

func readSide(file string, r *Run) error {
	first := true
	return readLines(file, func(line []byte) error {
		if first {
			first = false
			return json.Unmarshal(line, r)
		}
		var q RunQuery
		if err := json.Unmarshal(line, &q); err != nil {
			return err
		}
		if q.ID == "" {
			return errors.New("a query without id")
		}
		r.Queries = append(r.Queries, q)
		return nil
	})
}

// judge replaces the judgements by those of a file. Queries that it adds have no text.
func (r *Run) judge(file string) error {
	at := map[string]int{}
	for i := range r.Queries {
		at[r.Queries[i].ID], r.Queries[i].Relevant = i, Relevance{}
	}
	err := readQrels(file, func(query, document string, grade int) error {
		i, ok := at[query]
		if !ok {
			i = len(r.Queries)
			at[query] = i
			r.Queries = append(r.Queries, RunQuery{ID: query, Relevant: Relevance{}})
		}
		r.Queries[i].Relevant[document] = grade
		return nil
	})
	r.Queries = slices.DeleteFunc(r.Queries, func(q RunQuery) bool { return relevant(q.Relevant) == 0 })
	if err == nil && len(r.Queries) == 0 {
		err = fmt.Errorf("%s judges no document relevant", file)
	}
	r.Fingerprint.Data = ""
	return err
}

// readQrels calls judge with every judgement of a file in the format of TREC or of BEIR. A
// BEIR file begins with a header.
func readQrels(file string, judge func(query, document string, grade int) error) error {
	first := true
	return readLines(file, func(line []byte) error {
		header := first
		first = false
		var query, document, grade string
		if field := strings.Split(string(line), "\t"); len(field) == 3 {
			if header {
				return nil
			}
			query, document, grade = field[0], field[1], field[2]
		} else if field := strings.Fields(string(line)); len(field) == 4 {
			query, document, grade = trecUnescape.Replace(field[0]), trecUnescape.Replace(field[2]), field[3]
		} else if header {
			return nil
		} else {
			return fmt.Errorf("%d fields, want query-id, corpus-id and score, or the four of TREC", len(field))
		}
		n, err := strconv.Atoi(strings.TrimSpace(grade))
		if err != nil {
			return err
		}
		return judge(query, document, n)
	})
}

func (r *Run) byID() map[string]*RunQuery {
	at := map[string]*RunQuery{}
	for i := range r.Queries {
		at[r.Queries[i].ID] = &r.Queries[i]
	}
	return at
}

// readRankings reads the run's main file. Like trec_eval it sorts by score, then by document
// ID in descending order, and ignores ranks and queries without judgements.
func (r *Run) readRankings(file string) error {
	at := r.byID()
	seen := map[[2]string]bool{}
	err := readLines(file, func(line []byte) error {
		field := bytes.Fields(line)
		if len(field) != 6 {
			return fmt.Errorf("%d fields, want query, Q0, document, rank, score and system", len(field))
		}
		query, document := trecUnescape.Replace(string(field[0])), trecUnescape.Replace(string(field[2]))
		score, err := strconv.ParseFloat(string(field[4]), 64)
		if err != nil || math.IsNaN(score) || math.IsInf(score, 0) {
			return fmt.Errorf("the score %q is not a number", field[4])
		}
		if seen[[2]string{query, document}] {
			return fmt.Errorf("document %q stands twice for query %q", document, query)
		}
		seen[[2]string{query, document}] = true
		r.System = cmp.Or(r.System, string(field[5]))
		if q := at[query]; q != nil {
			q.Ranking = append(q.Ranking, Scored{document, score})
		}
		return nil
	})
	for i := range r.Queries {
		q := &r.Queries[i]
		slices.SortFunc(q.Ranking, func(a, b Scored) int {
			return cmp.Or(cmp.Compare(float32(b.Score), float32(a.Score)), strings.Compare(b.ID, a.ID))
		})
		q.Ranking = q.Ranking[:min(runDepth, len(q.Ranking))]
		q.explain(q.First, q.Best)
	}
	return err
}

// explain sets First and Best, with the components of their scores if they are among the known
// ones.
func (q *RunQuery) explain(known ...*Evidence) {
	q.First, q.Best = nil, nil
	for i, d := range q.Ranking {
		if i > 0 && q.Relevant[d.ID] <= 0 {
			continue
		}
		e := &Evidence{ID: d.ID, Rank: i + 1, Score: d.Score}
		if k := slices.IndexFunc(known, func(e *Evidence) bool { return e != nil && e.ID == d.ID }); k >= 0 {
			e = known[k]
		}
		if i == 0 {
			q.First = e
		}
		if q.Relevant[d.ID] > 0 {
			q.Best = e
			return
		}
	}
}

// maxLine bounds a line of a data file in bytes.
const maxLine = 32 << 20

// readLines calls fn with every line of a file that is not blank. The line is valid
// during the call. A name that ends with ".gz" is that of a compressed file.
func readLines(name string, fn func(line []byte) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := fn(lines.Bytes()); err != nil {
			return fmt.Errorf("%s:%d: %w", name, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return nil
}
