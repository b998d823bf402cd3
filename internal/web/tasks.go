package web

import (
	"net/http"
	"slices"

	"cairn/internal/task/cards"
)

// maxDrawn bounds the tasks in a graph.
const maxDrawn = 200

type tasksPage struct {
	Columns []column
	Graph   *drawing
	Omitted int // tasks missing in the graph
	Ready   map[string]bool
}

type column struct {
	Name  string
	Cards []*cards.Card
}

// tasks shows the board and the graph of the unfinished tasks.
func (h *Handler) tasks(w http.ResponseWriter, r *http.Request) {
	if h.sources.Tasks == nil {
		http.NotFound(w, r)
		return
	}
	board, err := h.sources.Tasks.Cards.Board()
	if err != nil {
		h.fail(w, r, err)
		return
	}
	graph, err := board.Graph()
	if err != nil {
		h.fail(w, r, err)
		return
	}
	all := board.ByUrgency()
	p := &tasksPage{Ready: map[string]bool{}}
	for _, id := range graph.Ready(0) {
		p.Ready[id] = true
	}
	for _, word := range []string{"todo", "active", "done"} {
		c := column{Name: word}
		for _, card := range all {
			if card.Status.CardWord() == word {
				c.Cards = append(c.Cards, card)
			}
		}
		p.Columns = append(p.Columns, c)
	}
	var boxes []box
	var arrows []arrow
	for _, card := range all {
		if word := card.Status.CardWord(); word != "todo" && word != "active" {
			continue
		}
		if len(boxes) == maxDrawn {
			p.Omitted++
			continue
		}
		class := "waiting"
		switch {
		case card.Status.CardWord() == "active":
			class = "active"
		case p.Ready[card.ID]:
			class = "ready"
		}
		boxes = append(boxes, box{ID: card.ID, Label: card.Title, Note: card.ID + " · " + class, Class: class, Link: place(h.options.Prefix(r), card.Path, "")})
		for _, id := range slices.Compact(slices.Sorted(slices.Values(card.DependsOn))) {
			arrows = append(arrows, arrow{From: id, To: card.ID})
		}
	}
	if len(boxes) > 0 {
		p.Graph = draw(boxes, arrows)
	}
	h.show(w, r, http.StatusOK, "tasks", "Tasks", "", p)
}
