package web

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/base/taskdag"
	"cairn/internal/task"
	"cairn/internal/task/cards"
	"cairn/internal/text/markdown"
)

// cardView is a card with its fields and neighbours.
type cardView struct {
	*cards.Card
	Link          string // to its page
	Word          string // of the status
	Ready         bool   // the card can start now
	After, Before []cardLink
}

// cardLink links to a card that another card depends on, or that depends on it.
type cardLink struct {
	ID, Title, Link string // Link is "" for a card that does not exist
	Word            string // of the status
	Done            bool
}

// cardGraph is the cards of a folder with the graph of their dependencies.
type cardGraph struct {
	*cards.Board
	graph  *taskdag.Graph
	ready  map[string]bool
	prefix string // of links
}

func (h *Handler) cards(r *http.Request) (*cardGraph, error) {
	board, err := h.site.Tasks.Cards.Board()
	if err != nil {
		return nil, err
	}
	graph := board.All().Graph
	b := &cardGraph{board, graph, map[string]bool{}, h.site.Prefix(r)}
	for _, id := range graph.Ready(0) {
		b.ready[id] = true
	}
	return b, nil
}

// cardAt returns the card in a file, nil if the file is none.
func (h *Handler) cardAt(r *http.Request, path string) (*cardView, error) {
	if !isCard(path) {
		return nil, nil
	}
	b, err := h.cards(r)
	if err != nil {
		return nil, err
	}
	for _, c := range b.Cards {
		if c.Path == path {
			return new(b.view(c)), nil
		}
	}
	return nil, nil
}

func (b *cardGraph) view(c *cards.Card) cardView {
	v := cardView{Card: c, Link: place(b.prefix, c.Path, ""), Word: c.Status.CardWord(), Ready: b.ready[c.ID]}
	for _, id := range append(b.graph.Dependencies(c.ID), b.graph.Missing(c.ID)...) {
		v.After = append(v.After, b.link(id))
	}
	for _, id := range b.graph.Dependents(c.ID) {
		v.Before = append(v.Before, b.link(id))
	}
	return v
}

// Unfinished returns the unfinished cards that the card depends on.
func (v cardView) Unfinished() []cardLink {
	return slices.DeleteFunc(slices.Clone(v.After), func(l cardLink) bool { return l.Done })
}

func (b *cardGraph) link(id string) cardLink {
	c, ok := b.Card(id)
	if !ok {
		return cardLink{ID: id, Title: id, Word: "missing"}
	}
	return cardLink{ID: c.ID, Title: c.Title, Link: place(b.prefix, c.Path, ""), Word: c.Status.CardWord(), Done: c.Task.Done()}
}

// maxForm bounds a posted form in bytes.
const maxForm = 64 << 10

// crossOrigin refuses forms that pages of other sites send.
var crossOrigin = http.NewCrossOriginProtection()

// posted parses a form that changes a card.
func (h *Handler) posted(w http.ResponseWriter, r *http.Request) error {
	if err := crossOrigin.Check(r); err != nil {
		return &statusError{http.StatusForbidden, "Forms from other sites are refused."}
	}
	if !h.site.MayWrite(r) {
		return &statusError{http.StatusForbidden, "Your access permits reading, but no changes of cards."}
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return &statusError{http.StatusBadRequest, "The form cannot be read: " + err.Error()}
	}
	for _, values := range r.PostForm {
		for i, v := range values {
			values[i] = strings.ReplaceAll(v, "\r\n", "\n") // browsers send the ends of lines so
		}
	}
	return nil
}

// createCard adds a card from a form and shows the board.
func (h *Handler) createCard(w http.ResponseWriter, r *http.Request) error {
	if err := h.posted(w, r); err != nil {
		return err
	}
	form := r.PostForm
	_, err := h.site.Tasks.Cards.Create(r.Context(), cards.CreateRequest{
		Title: form.Get("title"), Priority: form.Get("priority"), Assignee: form.Get("assignee"), Tags: list(form.Get("tags")), DependsOn: list(form.Get("depends_on")),
	})
	if err != nil {
		return err
	}
	http.Redirect(w, r, h.site.Prefix(r)+"/tasks", http.StatusSeeOther)
	return nil
}

