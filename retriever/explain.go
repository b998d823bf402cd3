package retriever

// Explanation holds every component of a score, which is the sum of its Parts:
//
//	Score = VectorWeight·Vector + KeywordWeight·Keyword + Graph + Code + Rerank
//
// Vector is the mean of ChunkVector, the value of the document's best chunk, and
// BestVector, the maximum over all its chunks; Keyword likewise. For a document of
// one chunk, Score is the blend of that chunk.
type Explanation struct {
	BM25          float64 `json:"bm25"`    // raw, of the best chunk
	Keyword       float64 `json:"keyword"` // BM25 over the query's best, in [0, 1]
	ChunkKeyword  float64 `json:"chunk_keyword"`
	BestKeyword   float64 `json:"best_keyword"`
	KeywordRank   int     `json:"keyword_rank"` // of the best chunk, from 1
	Cosine        float64 `json:"cosine"`       // raw, of the best chunk, in [-1, 1]; 0 if it has no vector yet
	Vector        float64 `json:"vector"`       // cosine on the scale of the model, clipped to [0, 1]
	ChunkVector   float64 `json:"chunk_vector"`
	BestVector    float64 `json:"best_vector"`
	VectorRank    int     `json:"vector_rank"` // of the best chunk, from 1
	KeywordWeight float64 `json:"keyword_weight"`
	VectorWeight  float64 `json:"vector_weight"`
	Graph         float64 `json:"graph"` // bounded bonus from the co-usage graph; 0 without usage
	// Code is the change that follows from the kind of the document. Source code ranks below
	// documents in the answer to a question, and tests below other code. The definition of an
	// identifier ranks above its uses. See also aside.
	Code float64 `json:"code,omitempty"`
	// Logit is the re-ranker's logit of the document's best passage, nil if the
	// re-ranker read none. Rerank is the resulting change of the score.
	Logit  *float64 `json:"logit,omitempty"`
	Rerank float64  `json:"rerank,omitempty"`
	Score  float64  `json:"score"`
	Fusion string   `json:"fusion"` // always "linear"
	// Imputed is set if the chunk has no vector yet, so that Vector is estimated
	// from the keyword score.
	Imputed bool   `json:"imputed,omitempty"`
	Chunk   string `json:"chunk"` // best chunk

	unsure     bool // the text may not be a definition
	role       role
	named      int     // the line of the file that the query names, 0 for none
	aside      bool    // see the function aside
	codeWeight float64 // 0 if no candidate is code or aside
	floor      float64 // lowest score of a definition
}

// Part is one signal's part of a score: Weight·Value.
type Part struct {
	Name          string // "vector", "keyword", "graph", "code" or "rerank"
	Weight, Value float64
	// Raw is the value that Value was computed from, in Unit: "cosine", "bm25" or
	// "logit". Unit is "" for a signal without a raw value.
	Unit string
	Raw  float64
}

// Parts returns the parts of the score.
func (e *Explanation) Parts() (parts []Part) {
	e.each(func(p Part) { parts = append(parts, p) })
	return parts
}

// Recompute returns the sum of the parts.
func (e *Explanation) Recompute() (sum float64) {
	e.each(func(p Part) { sum += p.Weight * p.Value })
	return sum
}

// each calls visit with every part of the score. A new signal needs a field of Explanation
// and a call here; ranking, the explain command and the web pages use any part. each does
// not allocate, because ranking calls it for every candidate.
func (e *Explanation) each(visit func(Part)) {
	visit(Part{Name: "vector", Weight: e.VectorWeight, Value: e.Vector, Unit: "cosine", Raw: e.Cosine})
	visit(Part{Name: "keyword", Weight: e.KeywordWeight, Value: e.Keyword, Unit: "bm25", Raw: e.BM25})
	visit(Part{Name: "graph", Weight: 1, Value: e.Graph})
	if e.Code != 0 {
		visit(Part{Name: "code", Weight: 1, Value: e.Code})
	}
	if e.Logit != nil {
		visit(Part{Name: "rerank", Weight: 1, Value: e.Rerank, Unit: "logit", Raw: *e.Logit})
	}
}
