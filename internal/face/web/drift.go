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
func (h *Handler) drift(w http.ResponseWriter, r *http.Request) {
	if h.site.Tasks == nil {
		h.unknown(w, r)
		return
	}
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
		return
	case d.stage != "":
		w.Header().Set("Refresh", "2")
	case d.err != nil:
		h.fail(w, r, d.err)
		d.err = nil // the next request tries again
		return
	}
	h.show(w, r, screen{section: "drift", title: "Drift", data: driftPage{d.stage, d.all, d.report}})
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
func (h *Handler) judge(w http.ResponseWriter, r *http.Request) {
	if !h.posted(w, r) {
		return
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
		h.show(w, r, screen{section: "error", title: "That did not work", status: http.StatusBadRequest, data: errorPage{Message: err.Error()}})
		return
	}
	http.Redirect(w, r, h.site.Prefix(r)+"/drift", http.StatusSeeOther)
}
