package markdown

import (
	"bytes"
	"testing"
)

// AddFormat adds a row to the table until the end of the test: a file type whose sections
// begin with lines such as "@book{knuth,".
func AddFormat(t *testing.T, kind, extension string) {
	before := formats
	t.Cleanup(func() { formats, byExtension = before, mapFormats(before) })
	formats = append(before[:len(before):len(before)], &Format{Kind: kind, extensions: extension, parse: parseEntries})
	byExtension = mapFormats(formats)
}

func parseEntries(_ string, src []byte, body int) (out scanned) {
	for _, ln := range splitLines(src, body) {
		if entry, found := bytes.CutPrefix(ln.of(src), []byte("@")); found {
			_, key, _ := bytes.Cut(bytes.TrimRight(entry, ","), []byte("{"))
			out.head(heading{level: 1, text: string(key), id: string(key), start: ln.start})
		}
	}
	return out
}
