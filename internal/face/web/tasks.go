package web

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"cairn/internal/task"
	"cairn/internal/task/cards"
)

// maxDrawn bounds the tasks in a graph, and maxColumn the cards in a column.
const maxDrawn, maxColumn = 200, 200

type tasksPage struct {
	Columns []column
	New     cardView // the values of the form for a new card
	Cards   []cardLink
	Graph   *drawing
	Omitted int // tasks missing in the graph

	Text, Tag, Assignee, Sort string   // what the board shows
	Tags, Assignees           []string // of all cards
}

type column struct {
	Name    string
	Cards   []cardView
	Omitted int    // cards
	Next    string // the first of them
}

// Count returns the number of cards of the column.
func (c column) Count() int { return len(c.Cards) + c.Omitted }

// tasks shows the board and the graph of the unfinished tasks.
func (h *Handler) tasks(w http.ResponseWriter, r *http.Request) error {
	b, err := h.cards(r)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	p := &tasksPage{New: cardView{Card: &cards.Card{Priority: "medium"}}, Text: strings.TrimSpace(q.Get("text")), Tag: q.Get("tag"), Assignee: q.Get("assignee"), Sort: q.Get("sort")}
	all := b.ByHand()
	if p.Sort == "urgency" {
		all = b.ByUrgency()
	}
	for _, c := range all {
		p.Tags = append(p.Tags, c.Tags...)
		p.Assignees = append(p.Assignees, c.Assignee)
	}
	for _, list := range []*[]string{&p.Tags, &p.Assignees} {
		slices.Sort(*list)
		*list = slices.DeleteFunc(slices.Compact(*list), func(name string) bool { return name == "" })
	}
	all = slices.DeleteFunc(all, func(c *cards.Card) bool {
		text := strings.ToLower(c.ID + " " + c.Title + " " + c.Notes)
		return !strings.Contains(text, strings.ToLower(p.Text)) || p.Tag != "" && !slices.Contains(c.Tags, p.Tag) || p.Assignee != "" && c.Assignee != p.Assignee
	})
	switch p.Sort {
	case "changed":
		slices.SortStableFunc(all, func(a, b *cards.Card) int { return b.ModTime.Compare(a.ModTime) })
	case "title":
		slices.SortStableFunc(all, func(a, b *cards.Card) int { return strings.Compare(a.Title, b.Title) })
	}
	for _, word := range []string{"todo", "active", "done"} {
		c := column{Name: word}
		for _, card := range all {
			switch {
			case card.Status.CardWord() != word:
			case len(c.Cards) < maxColumn:
				c.Cards = append(c.Cards, b.view(card))
			default:
				c.Next = cmp.Or(c.Next, card.ID)
				c.Omitted++
			}
		}
		p.Columns = append(p.Columns, c)
	}
	var boxes []box
	var arrows []arrow
	for _, card := range all {
		word := card.Status.CardWord()
		if word != "todo" && word != "active" {
			continue
		}
		p.Cards = append(p.Cards, b.link(card.ID))
		if len(boxes) == maxDrawn {
			p.Omitted++
			continue
		}
		class := "waiting"
		if card.Status == task.InProgress {
			class = "active"
		} else if b.ready[card.ID] {
			class = "ready"
		}
		boxes = append(boxes, box{ID: card.ID, Label: card.Title, Note: card.ID + " · " + class, Class: class, Link: place(b.prefix, card.Path, "")})
		for _, id := range slices.Compact(slices.Sorted(slices.Values(b.graph.Dependencies(card.ID)))) {
			arrows = append(arrows, arrow{From: id, To: card.ID})
		}
	}
	boxes = slices.DeleteFunc(boxes, func(b box) bool {
		return !slices.ContainsFunc(arrows, func(a arrow) bool { return a.From == b.ID || a.To == b.ID })
	})
	if len(boxes) > 0 {
		p.Graph = draw(boxes, arrows, false)
	}
	return h.show(w, r, page{Section: "tasks", Title: "Tasks", Data: p})
}
