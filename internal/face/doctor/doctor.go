// Package doctor finds faults of a folder: in its configuration, its cards, the links
// between its documents and its index. It changes nothing unless Options.Repair is set, and
// then makes only obvious repairs.
package doctor

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

	"cairn/internal/base/owner"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
	"cairn/internal/task"
	"cairn/internal/task/cards"
	"cairn/internal/task/taskgraph"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/plancheck"
)

// Finding is an error or a warning about one place.
type Finding struct {
	Check   string `json:"check"` // config, cards, tasks, links, files, index or plans
	Kind    string `json:"kind"`
	Path    string `json:"path,omitempty"` // workspace path
	Line    int    `json:"line,omitempty"` // from 1; 0 for none
	Message string `json:"message"`
	Fix     string `json:"fix"` // what the user can do
	Target  string `json:"-"`   // of a broken link, a workspace path
	// Error is false for a warning.
	Error bool `json:"error"`
	// Repairable reports whether --repair applies the fix.
	Repairable bool `json:"repairable"`
}

// Report is the result of Check.
type Report struct {
	Workspace string `json:"workspace"`
	// Healthy reports that no finding is an error.
	Healthy   bool      `json:"healthy"`
	Errors    int       `json:"errors"`
	Warnings  int       `json:"warnings"`
	Cards     int       `json:"cards"`
	Documents int       `json:"documents"`
	Links     int       `json:"links"`
	Findings  []Finding `json:"findings"`
	// OldModules have had no release for two years.
	OldModules []Module `json:"old_modules"`
	// Repaired has a line for each repair.
	Repaired []string `json:"repaired,omitempty"`
}

// Options configures Check.
type Options struct {
	// Repair makes the obvious repairs before the check.
	Repair bool
	// Workspace opens the folder to verify its files and to check its index. Nil skips
	// both.
	Workspace *workspace.Options
	// Environ is the environment in the form of os.Environ.
	Environ []string
}

// Check checks a folder. Faults of the folder are Findings. An error means that Check could
// not check.
func Check(ctx context.Context, sel config.Selection, o Options) (*Report, error) {
	r := &Report{Workspace: sel.Root, Findings: []Finding{}, OldModules: oldModules(time.Now())}
	if top, has := config.Find(sel.Root); o.Repair && top != "" && !has {
		_, err := config.Write(sel.Root, top, config.Default(), false)
		if err == nil {
			r.Repaired = append(r.Repaired, top+"/config.toml: written with the defaults")
		} else if !errors.Is(err, fs.ErrExist) { // another process has written one
			return nil, err
		}
	}
	cfg := r.config(sel.Root, o.Environ)
	t, err := workspace.OpenTasks(sel, cfg, &workspace.TaskOptions{Person: true})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if o.Repair {
		done, err := t.Cards.Repair(ctx)
		r.Repaired = append(r.Repaired, done...)
		if err != nil {
			return nil, fmt.Errorf("repairing cards: %w", err)
		}
	}
	r.folders(sel.Root)
	r.cards(t.Cards)
	if c := cfg.DAG.Channel; c != "" && c != "-" && c != taskgraph.CardsChannel {
		if err := t.Graph.Check(ctx, c); err != nil {
			top, _ := config.Find(sel.Root)
			r.add(Finding{Check: "config", Kind: "no-channel", Path: top + "/config.toml", Message: fmt.Sprintf("dag.channel is %q: %s", c, err),
				Fix: "name a document with a heading Tasks, such as /plans/a.md, or remove it for the cards", Error: true})
		}
	}
	problems, err := t.Documents.Check(ctx)
	if r.problems("tasks", problems); err != nil {
		return nil, fmt.Errorf("checking the tasks in documents: %w", err)
	}
	if err := r.links(ctx, t); err != nil {
		return nil, fmt.Errorf("checking links: %w", err)
	}
	if o.Workspace != nil {
		if err := r.workspace(ctx, sel, cfg, o); err != nil {
			return nil, err
		}
	}
	warnings := slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return f.Error })
	errs := slices.DeleteFunc(r.Findings, func(f Finding) bool { return !f.Error })
	r.Errors, r.Warnings, r.Healthy = len(errs), len(warnings), len(errs) == 0
	r.Findings = append(errs, warnings...)
	return r, ctx.Err()
}

func (r *Report) add(f Finding) { r.Findings = append(r.Findings, f) }

// config checks the configuration and returns it, or the defaults if it cannot be
// read.
func (r *Report) config(root string, environ []string) config.Config {
	top, has := config.Find(root)
	path := top + "/config.toml"
	if top != "" && !has {
		r.add(Finding{Check: "config", Kind: "no-config", Path: path, Message: "there is no configuration; the defaults are in effect",
			Fix: "run `cairn doctor --repair` or `cairn init`", Repairable: true})
	}
	cfg, err := config.Load(root, environ)
	if err != nil {
		r.add(Finding{Check: "config", Kind: "bad-config", Path: path, Message: err.Error(),
			Fix: "correct the file, or run `cairn init --force` for the defaults", Error: true})
		return config.Default()
	}
	for _, w := range cfg.Warnings {
		r.add(Finding{Check: "config", Kind: "no-effect", Path: path, Message: w.String(), Fix: "remove or correct it; limits and stores need a folder that you trust, see `cairn trust`"})
	}
	return cfg
}

