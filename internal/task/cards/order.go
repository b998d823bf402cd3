package cards

import (
	"cmp"
	"context"
	"math"
	"slices"

	"cairn/internal/task"
)

// ordinalStep is the distance of new ordinals from their neighbours.
const ordinalStep = 1000

// maxOrdinal bounds ordinals, so that sums of them are exact.
const maxOrdinal = 1e12

// ByHand returns the cards by ordinal, and then those without one by urgency.
func (b *Board) ByHand() []*Card {
	all := b.ByUrgency()
	slices.SortStableFunc(all, func(a, b *Card) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	return all
}

// column returns the cards of a status in the order of ByHand, and the index of a card, -1 if
// it is not one of them.
func (b *Board) column(status, id string) ([]*Card, int) {
	column := slices.DeleteFunc(b.ByHand(), func(c *Card) bool { return c.Status.CardWord() != status })
	return column, slices.IndexFunc(column, func(c *Card) bool { return c.ID == id })
}

// Move gives a card a status, and a place directly before another card of this status, last
// if before is "". It writes ordinals to the cards above that have none.
func (s *Store) Move(ctx context.Context, id, status, before string) error {
	ch := changes{"status": status}
	if err := ch.check(""); err != nil {
		return err
	}
	b, card, err := s.named(id)
	if err != nil {
		return err
	}
	if id = card.ID; before == id {
		return nil
	}
	column, own := b.column(status, id)
	if own >= 0 {
		column = slices.Delete(column, own, own+1)
	}
	at := len(column)
	if before != "" {
		at = slices.IndexFunc(column, func(c *Card) bool { return c.ID == before })
	}
	if at < 0 {
		return task.Invalid("card %.50q is not in the column %s", before, status)
	}
	place := func(id string, at float64) error {
		_, _, err := s.change(ctx, id, changes{"ordinal": at})
		return err
	}
	// From the top, so that no reader sees another order meanwhile.
	low := 0.0
	for _, c := range column[:at] {
		if math.IsInf(c.Ordinal, 0) {
			if err := place(c.ID, low+ordinalStep); err != nil {
				return err
			}
			low += ordinalStep
		} else {
			low = c.Ordinal
		}
	}
	ordinal := low + ordinalStep
	if at < len(column) && !math.IsInf(column[at].Ordinal, 0) {
		high := column[at].Ordinal
		if at == 0 {
			low = high - 2*ordinalStep
		}
		if ordinal = math.Floor((low + high) / 2); ordinal <= low || ordinal >= high {
			for _, c := range slices.Backward(column[at:]) {
				if !math.IsInf(c.Ordinal, 0) {
					if err := place(c.ID, c.Ordinal+ordinalStep); err != nil {
						return err
					}
				}
			}
			ordinal = math.Floor(low + (high-low+ordinalStep)/2)
		}
	}
	ch["ordinal"] = ordinal
	_, _, err = s.change(ctx, id, ch)
	return err
}

// Step moves a card up or down by one place in its column.
func (s *Store) Step(ctx context.Context, id string, up bool) error {
	b, c, err := s.named(id)
	if err != nil {
		return err
	}
	column, at := b.column(c.Status.CardWord(), c.ID)
	before := ""
	switch {
	case up && at == 0 || !up && at == len(column)-1:
		return nil
	case up:
		before = column[at-1].ID
	case at+2 < len(column):
		before = column[at+2].ID
	}
	return s.Move(ctx, c.ID, c.Status.CardWord(), before)
}
