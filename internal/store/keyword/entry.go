package keyword

import (
	"strings"

	index "github.com/blevesearch/bleve_index_api"

	"cairn/internal/query"
	"cairn/internal/store"
)

// The fields of an indexed chunk. All but textField hold exact strings.
const (
	textField     = "text"
	pathField     = "path" // the path and every folder above it, with its slash
	tagField      = "tag"
	priorityField = "priority"
	assigneeField = "assignee"
)

// Every chunk holds lengthTerm. Its postings list the lengths of the chunks, from
// which the average is computed. No analysis yields an empty term.
const lengthTerm = ""

// Frequencies are kept in halves of a word: a word of the body has bodyFreq,
// one of the title or a heading above it headingFreq, one of the file's name
// nameFreq. Only the filter looks at folder names; scoring them cost k8s-docs .013
// nDCG@10. One score over weighted frequencies is BM25F (Robertson,
// Zaragoza, Taylor 2004) with one b for all fields.
const (
	bodyFreq    = 2
	headingFreq = 4
	nameFreq    = 1
)

// positionGap keeps phrases from running on from one part of a chunk into the next.
const positionGap = 100

// Terms returns the weighted frequency of each scored term of an entry, and the
// entry's length in words. A store of sparse vectors that uses them ranks as Index
// does.
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

// entryTerms gathers the terms of one entry.
type entryTerms struct {
	freqs  index.TokenFrequencies
	length int
	pos    int // where the next part begins
	block  int // terms allocated at a time
	tfs    []index.TokenFreq
	locs   []index.TokenLocation
}

func newEntryTerms(e store.KeywordEntry) *entryTerms {
	a := analyzers.Get().(*analyzer)
	defer analyzers.Put(a)
	a.query = false
	size := len(e.Title) + len(e.Body)
	for _, h := range e.Trail {
		size += len(h)
	}
	t := &entryTerms{freqs: make(index.TokenFrequencies, len(e.Body)/12+8), block: min(64, 4+size/8)}
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
	t.freq(lengthTerm, 1)
	return t
}

// extension returns a file name's type, such as ".md", which says nothing about
// the content, or "".
func extension(name string) string {
	i := strings.LastIndexByte(name, '.')
	if i < 0 || len(name)-i > 9 || strings.ContainsRune(name[i:], ' ') {
		return ""
	}
	return name[i:]
}

// add counts tokens, each freq times, at positions after those already counted.
// They count towards the length if long is true.
func (t *entryTerms) add(tokens []token, freq int, long bool) {
	end := t.pos
	for _, tok := range tokens {
		n := freq
		switch tok.kind {
		case part:
			n = max(1, freq/2)
		case whole:
			n = min(freq, bodyFreq)
		}
		f := t.freq(tok.term, n)
		if tok.kind == whole {
			continue
		}
		end = t.pos + tok.pos + 1
		if tok.kind == stop {
			continue // phrases skip stop words: their positions would fill half the index
		}
		if long && tok.kind != single {
			t.length++
		}
		if len(t.locs) == cap(t.locs) {
			t.locs = make([]index.TokenLocation, 0, t.block) // pointers into the old block stay valid
		}
		t.locs = append(t.locs, index.TokenLocation{Position: end})
		f.Locations = append(f.Locations, &t.locs[len(t.locs)-1])
	}
	t.pos = end + positionGap
}

func (t *entryTerms) freq(term string, n int) *index.TokenFreq {
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
	return f
}

// document is an entry as scorch indexes it. It implements index.Document.
type document struct {
	entry      store.KeywordEntry
	fields     []*field
	fileFields []*field // those that all chunks of the file have
}

// newDocument returns the document of an entry. It shares the fields of the file with
// before, the document of another chunk or nil, if that is of the same file.
func newDocument(e store.KeywordEntry, before *document) *document {
	d := &document{entry: e}
	d.fields = append(make([]*field, 0, 6), &field{name: textField, entry: &d.entry, options: index.IndexField | index.IncludeTermVectors})
	l := e.Labels
	if before != nil && before.entry.Path == e.Path && before.entry.Labels.Equal(l) {
		d.fileFields = before.fileFields
		d.fields = append(d.fields, d.fileFields...)
		return d
	}
	d.fileFields = append(d.fileFields, exactField(pathField, pathTerms(e.Path)))
	if l.Found { // without front matter no label filter matches
		if len(l.Tags) > 0 {
			d.fileFields = append(d.fileFields, exactField(tagField, store.FoldAll(l.Tags...)))
		}
		if l.Priority != "" {
			d.fileFields = append(d.fileFields, exactField(priorityField, store.FoldAll(l.Priority)))
		}
		if l.Assignee != "" {
			d.fileFields = append(d.fileFields, exactField(assigneeField, store.FoldAll(l.Assignee)))
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

// Size estimates the memory in use for scorch.
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

// AddIDField is called once by scorch before the analysis.
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
	entry   *store.KeywordEntry // of textField: analysed when scorch asks
	freqs   index.TokenFrequencies
	length  int
}

func exactField(name string, terms []string) *field {
	f := &field{name: name, options: index.IndexField, freqs: make(index.TokenFrequencies, len(terms)), length: len(terms)}
	for _, term := range terms {
		tf := &index.TokenFreq{Term: []byte(term)}
		tf.SetFrequency(1)
		f.freqs[term] = tf
	}
	return f
}

// Analyze is called from scorch's analysis workers, once a document.
func (f *field) Analyze() {
	if f.entry != nil {
		t := newEntryTerms(*f.entry)
		f.freqs, f.length = t.freqs, t.length
	}
}

func (f *field) Name() string                                     { return f.name }
func (f *field) Value() []byte                                    { return f.value }
func (f *field) ArrayPositions() []uint64                         { return nil }
func (f *field) EncodedFieldType() byte                           { return 't' }
func (f *field) Options() index.FieldIndexingOptions              { return f.options }
func (f *field) AnalyzedLength() int                              { return f.length }
func (f *field) AnalyzedTokenFrequencies() index.TokenFrequencies { return f.freqs }
func (f *field) NumPlainTextBytes() uint64                        { return uint64(len(f.value)) }
