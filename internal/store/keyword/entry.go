package keyword

import (
	"strings"

	index "github.com/blevesearch/bleve_index_api"

	"cairn/internal/store"
	"cairn/internal/text/query"
)

// The fields of an indexed chunk. Fields other than textField hold exact strings.
const (
	textField     = "text"
	pathField     = "path" // the path and every folder above it, with a final slash
	tagField      = "tag"
	priorityField = "priority"
	assigneeField = "assignee"
)

var labelFields = [...]string{tagField, priorityField, assigneeField}

// lengthTerm is a term of every chunk. Its frequency is the length of the chunk plus 1; the
// average is computed from them. The analysis never yields an empty term.
const lengthTerm = ""

// The frequencies of a word in the body, in the title or a heading, and in the file's
// name, in units of half a word. Folder names are only used by filters; scoring them
// costs .013 nDCG@10 on k8s-docs. A score of weighted frequencies is BM25F (Robertson,
// Zaragoza, Taylor 2004) with the same b for all fields.
const (
	bodyFreq    = 2
	headingFreq = 4
	nameFreq    = 1
)

// positionGap separates the parts of a chunk, so that phrases do not cross from one part
// into the next.
const positionGap = 100

// Terms returns the weighted frequency of each scored term of an entry, and the length of
// the entry in words.
func Terms(e store.KeywordEntry) (freqs map[string]float64, length int) {
	t := newEntryTerms(e)
	freqs = make(map[string]float64, len(t.freqs))
	for term, f := range t.freqs {
		if term != lengthTerm && !query.IsStopWord(term) {
			freqs[term] = float64(f.Frequency()) / bodyFreq
		}
	}
	return freqs, t.length
}

// entryTerms collects the terms of one entry.
type entryTerms struct {
	freqs  index.TokenFrequencies
	length int
	pos    int // start of the next part
	code   bool
	block  int // number of terms to allocate at a time
	tfs    []index.TokenFreq
	words  []placed // in order
}

func newEntryTerms(e store.KeywordEntry) *entryTerms {
	a := analyzers.Get().(*analyzer)
	defer analyzers.Put(a)
	a.query = false
	size := len(e.Title) + len(e.Body)
	for _, h := range e.Trail {
		size += len(h)
	}
	t := &entryTerms{freqs: make(index.TokenFrequencies, len(e.Body)/12+8), block: min(64, 4+size/8), code: store.KindOf(e.Path) == store.Code}
	t.add(a.tokens(e.Title), headingFreq, true)
	prev := e.Title
	for _, h := range e.Trail {
		if h != prev { // the first heading usually is the title
			t.add(a.tokens(h), headingFreq, true)
		}
		prev = h
	}
	name := e.Path[strings.LastIndexByte(e.Path, '/')+1:]
	t.add(a.tokens(strings.TrimSuffix(name, extension(name))), nameFreq, false)
	t.add(a.tokens(e.Body), bodyFreq, true)
	t.freq(lengthTerm, t.length+1)
	return t
}

// extension returns the extension of a file name, such as ".md", or "". An extension
// tells nothing about the subject of a file.
func extension(name string) string {
	i := strings.LastIndexByte(name, '.')
	if i < 0 || len(name)-i > 9 || strings.ContainsRune(name[i:], ' ') {
		return ""
	}
	return name[i:]
}

// add adds the tokens of the next part with frequency freq. If counted, they count
// towards the length.
func (t *entryTerms) add(tokens []token, freq int, counted bool) {
	end := t.pos
	for _, tok := range tokens {
		n := freq
		switch tok.kind {
		case part:
			if !t.code {
				n = max(1, freq/2)
			}
		case whole:
			n = min(freq, bodyFreq)
		}
		t.freq(tok.term, n)
		if tok.kind == whole {
			continue
		}
		end = t.pos + tok.pos + 1
		if tok.kind == stop {
			continue // phrases skip stop words, whose positions would fill half the index
		}
		if counted && tok.kind != single {
			t.length++
		}
		t.words = append(t.words, placed{tok.term, end})
	}
	t.pos = end + positionGap
}

func (t *entryTerms) freq(term string, n int) {
	f := t.freqs[term]
	if f == nil {
		if len(t.tfs) == cap(t.tfs) {
			t.tfs = make([]index.TokenFreq, 0, t.block)
		}
		t.tfs = append(t.tfs, index.TokenFreq{Term: []byte(term)})
		f = &t.tfs[len(t.tfs)-1]
		t.freqs[term] = f
	}
	f.SetFrequency(f.Frequency() + n)
}

