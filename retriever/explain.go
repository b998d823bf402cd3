package retriever

// Explanation holds every component of a score; they add up:
// Score = VectorWeight·Vector + KeywordWeight·Keyword + Graph.
type Explanation struct {
	BM25          float64 `json:"bm25"`    // raw, of the best chunk
	Keyword       float64 `json:"keyword"` // BM25 over the query's best, in [0, 1]
	Cosine        float64 `json:"cosine"`  // raw, in [-1, 1]
	Vector        float64 `json:"vector"`  // cosine clipped to [0, 1]
	KeywordWeight float64 `json:"keyword_weight"`
	VectorWeight  float64 `json:"vector_weight"`
	Graph         float64 `json:"graph"` // bounded bonus of the co-usage graph; 0 when it is cold
	Score         float64 `json:"score"`
	Chunk         string  `json:"chunk"` // the chunk these values belong to
}
