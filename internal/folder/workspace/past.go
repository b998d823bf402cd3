package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cairn/internal/folder/history"
	"cairn/internal/folder/index"
	"cairn/internal/text/git"
	"cairn/internal/text/markdown"
	"cairn/internal/text/walk"
	"cairn/retriever"
)

// Limits of Past.Changes.
const (
	maxOlder     = 20_000           // commits that the earlier one contains
	changesLimit = 10 * time.Second // of reading commits
)

// Past is the main folder as a commit has it. It reads only documents that the folder has
// today and that the index does not leave out, with secrets masked.
type Past struct {
	t          *Tasks
	repository *git.Repository
	root       string
	commit     *git.Commit
}

// At opens the folder at a commit: see git.Repository.Named. The caller closes it.
func (t *Tasks) At(ref string) (*Past, error) {
	p := &Past{t: t, root: t.tree.Roots()[0].Dir}
	var err error
	if p.repository, err = git.Open(p.root); errors.Is(err, git.ErrNone) {
		return nil, fmt.Errorf("%s is not the top of a git repository", p.root)
	}
	if err == nil {
		if p.commit, err = p.repository.Named(ref); err != nil {
			p.Close()
		}
	}
	return p, err
}

// Close closes the repository.
func (p *Past) Close() { p.repository.Close() }

// check returns the path of a document in the main folder, if the index has it today.
func (p *Past) check(ctx context.Context, path string) (string, error) {
	root, rel, err := p.t.tree.Dir(path)
	if err == nil && root != p.root {
		err = errors.New("it is in another folder than the repository")
	}
	if err != nil {
		return "", fmt.Errorf("%.200q: %w", path, err)
	}
	err = p.t.selected(ctx, p.t.indexed, rel)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%.200q is not a document of the index; the documents of today can be read at an earlier commit", path)
	}
	return rel, err
}

// at returns the text of a document that check accepts, in a commit. Its name was name.
func (p *Past) at(commit *git.Commit, path, name string) ([]byte, int, error) {
	h, ok, err := p.repository.Find(commit, name)
	if err == nil && !ok {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, 0, err
	}
	data, err := p.repository.Blob(h)
	if err != nil {
		return nil, 0, err
	}
	if int64(len(data)) > markdown.MaxSize(path) {
		return nil, 0, walk.ErrSize
	}
	text, masked, err := markdown.TextOf(path, data, p.t.masks)
	if reason := walk.Check(text); err == nil && reason != walk.None {
		err = fmt.Errorf("the index leaves such text out: %v", reason)
	}
	return text, masked, err
}

// Read returns a document, a section (path#anchor) or lines (path:from-to).
func (p *Past) Read(ctx context.Context, place string) (*retriever.Reading, error) {
	path, anchor, from, to, err := markdown.SplitPlace(place, func(path string) bool { _, _, err := p.at(p.commit, path, path); return err == nil })
	if err != nil {
		return nil, fmt.Errorf("%.200q names no lines: want a range from 1", place)
	}
	path, err = p.check(ctx, path)
	if err != nil {
		return nil, err
	}
	text, masked, err := p.at(p.commit, path, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("commit %.12s has no %.200q", p.commit.Hash, path)
	}
	if err != nil {
		return nil, fmt.Errorf("%.200q: %w", path, err)
	}
	out, err := retriever.ReadText(path, text, anchor, from, to)
	if err != nil {
		return nil, fmt.Errorf("commit %.12s: %w", p.commit.Hash, err)
	}
	out.Masked = masked
	return out, nil
}

// Search answers a query by the words of the documents of the commit. It makes a temporary
// index of them.
func (p *Past) Search(ctx context.Context, w *Workspace, q retriever.Query) (*retriever.Answer, error) {
	dir, err := os.MkdirTemp("", "cairn-at-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	source := filepath.Join(dir, "documents")
	if err := p.copy(ctx, source); err != nil {
		return nil, err
	}
	model, err := w.options.Model()
	if err != nil {
		return nil, err
	}
	return index.SearchFolder(ctx, source, filepath.Join(dir, "index"), model, w.Config(), q)
}

// copy writes the documents of the commit that check accepts and that are text to a folder.
func (p *Past) copy(ctx context.Context, folder string) error {
	files, err := p.repository.Files(p.commit)
	if err == nil {
		err = os.Mkdir(folder, 0o700)
	}
	if err != nil {
		return err
	}
	return p.t.tree.Walk(ctx, p.t.indexed, func(e walk.Entry) error {
		root, rel, err := p.t.tree.Dir(e.Path)
		if err != nil || e.Reason != walk.None || e.Dir || root != p.root || files[rel] == (git.Hash{}) || markdown.FormatOf(rel).Converted() {
			return nil
		}
		text, _, err := p.at(p.commit, rel, rel)
		if err != nil {
			return nil // such as one that is too large
		}
		if err := os.MkdirAll(filepath.Join(folder, filepath.Dir(filepath.FromSlash(rel))), 0o700); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(folder, filepath.FromSlash(rel)), text, 0o600)
	})
}

