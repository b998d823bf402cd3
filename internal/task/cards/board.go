package cards

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"cairn/internal/task"
)

// Board is a snapshot of all cards. It is immutable.
type Board struct {
	// Cards are sorted by Created, cards without it last, then by ID.
	Cards    []*Card
	unusable []task.Problem // the files that are not cards, by path
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
		for k, id := range c.DependsOn {
			named, ok := b.Card(id)
			if !ok {
				named = b.byTitle()[strings.ToLower(id)]
			}
			if named != nil && named.ID != id {
				if &tasks[i].DependsOn[0] == &c.DependsOn[0] {
					tasks[i].DependsOn = slices.Clone(c.DependsOn)
				}
				tasks[i].DependsOn[k] = named.ID
			}
		}
	}
	return tasks
}

// with returns the board after changes to the named files.
func (b *Board) with(names []string, entries map[string]*entry) *Board {
	changed := make(map[string]bool, len(names))
	for _, name := range names {
		changed[strings.TrimSuffix(name, ".md")] = true
	}
	next := &Board{
		Cards:    slices.DeleteFunc(slices.Clone(b.Cards), func(c *Card) bool { return changed[c.ID] }),
		unusable: slices.DeleteFunc(slices.Clone(b.unusable), func(p task.Problem) bool { return changed[p.ID] }),
		byID:     maps.Clone(b.byID),
	}
	for id := range changed {
		delete(next.byID, id)
		switch e := entries[id+".md"]; {
		case e == nil:
		case e.unusable != nil:
			next.unusable = append(next.unusable, *e.unusable)
		default:
			next.Cards = append(next.Cards, e.card)
			next.byID[id] = e.card
		}
	}
	slices.SortFunc(next.Cards, byCreation)
	slices.SortFunc(next.unusable, func(a, b task.Problem) int { return strings.Compare(a.Path, b.Path) })
	next.byFolded = sync.OnceValue(func() map[string]*Card {
		all := make(map[string]*Card, len(next.Cards))
		for _, c := range slices.Backward(next.Cards) { // of equal keys the first card wins
			all[strings.ToLower(c.ID)] = c
		}
		return all
	})
	next.byTitle = sync.OnceValue(func() map[string]*Card {
		all := make(map[string]*Card, len(next.Cards))
		for _, c := range next.Cards {
			title := strings.ToLower(c.Title)
			if _, taken := all[title]; taken {
				c = nil
			}
			all[title] = c
		}
		return all
	})
	next.All = sync.OnceValue(func() *task.Board { return task.NewBoard(next.tasks()) })
	next.Live = sync.OnceValue(func() *task.Board { return task.NewBoard(task.Live(next.tasks())) })
	return next
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
