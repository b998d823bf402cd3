package markdown

import "slices"

// Section is a heading with the text below it. Its own text ends before the next heading
// of any level; the whole section ends before the next heading of the same or a higher
// level. Offsets are bytes into the file, half-open. Lines are numbered from 1, inclusive
// at both ends.
type Section struct {
	// Level is 1 to 6, or 0 for text before the first heading.
	Level int
	// Heading is the heading's plain text; empty at level 0.
	Heading string
	// Anchor is the GitHub slug, unique in the document; empty only at level 0.
	Anchor string
	// Trail lists the headings from the outermost to this one.
	Trail []string
	// Parent is the index of the enclosing section in the sections of the document, or -1.
	Parent int
	// Start is the offset of the heading, OwnEnd the end of the section's own text, and
	// End the end of the whole section.
	Start, OwnEnd, End int
	// StartLine is the line of the heading. OwnEndLine and EndLine are the last lines
	// before OwnEnd and End that are not blank.
	StartLine, OwnEndLine, EndLine int
	// Hash is the SHA-256, in hex, of text[Start:End] without leading and trailing blank
	// lines, which is the text that read_doc returns for the anchor.
	Hash string
	// Fingerprint is a 64-bit simhash of the words of the own text. Near-duplicates
	// differ in few bits.
	Fingerprint uint64
	// Chunks are the pieces of the own text that are indexed, in order.
	Chunks []Chunk
}

// Chunk is a piece of a section's own text, short enough for the encoder together
// with its heading trail.
type Chunk struct {
	// Start and End are byte offsets into the file.
	Start, End int
	// Fence is the mark, such as "```", of the fenced code block that contains Start, or
	// "" if there is none.
	Fence string `json:",omitempty"`
}

// MaxFence is the maximum length of Chunk.Fence.
const MaxFence = 64

// Labels are the front-matter fields that a search can filter by.
type Labels struct {
	// Found reports whether the file has valid front matter. If not, it does not match
	// any filter on labels.
	Found    bool
	Tags     []string
	Priority string
	Assignee string
	Status   string
}

// Equal reports whether l and o are equal.
func (l Labels) Equal(o Labels) bool {
	return l.Found == o.Found && l.Priority == o.Priority && l.Assignee == o.Assignee && l.Status == o.Status && slices.Equal(l.Tags, o.Tags)
}
