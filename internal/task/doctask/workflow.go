package doctask

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"

	"cairn/internal/text/markdown"
)

// builtin holds seven workflows. Files of a workspace add to them or override them.
//
//go:embed workflows/*.md
var builtin embed.FS

// workflowFolders are the folders of a workspace with its own workflows. If several contain
// a workflow, the first wins.
var workflowFolders = []string{".cairn/workflows", ".cuedeck/workflows"}

// Workflow is a text that a task names and start_task returns, in the JSON of answers.
type Workflow struct {
	Name        string   `json:"name"` // the file name without .md
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description"`
	Content     string   `json:"content"`
	WhenToUse   []string `json:"whenToUse"`
	Tags        []string `json:"tags,omitempty"`
	// Rest is the path of the workflow if Content does not fit into the answer.
	Rest string `json:"content_rest,omitempty"`

	path string // of its file
}

var workflowName = regexp.MustCompile(`^[a-z0-9]+([._-][a-z0-9]+)*$`)

// maxWorkflowName is the maximum length of the name of a workflow in bytes.
const maxWorkflowName = 100

// workflow returns the named workflow. It reads the file in every call, so edits take effect
// at once. The error is a warning for the caller of a tool.
func (d *Docs) workflow(name string) (*Workflow, error) {
	unknown := errors.New("workflow " + clip(name) + " does not exist")
	if len(name) > maxWorkflowName || !workflowName.MatchString(name) {
		return nil, unknown
	}
	for _, folder := range workflowFolders {
		p := path.Join(folder, name+".md")
		text, _, err := d.files.ReadFile(p, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return parseWorkflow(name, p, text)
	}
	p := "builtin/" + name + ".md"
	text, err := builtin.ReadFile("workflows/" + name + ".md")
	if err != nil {
		return nil, unknown
	}
	return parseWorkflow(name, p, text)
}

func parseWorkflow(name, p string, text []byte) (*Workflow, error) {
	fm := markdown.ReadFrontMatter(text)
	if fm.Err != nil {
		return nil, fmt.Errorf("workflow %s: %w", p, fm.Err)
	}
	body := string(bytes.TrimSpace(text[fm.End:]))
	if body == "" {
		return nil, fmt.Errorf("workflow %s has no text", p)
	}
	w := &Workflow{Name: name, Title: fm.String("title"), Description: fm.String("description"), Content: body, path: p, Tags: fm.Strings("tags"), WhenToUse: []string{}}
	if one := fm.String("whenToUse"); one != "" {
		w.WhenToUse = []string{one}
	} else if list := fm.Strings("whenToUse"); list != nil {
		w.WhenToUse = list
	}
	return w, nil
}