// document is an entry as scorch indexes it. It implements index.Document.
type document struct {
	entry      store.KeywordEntry
	fields     []*field
	fileFields []*field // fields that are the same for all chunks of the file
}

// newDocument returns the document for an entry. before is the previous document, or nil.
// If both belong to the same file, they share the fields of the file.
func newDocument(e store.KeywordEntry, before *document) *document {
	d := &document{entry: e}
	d.fields = append(make([]*field, 0, 6), &field{name: textField, entry: &d.entry, options: index.IndexField | index.StoreField})
	l := e.Labels
	if before != nil && before.entry.Path == e.Path && before.entry.Labels.Equal(l) {
		d.fileFields = before.fileFields
		d.fields = append(d.fields, d.fileFields...)
		return d
	}
	d.fileFields = append(d.fileFields, exactField(pathField, pathTerms(e.Path)))
	if l.Found { // otherwise no filter on labels matches
		for i, values := range [][]string{l.Tags, nonEmpty(l.Priority), nonEmpty(l.Assignee)} {
			if len(values) > 0 {
				d.fileFields = append(d.fileFields, exactField(labelFields[i], store.FoldAll(values...)))
			}
		}
	}
	d.fields = append(d.fields, d.fileFields...)
	return d
}

// pathTerms returns the path and each folder above it: "a/", "a/b/", "a/b/c.md".
func pathTerms(path string) []string {
	var terms []string
	for i := range len(path) {
		if path[i] == '/' {
			terms = append(terms, path[:i+1])
		}
	}
	return append(terms, path)
}

func (d *document) ID() string { return d.entry.Chunk }

// Size returns an estimate of the memory in use.
func (d *document) Size() int { return len(d.entry.Body) }

func (d *document) VisitFields(visit index.FieldVisitor) {
	for _, f := range d.fields {
		visit(f)
	}
}

func (d *document) VisitComposite(index.CompositeFieldVisitor) {}
func (d *document) HasComposite() bool                         { return false }
func (d *document) NumPlainTextBytes() uint64                  { return uint64(len(d.entry.Body)) }
func (d *document) StoredFieldsBytes() uint64                  { return 0 }
func (d *document) Indexed() bool                              { return true }

// AddIDField adds the field of the id. Scorch calls it once, before the analysis.
func (d *document) AddIDField() {
	f := exactField("_id", []string{d.entry.Chunk})
	f.value = []byte(d.entry.Chunk)
	f.options |= index.StoreField
	d.fields = append(d.fields, f)
}

// field is one field of a document. It implements index.Field.
type field struct {
	name    string
	options index.FieldIndexingOptions
	value   []byte
	entry   *store.KeywordEntry // of textField only: the entry to analyse
	freqs   index.TokenFrequencies
}

func exactField(name string, terms []string) *field {
	f := &field{name: name, options: index.IndexField, freqs: make(index.TokenFrequencies, len(terms))}
	for _, term := range terms {
		tf := &index.TokenFreq{Term: []byte(term)}
		tf.SetFrequency(1)
		f.freqs[term] = tf
	}
	return f
}

// Analyze analyses the text. Scorch calls it once per document, in a worker. It replaces the
// frequency bodyFreq, which most terms have, by 0: such a posting takes a byte less.
func (f *field) Analyze() {
	if f.entry != nil {
		t := newEntryTerms(*f.entry)
		f.freqs, f.value = t.freqs, t.sequence()
		for term, tf := range f.freqs {
			if tf.Frequency() == bodyFreq && term != lengthTerm {
				tf.SetFrequency(0)
			}
		}
	}
}

func (f *field) Name() string                                     { return f.name }
func (f *field) Value() []byte                                    { return f.value }
func (f *field) ArrayPositions() []uint64                         { return nil }
func (f *field) EncodedFieldType() byte                           { return 't' }
func (f *field) Options() index.FieldIndexingOptions              { return f.options }
func (f *field) AnalyzedLength() int                              { return 1 } // its byte in postings is unused
func (f *field) AnalyzedTokenFrequencies() index.TokenFrequencies { return f.freqs }
func (f *field) NumPlainTextBytes() uint64                        { return uint64(len(f.value)) }
