package workspace

// The names of the files of an index.
const (
	documentsFile = "documents.db"
	keywordFolder = "keywords"
	vectorFolder  = "vectors"
	asideSuffix   = ".damaged"
)
