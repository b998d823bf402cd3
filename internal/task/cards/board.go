package cards

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"cairn/internal/task"
)

// Board is a snapshot of all cards. It is immutable.
type Board struct {
	// Cards are sorted by Created, cards without it last, then by ID.
	Cards []*Card
	// Unusable are the files that are not cards, by path.
	Unusable []task.Problem
	byID     map[string]*Card
	byFolded func() map[string]*Card // by ID in lower case
	byTitle  func() map[string]*Card // by title in lower case; nil for an ambiguous title
	// All returns the tasks of all cards, archived ones included. Live returns those of
	// task.Live. Each builds its graph once.
	All, Live func() *task.Board
}

// Card returns the card with the given ID. If there is none, it ignores case.
func (b *Board) Card(id string) (*Card, bool) {
	if c, ok := b.byID[id]; ok {
		return c, true
	}
	c, ok := b.byFolded()[strings.ToLower(id)]
	return c, ok
}

// Beginning returns the cards whose ID begins with a prefix, ignoring case.
func (b *Board) Beginning(prefix string) (found []*Card) {
	for _, c := range b.Cards {
		if strings.HasPrefix(strings.ToLower(c.ID), strings.ToLower(prefix)) {
			found = append(found, c)
		}
	}
	return found
}

// tasks returns the tasks of all cards in order. It replaces dependencies that are written
// in another case or as titles by the IDs of the cards.
func (b *Board) tasks() []task.Task {
	tasks := make([]task.Task, len(b.Cards))
	for i, c := range b.Cards {
		tasks[i] = c.Task
		tasks[i].DependsOn = slices.Clone(c.DependsOn)
		for k, id := range c.DependsOn {
			named, ok := b.Card(id)
			if !ok {
				named = b.byTitle()[strings.ToLower(id)]
			}
			if named != nil {
				tasks[i].DependsOn[k] = named.ID
			}
		}
	}
	return tasks
}

// newBoard returns the board of the files in all.
func newBoard(all ...map[string]*entry) *Board {
	b := &Board{byID: map[string]*Card{}}
	for _, entries := range all {
		for _, e := range entries {
			if e.unusable != nil {
				b.Unusable = append(b.Unusable, *e.unusable)
				continue
			}
			b.Cards = append(b.Cards, e.card)
			b.byID[e.card.ID] = e.card
		}
	}
	slices.SortFunc(b.Cards, byCreation)
	slices.SortFunc(b.Unusable, func(x, y task.Problem) int { return strings.Compare(x.Path, y.Path) })
	b.byFolded = sync.OnceValue(func() map[string]*Card {
		all := make(map[string]*Card, len(b.Cards))
		for _, c := range slices.Backward(b.Cards) { // of equal keys the first card wins
			all[strings.ToLower(c.ID)] = c
		}
		return all
	})
	b.byTitle = sync.OnceValue(func() map[string]*Card {
		all := make(map[string]*Card, len(b.Cards))
		for _, c := range b.Cards {
			title := strings.ToLower(c.Title)
			if _, taken := all[title]; taken {
				c = nil
			}
			all[title] = c
		}
		return all
	})
	b.All = sync.OnceValue(func() *task.Board { return task.NewBoard(b.tasks()) })
	b.Live = sync.OnceValue(func() *task.Board { return task.NewBoard(task.Live(b.tasks())) })
	return b
}

// byCreation orders by Created, cards without one last, then by ID.
func byCreation(a, b *Card) int {
	if a.Created.IsZero() != b.Created.IsZero() {
		if a.Created.IsZero() {
			return 1
		}
		return -1
	}
	return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID))
}