// folders reports cards in an unused folder.
func (r *Report) folders(root string) {
	used, err := os.Stat(filepath.Join(root, filepath.FromSlash(cards.CueDeckFolder)))
	if err != nil || !used.IsDir() {
		return
	}
	names, _ := filepath.Glob(filepath.Join(root, filepath.FromSlash(cards.Folder), "*.md"))
	if len(names) > 0 {
		r.add(Finding{Check: "cards", Kind: "two-folders", Path: cards.Folder,
			Message: fmt.Sprintf("%d cards are in %s, while %s is in use", len(names), cards.Folder, cards.CueDeckFolder),
			Fix:     "move them to " + cards.CueDeckFolder, Error: true})
	}
}

func (r *Report) cards(s *cards.Store) {
	board, err := s.Board()
	var problems []task.Problem
	if err == nil {
		r.Cards = len(board.Cards)
		problems, err = s.Check()
	}
	if err != nil {
		r.add(Finding{Check: "cards", Kind: "unreadable", Message: err.Error(), Fix: "make the folder of cards a readable folder", Error: true})
		return
	}
	r.problems("cards", problems)
}

// problems adds the problems of cards, or of tasks in documents.
func (r *Report) problems(check string, list []task.Problem) {
	for _, p := range list {
		r.add(Finding{Check: check, Kind: p.Kind, Path: p.Path, Line: p.Line, Message: p.Message, Fix: p.Fix, Error: p.Error, Repairable: check == "cards" && cards.Repairable(p.Kind)})
	}
}

// workspace verifies the files of the folder and checks its index.
func (r *Report) workspace(ctx context.Context, sel config.Selection, cfg config.Config, o Options) error {
	w, err := workspace.Open(ctx, sel, cfg, workspace.Reading, *o.Workspace)
	if err != nil {
		r.index(nil, err)
		return nil
	}
	v, err := w.Verify(ctx, o.Repair)
	if err != nil {
		v = &index.Verified{} // the check of the index reports the error, too
	}
	for _, f := range v.Files {
		for _, problem := range f.Problems {
			if f.Repaired != "" {
				r.add(Finding{Check: "files", Kind: "recovered", Path: f.Name, Message: problem, Fix: f.Repaired})
				continue
			}
			if f.Damaged() { // the check of the index reports an outdated one
				r.add(Finding{Check: "files", Kind: "damaged", Path: f.Name, Message: problem, Fix: "run `cairn verify --repair`", Error: true, Repairable: true})
			}
		}
	}
	r.index(index.StatusOp.Call(ctx, w.Folder, index.StatusRequest{Selection: sel}, nil))
	r.plans(ctx, w)
	return w.Close()
}

// plans reports saved plans that the present tools do not fit.
func (r *Report) plans(ctx context.Context, w *workspace.Workspace) {
	root, err := os.OpenRoot(r.Workspace)
	if err != nil {
		return // the index reports it
	}
	defer root.Close()
	names, _ := fs.Glob(root.FS(), plancheck.Folder+"/*.md") // the pattern is valid
	for _, name := range names {
		var p plancheck.Plan
		text, err := root.ReadFile(name)
		if err == nil {
			p, err = plancheck.ReadDocument(string(text))
		}
		box, openErr := w.Tools(ctx)
		if openErr != nil {
			return // the index reports it
		}
		p.Intent = "" // only what the schemas state
		found := &plancheck.Report{}
		if err == nil {
			found, err = toolbox.CheckOp.Call(ctx, box, p, nil)
		}
		if err != nil {
			r.add(Finding{Check: "plans", Kind: "unreadable", Path: name, Message: err.Error(), Fix: "write the plan as docs/gateway.md describes", Error: true})
			continue
		}
		for _, f := range found.Findings {
			if f.Confidence == 1 {
				r.add(Finding{Check: "plans", Kind: string(f.Kind), Path: name, Message: strings.TrimSpace(f.Call + " " + f.Evidence), Fix: cmp.Or(f.Repair, "run `cairn tools verify` for more")})
			}
		}
	}
}

// index reports faults of the index, or why it has no status.
func (r *Report) index(s *index.Status, err error) {
	if err != nil {
		fix := "run `cairn status` for more, or `cairn index --rebuild`"
		if _, ok := errors.AsType[*owner.LockError](err); ok {
			fix = "wait for the other process, or end it"
		}
		r.add(Finding{Check: "index", Kind: "unusable", Message: strings.TrimSpace(err.Error()), Fix: fix, Error: true})
		return
	}
	switch s.State {
	case "missing":
		r.add(Finding{Check: "index", Kind: "missing", Message: "there is no index yet", Fix: "run `cairn index`"})
	case "partial":
		r.add(Finding{Check: "index", Kind: "partial", Message: fmt.Sprintf("the index is incomplete: %d chunks have no vector", s.Pending), Fix: "run `cairn index`"})
	}
	if slices.Contains(s.Degraded, index.OwnerLacking) {
		r.add(Finding{Check: "index", Kind: "degraded", Message: s.Problem, Fix: "let the other process continue, or end it", Error: true})
	} else if len(s.Degraded) > 0 {
		r.add(Finding{Check: "index", Kind: "degraded", Message: s.Problem, Fix: "run `cairn index`"})
	} else if s.Problem != "" {
		r.add(Finding{Check: "index", Kind: "failed", Message: "the last run failed: " + s.Problem, Fix: "run `cairn index` to see why", Error: true})
	}
	if message, fix := s.Language(); message != "" {
		r.add(Finding{Check: "index", Kind: "language", Message: message, Fix: fix})
	}
	if n := s.Skipped["unreadable"]; n > 0 {
		r.add(Finding{Check: "index", Kind: "unreadable", Message: fmt.Sprintf("%d files could not be read", n), Fix: "give yourself permission to read them; `cairn status --skipped` lists them"})
	}
}
