// Package workflow finds the workflows that a task can name: short texts that start_task
// returns. Seven are built in. Files of a workspace add to them or override them.
package workflow

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"cairn/internal/text/markdown"
	"cairn/internal/text/walk"
)

//go:embed builtin/*.md
var builtin embed.FS

// folders are the folders of a workspace with its own workflows. If several contain a
// workflow, the first wins.
var folders = []string{".cairn/workflows", ".cuedeck/workflows"}

// Workflow is one workflow in the JSON of answers.
type Workflow struct {
	Name        string   `json:"name"` // the file name without .md
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description"`
	Content     string   `json:"content"`
	WhenToUse   []string `json:"whenToUse"`
	Tags        []string `json:"tags,omitempty"`
	// Rest is the path of the workflow if Content does not fit into the answer.
	Rest string `json:"content_rest,omitempty"`
	Path string `json:"-"` // of its file
}

// ErrUnknown reports a name without a workflow.
var ErrUnknown = errors.New("unknown workflow")

var namePattern = regexp.MustCompile(`^[a-z0-9]+([._-][a-z0-9]+)*$`)

// Set holds the workflows of a workspace. Every call reads the files, so edits take effect
// at once.
type Set struct{ tree *walk.Tree }

// New returns the workflows of a workspace. If tree is nil, it returns only the built-in
// ones.
func New(tree *walk.Tree) *Set { return &Set{tree} }

// maxName is the maximum length of a name in bytes.
const maxName = 100

// Get returns the named workflow. The error wraps ErrUnknown or describes a problem of the
// file.
func (s *Set) Get(name string) (*Workflow, error) {
	if len(name) > maxName || !namePattern.MatchString(name) {
		return nil, fmt.Errorf("%w: %.100q", ErrUnknown, name)
	}
	if s.tree != nil {
		for _, folder := range folders {
			p := path.Join(folder, name+".md")
			text, _, err := s.tree.ReadFile(p, 0)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			return parse(name, p, text)
		}
	}
	p := "builtin/" + name + ".md"
	text, err := builtin.ReadFile(p)
	if err != nil {
		return nil, fmt.Errorf("%w: %q", ErrUnknown, name)
	}
	return parse(name, p, text)
}

// List returns all workflows, sorted by name, and an error for each invalid file.
func (s *Set) List() ([]*Workflow, []error) {
	names := map[string]bool{}
	entries, _ := builtin.ReadDir("builtin")
	for _, e := range entries {
		names[strings.TrimSuffix(e.Name(), ".md")] = true
	}
	if s.tree != nil {
		for _, folder := range folders {
			top, rel, err := s.tree.Dir(folder)
			if err != nil {
				continue
			}
			own, _ := os.ReadDir(filepath.Join(top, filepath.FromSlash(rel)))
			for _, e := range own {
				if name, ok := strings.CutSuffix(e.Name(), ".md"); ok && namePattern.MatchString(name) {
					names[name] = true
				}
			}
		}
	}
	var all []*Workflow
	var errs []error
	for name := range names {
		w, err := s.Get(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b *Workflow) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return all, errs
}

func parse(name, p string, text []byte) (*Workflow, error) {
	fm := markdown.ReadFrontMatter(text)
	if fm.Err != nil {
		return nil, fmt.Errorf("workflow %s: %w", p, fm.Err)
	}
	body := string(bytes.TrimSpace(text[fm.End:]))
	if body == "" {
		return nil, fmt.Errorf("workflow %s has no text", p)
	}
	w := &Workflow{Name: name, Title: fm.String("title"), Description: fm.String("description"), Content: body, Path: p, Tags: fm.Strings("tags"), WhenToUse: []string{}}
	if one, ok := fm.Fields["whenToUse"].(string); ok {
		if one != "" {
			w.WhenToUse = []string{one}
		}
	} else if list := fm.Strings("whenToUse"); list != nil {
		w.WhenToUse = list
	}
	return w, nil
}
