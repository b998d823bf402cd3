package connect

import (
	"bytes"
	_ "embed"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"cairn/internal/base/atomicfile"
)

// The lines around the block in a guide.
const (
	guideBegin = "<!-- cairn: begin; `cairn connect` writes this block and `cairn disconnect` removes it -->"
	guideEnd   = "<!-- cairn: end -->"
)

// guideText tells a model when to use cairn and when grep. NAME stands for the name of the
// server.
//
//go:embed guide.md
var guideText string

// cursorHead is the head of a rule file that Cursor passes to its model in every
// conversation.
const cursorHead = "---\ndescription: When to search with cairn and when with grep\nalwaysApply: true\n---\n\n"

// Guide returns the block for the server of that name.
func Guide(name string) string {
	return guideBegin + "\n" + strings.ReplaceAll(guideText, "NAME", name) + guideEnd + "\n"
}

// AddGuide plans the change that puts the block into the client's guide in root.
func (c Client) AddGuide(root, name string) (*Change, error) {
	return c.planGuide(root, func(f *Change) error {
		head := ""
		if filepath.Ext(f.Path) == ".mdc" {
			head = cursorHead
		}
		text, err := addBlock(f.Path, f.Old, head, Guide(name))
		f.New = atomicfile.LineEnds(f.Old, text)
		return err
	})
}

// DropGuide plans the change that removes the block. It removes a file that contains only
// what AddGuide writes to a new file.
func (c Client) DropGuide(root string) (*Change, error) {
	return c.planGuide(root, func(f *Change) error {
		text, err := removeBlock(f.Path, f.Old)
		f.New = text
		if err == nil && !bytes.Equal(text, f.Old) && (len(text) == 0 || strings.TrimSpace(string(text)) == strings.TrimSpace(cursorHead)) {
			f.New = nil
		}
		return err
	})
}

// Skill plans the change that writes cairn's skill into the workspace, nil if the client reads
// no skills. No text removes it. A file that is not as cairn has written it stays.
func (c Client) Skill(at File, text []byte) (*Change, error) {
	if c.skills == "" {
		return nil, nil
	}
	return plan(at.Root, filepath.Join(at.Root, c.skills, "skills", "cairn", "SKILL.md"), func(f *Change) (err error) {
		if f.record, err = openRecord(at.Copies, f.Path); err != nil {
			return err
		}
		if f.New = f.Old; f.Old == nil || sumOf(f.Old) == f.record.Wrote {
			f.New = text
		}
		f.record.Wrote, f.removes = sumOf(text), text == nil
		return nil
	})
}

// planGuide plans a change of the client's guide, nil if it has none. If the guide is a link
// to another file of the folder, such as CLAUDE.md to AGENTS.md, it plans the change of that
// file.
func (c Client) planGuide(root string, change func(*Change) error) (*Change, error) {
	if c.Guide == "" {
		return nil, nil
	}
	name, err := target(root, c.Guide)
	if err != nil {
		return nil, err
	}
	return plan(root, filepath.Join(root, filepath.FromSlash(name)), change)
}

// target returns the file in root to which name links. It returns name if name is not a
// link or links to a file elsewhere.
func target(root, name string) (string, error) {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	to, err := dir.Readlink(filepath.FromSlash(name))
	if err != nil || filepath.IsAbs(to) {
		return name, nil // not a link, or one that plan refuses
	}
	to = path.Join(path.Dir(name), filepath.ToSlash(to))
	if !filepath.IsLocal(filepath.FromSlash(to)) {
		return name, nil
	}
	info, err := dir.Lstat(filepath.FromSlash(to))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return name, nil
	}
	return to, err
}

// addBlock returns old with the block, which replaces an earlier block or is appended after
// a blank line. A new file begins with head.
func addBlock(path string, old []byte, head, block string) ([]byte, error) {
	from, to, err := findBlock(path, old)
	if err != nil {
		return nil, err
	}
	switch {
	case to > 0:
		if !bytes.HasSuffix(old[from:to], []byte("\n")) {
			block = strings.TrimSuffix(block, "\n")
		}
		return bytes.Join([][]byte{old[:from], []byte(block), old[to:]}, nil), nil
	case len(old) == 0:
		return []byte(head + block), nil
	case !bytes.HasSuffix(old, []byte("\n")):
		// Without a final newline removeBlock knows that old had none.
		return []byte(string(old) + "\n\n" + strings.TrimSuffix(block, "\n")), nil
	}
	return []byte(string(old) + "\n" + block), nil
}

// removeBlock returns old without the block and the newlines that addBlock added before it.
func removeBlock(path string, old []byte) ([]byte, error) {
	from, to, err := findBlock(path, old)
	if err != nil || to == 0 {
		return old, err
	}
	head, unended := old[:from], !bytes.HasSuffix(old[:to], []byte("\n"))
	if blank := cutNewline(head); len(blank) < len(head) && (bytes.HasSuffix(blank, []byte("\n")) || unended) {
		head = blank
	}
	if unended {
		head = cutNewline(head)
	}
	return append(bytes.Clone(head), old[to:]...), nil
}

// cutNewline returns text without one newline at its end.
func cutNewline(text []byte) []byte {
	text, _ = bytes.CutSuffix(text, []byte("\n"))
	return bytes.TrimSuffix(text, []byte("\r"))
}

// findBlock returns the offsets of the block, which ends after its last newline; 0, 0 if
// there is none.
func findBlock(path string, text []byte) (from, to int, err error) {
	unsuitable := func(reason string) (int, int, error) { return 0, 0, &UnsuitableError{path, reason} }
	if !utf8.Valid(text) {
		return unsuitable("it is not UTF-8")
	}
	begins, ends, at := 0, 0, 0
	for line := range bytes.Lines(text) {
		switch word := string(bytes.TrimRight(line, "\r\n")); {
		case strings.HasPrefix(word, "<!-- cairn: begin"):
			begins, from = begins+1, at
		case word == guideEnd:
			ends, to = ends+1, at+len(line)
		}
		at += len(line)
	}
	if begins == 0 && ends == 0 {
		return 0, 0, nil
	}
	if begins != 1 || ends != 1 || to <= from {
		return unsuitable("it does not contain exactly one block of cairn")
	}
	return from, to, nil
}