// changeCard updates a card from the fields of a form and redirects to the card. The
// script of the board, which only changes the status, receives 204.
func (h *Handler) changeCard(w http.ResponseWriter, r *http.Request) error {
	if err := h.posted(w, r); err != nil {
		return err
	}
	id := r.PathValue("id")
	var err error
	if r.PostForm.Has("was") {
		err = h.site.Tasks.Cards.EditBody(r.Context(), id, edited(r.PostForm))
		for _, key := range []string{"was", "body", "step", "done"} {
			r.PostForm.Del(key)
		}
	}
	if err == nil {
		err = h.keepUnchanged(r.PostForm, id)
	}
	// The select of a card on the board has two steps besides the statuses.
	if status := r.PostForm.Get("status"); err == nil && (status == "up" || status == "down") {
		err = h.site.Tasks.Cards.Step(r.Context(), id, status == "up")
		r.PostForm.Del("status")
	} else if err == nil && r.PostForm.Has("before") {
		err = h.site.Tasks.Cards.Move(r.Context(), id, status, r.PostForm.Get("before"))
		r.PostForm.Del("status")
		r.PostForm.Del("before")
	}
	if updates := updatesOf(r.PostForm); err == nil && len(updates) > 0 {
		_, err = h.site.Tasks.Cards.Update(r.Context(), cards.UpdateRequest{ID: id, Updates: updates})
	}
	switch {
	case err != nil:
		return err
	case r.Header.Get(fragmentHeader) != "":
		w.WriteHeader(http.StatusNoContent)
	default:
		path, err := h.site.Tasks.Cards.Path(id)
		if err != nil {
			return err
		}
		http.Redirect(w, r, place(h.site.Prefix(r), path, ""), http.StatusSeeOther)
	}
	return nil
}

// shown returns the values of the fields in the form of a card, nil for no card.
func shown(c *cards.Card) map[string]string {
	if c == nil {
		return nil
	}
	return map[string]string{"title": c.Title, "status": c.Status.CardWord(), "priority": c.Priority, "assignee": c.Assignee,
		"tags": strings.Join(c.Tags, ", "), "depends_on": strings.Join(c.DependsOn, ", "), "notes": c.Notes}
}

// keepUnchanged removes the fields that the user of a form left as it showed them: they keep what
// other users wrote meanwhile. A field that both changed is an error.
func (h *Handler) keepUnchanged(form url.Values, id string) error {
	b, err := h.site.Tasks.Cards.Board()
	if err != nil {
		return err
	}
	c, exists := b.Card(id)
	for name, was := range form {
		key, ok := strings.CutPrefix(name, "was_")
		if !ok {
			continue
		}
		form.Del(name)
		if mine := form.Get(key); mine == was[0] {
			form.Del(key)
		} else if now := shown(c)[key]; exists && now != was[0] && now != mine {
			return &task.Error{Number: task.CodeValidation, Message: fmt.Sprintf("The %s of the card has changed meanwhile to %q", key, now), Data: map[string]any{"suggestion": "Load the page again"}}
		}
	}
	return nil
}

// updatesOf returns the fields of a form as the updates of an UpdateRequest.
func updatesOf(form url.Values) map[string]json.RawMessage {
	updates := map[string]json.RawMessage{}
	for key := range form {
		var value any = form.Get(key)
		if key == "tags" || key == "depends_on" {
			value = list(form.Get(key))
		}
		updates[key], _ = json.Marshal(value) // never fails: strings marshal
	}
	return updates
}

// list splits a text at commas and omits empty parts.
func list(text string) []string {
	parts := []string{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

var (
	// stepMark matches a step in the text of a card, and shownStep in its HTML.
	stepMark  = regexp.MustCompile(`(?m)^(\s*(?:[-*+]|\d{1,9}[.)])\s+\[)[ xX](\]\s)`)
	shownStep = regexp.MustCompile(`disabled="" type="checkbox"`)
)

// bodyHash identifies a version of the text of a card.
func bodyHash(body string) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(body)))
	return hex.EncodeToString(sum[:8])
}

// edited returns the text of a card after a form: with a new text, or with one step done or to
// do. A form for an earlier version changes nothing.
func edited(form url.Values) func(body string) (string, error) {
	return func(body string) (string, error) {
		if form.Get("was") != bodyHash(body) {
			return "", &task.Error{Number: task.CodeValidation, Message: "The text of the card has changed meanwhile", Data: map[string]any{"suggestion": "Load the page again"}}
		}
		if form.Has("body") {
			return "\n" + strings.TrimSpace(form.Get("body")) + "\n", nil
		}
		mark := " "
		if form.Get("done") == "true" {
			mark = "x"
		}
		fences := markdown.Fences([]byte(body))
		n := -1
		for _, m := range stepMark.FindAllStringSubmatchIndex(body, -1) {
			if slices.ContainsFunc(fences, func(f markdown.Fence) bool { return f.Start <= m[0] && m[0] < f.End }) {
				continue
			}
			if n++; strconv.Itoa(n) == form.Get("step") {
				return body[:m[3]] + mark + body[m[4]:], nil
			}
		}
		return body, nil
	}
}