// SectionPlace is a section of a document; an empty Anchor means the whole document.
type SectionPlace struct{ Path, Anchor string }

// SectionChange is a section that differs from an earlier commit, with the commits since
// then that changed it, the newest first.
type SectionChange struct {
	Path   string `json:"path"`
	Anchor string `json:"anchor"`
	// Added reports that the earlier commit has no such section, Uncommitted that the
	// section differs from the last commit.
	Added       bool             `json:"added,omitempty"`
	Uncommitted bool             `json:"uncommitted,omitempty"`
	Commits     []history.Commit `json:"commits"`
	text        string           // of today
	name        string           // of the document, in the commit before those that were visited
	seen        map[git.Hash]string
}

// SectionChanges is the answer of Past.Changes.
type SectionChanges struct {
	Since    string           `json:"since"` // hash
	Sections []*SectionChange `json:"sections"`
	// Complete reports that all commits since then were read.
	Complete bool `json:"complete"`
}

// Changes returns which of the sections differ from the commit of p, in their order. It
// follows documents that were moved. Sections that do not exist today are not found.
func (p *Past) Changes(ctx context.Context, places []SectionPlace) (*SectionChanges, error) {
	out := &SectionChanges{Since: p.commit.Hash.String(), Complete: true}
	var all []*SectionChange
	for _, place := range places {
		path, err := p.check(ctx, place.Path)
		if err != nil {
			continue // removed since the search, or in another folder
		}
		data, _, err := p.t.files.Read(path)
		if err != nil {
			continue
		}
		text, _, err := markdown.TextOf(path, data, p.t.masks)
		if err != nil {
			continue
		}
		all = append(all, &SectionChange{Path: path, Anchor: place.Anchor, text: sectionText(path, place.Anchor, text), name: path, Commits: []history.Commit{}})
	}
	limited, cancel := context.WithTimeout(ctx, changesLimit)
	defer cancel()
	head, err := p.repository.Named("HEAD")
	if err == nil {
		for _, s := range all {
			s.Uncommitted = p.section(s, head, s.name) != s.text
		}
		err = p.since(limited, head, all)
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		out.Complete, err = false, nil
	}
	for _, s := range all {
		before := p.section(s, p.commit, s.name)
		if s.Added = before == ""; before != s.text {
			out.Sections = append(out.Sections, s)
		}
	}
	return out, err
}

// since adds the commits from the commit of p to head.
func (p *Past) since(ctx context.Context, head *git.Commit, all []*SectionChange) error {
	older := map[git.Hash]bool{}
	never := func(git.Hash) bool { return false }
	err := p.repository.Walk(ctx, []git.Hash{p.commit.Hash}, never, func(c *git.Commit) (bool, error) {
		older[c.Hash] = true
		return len(older) < maxOlder, nil
	})
	if err != nil {
		return err
	}
	return p.repository.Walk(ctx, []git.Hash{head.Hash}, func(h git.Hash) bool { return older[h] }, func(c *git.Commit) (bool, error) {
		if len(c.Parents) > 1 {
			return true, nil // the changes of a merge are those of its other commits
		}
		changes, _, err := p.repository.Changes(c)
		if err != nil {
			return false, err
		}
		for _, s := range all {
			i := slices.IndexFunc(changes, func(change git.Change) bool { return change.New == s.name })
			if i < 0 {
				continue
			}
			before, after := "", p.section(s, c, s.name)
			if old := changes[i].Old; old != "" {
				parent, err := p.repository.Commit(c.Parents[0])
				if err != nil {
					return false, err
				}
				s.name, before = old, p.section(s, parent, old)
			}
			if before != after {
				s.Commits = append(s.Commits, history.Commit{Hash: c.Hash.String(), Time: c.Time, Subject: c.Subject})
			}
		}
		return true, nil
	})
}

// section returns the text of a section in a commit, "" if it has none.
func (p *Past) section(s *SectionChange, commit *git.Commit, name string) string {
	h, ok, err := p.repository.Find(commit, name)
	if err != nil || !ok {
		return ""
	}
	text, known := s.seen[h]
	if !known {
		if data, _, err := p.at(commit, s.Path, name); err == nil {
			text = sectionText(s.Path, s.Anchor, data)
		}
		if s.seen == nil {
			s.seen = map[git.Hash]string{}
		}
		s.seen[h] = text
	}
	return text
}

// sectionText returns the text of a section without its subsections, or all text.
func sectionText(path, anchor string, text []byte) string {
	if anchor == "" {
		return string(text)
	}
	d := markdown.Parse(path, text)
	i, ok := markdown.Resolve(d, anchor)
	if !ok {
		return ""
	}
	s := &d.Sections[i]
	return cmp.Or(strings.TrimSpace(string(text[s.Start:s.OwnEnd])), " ")
}
