package docs

import (
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"

	"cairn/internal/store"
	"cairn/internal/store/kv"
)

// RefusedError reports an inconsistent document, which Put does not store.
type RefusedError struct{ Path, Reason string }

func (e *RefusedError) Error() string { return fmt.Sprintf("document %q: %s", e.Path, e.Reason) }

// Check reports whether Store.Put accepts the document. Readers slice the text by the
// document's offsets and name chunks by its anchors, so these must be consistent. The
// error is a *RefusedError unless the path is invalid.
func (p *Put) Check() error {
	d := &p.Document
	if err := checkPath(d.Path); err != nil {
		return err
	}
	wrong := func(format string, args ...any) error {
		return &RefusedError{Path: d.Path, Reason: fmt.Sprintf(format, args...)}
	}
	if !isHash(d.Hash) {
		return wrong("hash %q, want 64 lower-case hex digits", d.Hash)
	}
	if d.Size < 0 {
		return wrong("size %d is negative", d.Size)
	}
	anchors := make(map[string]bool, len(d.Sections))
	for i := range d.Sections {
		s := &d.Sections[i]
		switch {
		case s.Level < 0 || s.Level > 6:
			return wrong("section %d has level %d, want 0 to 6", i, s.Level)
		case s.Parent < -1 || s.Parent >= i:
			return wrong("section %d has parent %d, want -1 to %d", i, s.Parent, i-1)
		case s.Start < 0 || s.OwnEnd < s.Start || s.End < s.OwnEnd || s.End > len(p.Text):
			return wrong("section %d has extents %d, %d, %d in a text of %d bytes", i, s.Start, s.OwnEnd, s.End, len(p.Text))
		case s.StartLine < 0 || s.OwnEndLine < 0 || s.EndLine < 0:
			return wrong("section %d has a negative line", i)
		case !isHash(s.Hash):
			return wrong("section %d has hash %q, want 64 lower-case hex digits", i, s.Hash)
		case strings.Contains(s.Anchor, "#"):
			return wrong("section %d has anchor %q, which holds '#'", i, s.Anchor)
		case anchors[s.Anchor]:
			return wrong("two sections have the anchor %q", s.Anchor)
		}
		anchors[s.Anchor] = true
		for _, c := range s.Chunks {
			if c.Start < 0 || c.End < c.Start || c.End > len(p.Text) {
				return wrong("a chunk of section %d spans %d to %d in a text of %d bytes", i, c.Start, c.End, len(p.Text))
			}
			if !isFence(c.Fence) {
				return wrong("a chunk of section %d begins inside the fence %.20q, want 3 to %d backquotes or tildes", i, c.Fence, store.MaxFence)
			}
		}
	}
	return nil
}

func checkPath(path string) error {
	if !fs.ValidPath(path) || path == "." || len(path) > kv.MaxKey {
		return fmt.Errorf("document path %.200q, want a clean relative slash-separated one", path)
	}
	return nil
}

func isFence(s string) bool {
	if s == "" {
		return true
	}
	return 3 <= len(s) && len(s) <= store.MaxFence && (strings.Trim(s, "`") == "" || strings.Trim(s, "~") == "")
}

func isHash(s string) bool {
	if len(s) != 2*hashSize || strings.ToLower(s) != s {
		return false
	}
	_, err := hex.DecodeString(s)
	return err == nil
}
