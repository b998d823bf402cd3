package web

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"

	"cairn/internal/face/drift"
)

// radar is the last comparison of the documents with the folder. One runs at a time.
type radar struct {
	mu     sync.Mutex
	stage  string // of the comparison that runs; "" for none
	all    bool
	report *drift.Report
	err    error
}

type driftPage struct {
	Stage  string
	All    bool
	Report *drift.Report
}

// drift shows the findings of the last comparison. The first request, and one that asks for
// it again, starts one; the page loads itself until it ends.
func (h *Handler) drift(w http.ResponseWriter, r *http.Request) error {
	d := &h.radar
	d.mu.Lock()
	defer d.mu.Unlock()
	again := r.URL.Query().Has("again")
	if d.stage == "" && (again || d.report == nil && d.err == nil) {
		d.stage, d.all = "Reading the documents", r.URL.Query().Has("all")
		go d.check(context.WithoutCancel(r.Context()), h.site)
	}
	switch {
	case again:
		http.Redirect(w, r, h.site.Prefix(r)+"/drift", http.StatusSeeOther)
		return nil
	case d.stage != "":
		w.Header().Set("Refresh", "2")
	case d.err != nil:
		err := d.err
		d.err = nil // the next request tries again
		return err
	}
	return h.show(w, r, page{Section: "drift", Title: "Drift", Data: driftPage{d.stage, d.all, d.report}})
}

func (d *radar) check(ctx context.Context, s Site) {
	report, err := drift.Check(ctx, s.Root, s.Tasks, drift.Options{All: d.all, Progress: func(stage string) {
		d.mu.Lock()
		d.stage = stage
		d.mu.Unlock()
	}})
	d.mu.Lock()
	d.stage, d.report, d.err = "", report, err
	d.mu.Unlock()
}

// judge writes the verdict of a form on a finding.
func (h *Handler) judge(w http.ResponseWriter, r *http.Request) error {
	if err := h.posted(w, r); err != nil {
		return err
	}
	d := &h.radar
	d.mu.Lock()
	defer d.mu.Unlock()
	form := r.PostForm
	v, reason := drift.Verdict(form.Get("verdict")), strings.TrimSpace(form.Get("reason"))
	err := errors.New("a verdict needs a finding of the last comparison, and a reason")
	if (v == drift.Accepted || v == drift.Ignored) && reason != "" && d.report != nil {
		err = d.report.Judge(r.Context(), h.site.Root, h.site.Tasks, v, []string{form.Get("id")}, reason)
	}
	if err != nil {
		return &statusError{http.StatusBadRequest, err.Error()}
	}
	http.Redirect(w, r, h.site.Prefix(r)+"/drift", http.StatusSeeOther)
	return nil
}
