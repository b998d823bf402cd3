package retriever

// Explanation holds every component of a score; they add up:
//
//	Score = VectorWeight·Vector + KeywordWeight·Keyword + Graph
//
// Vector is the mean of ChunkVector, the value of the document's best chunk, and
// BestVector, the highest of all its chunks; Keyword likewise. For a document of
// one chunk Score is the plain blend of the chunk. With fusion "rsf" the components are rescaled per leg;
// with "rrf"
//
//	Score = (VectorWeight/(60+VectorRank) + KeywordWeight/(60+KeywordRank))·61 + Graph
//
// where a leg whose rank is 0 (absent) adds nothing.
type Explanation struct {
	BM25          float64 `json:"bm25"`    // raw, of the best chunk
	Keyword       float64 `json:"keyword"` // BM25 over the query's best, in [0, 1]
	ChunkKeyword  float64 `json:"chunk_keyword"`
	BestKeyword   float64 `json:"best_keyword"`
	KeywordRank   int     `json:"keyword_rank"` // of the best chunk, from 1
	Cosine        float64 `json:"cosine"`       // raw, of the best chunk, in [-1, 1]; 0 when it has no vector yet
	Vector        float64 `json:"vector"`       // cosine clipped to [0, 1]
	ChunkVector   float64 `json:"chunk_vector"`
	BestVector    float64 `json:"best_vector"`
	VectorRank    int     `json:"vector_rank"` // of the best chunk, from 1
	KeywordWeight float64 `json:"keyword_weight"`
	VectorWeight  float64 `json:"vector_weight"`
	Graph         float64 `json:"graph"` // bounded bonus of the co-usage graph; 0 when it is cold
	Score         float64 `json:"score"`
	Fusion        Fusion  `json:"fusion"`
	// Imputed is set when the chunk has no vector yet and Vector is an
	// estimate from its keyword score.
	Imputed bool   `json:"imputed,omitempty"`
	Chunk   string `json:"chunk"` // the chunk these values belong to
	// Embedded is the text that was embedded, where that is not the whole query:
	// the query without a leading "why can't I".
	Embedded string `json:"embedded,omitempty"`
}

// Recompute returns the score that the components add up to.
func (e *Explanation) Recompute() float64 {
	if e.Fusion == RRF {
		return fuseRanks(e.VectorWeight, e.KeywordWeight, e.VectorRank, e.KeywordRank) + e.Graph
	}
	return e.VectorWeight*e.Vector + e.KeywordWeight*e.Keyword + e.Graph
}
