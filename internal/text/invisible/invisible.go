// Package invisible finds characters that are invisible or change the direction of text.
// With them a text can appear different to a person than to a model. The package does not
// remove them.
package invisible

import (
	"fmt"
	"slices"
)

// Flag reports that a text may contain hidden content.
type Flag struct {
	// Kind is a result of the function Kind.
	Kind string `json:"kind"`
	// Evidence is the code point found, such as "U+200B".
	Evidence string `json:"evidence"`
}

// Find returns a Flag for the first character of each kind. It ignores harmless ones: a
// joiner within an emoji and a byte order mark at the start.
func Find(text string) []Flag {
	var flags []Flag
	before := rune(-1)
	for _, r := range text {
		kind := Kind(r)
		harmless := r == '\u200d' && before > 0x2000 || r == '\ufeff' && before < 0
		before = r
		if kind == "" || harmless || slices.ContainsFunc(flags, func(f Flag) bool { return f.Kind == kind }) {
			continue
		}
		flags = append(flags, Flag{Kind: kind, Evidence: fmt.Sprintf("%U", r)})
	}
	return flags
}

// Kind returns the kind of an invisible character: "bidi", "zero-width" or "hidden". It
// returns "" for all other characters.
func Kind(r rune) string {
	switch {
	case r < 0xad:
		return ""
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x61c:
		return "bidi" // Unicode Standard Annex 9: embeddings, overrides, isolates, marks
	case r >= 0x200b && r <= 0x200d, r == 0x2060, r == 0xfeff, r == 0xad, r == 0x180e, r >= 0x2061 && r <= 0x2064:
		return "zero-width"
	case r >= 0xe0000 && r <= 0xe007f: // tags: a hidden copy of ASCII
		return "hidden"
	}
	return ""
}
