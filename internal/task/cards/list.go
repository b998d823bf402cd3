package cards

import (
	"slices"
	"strings"
)

// ListRequest holds the arguments of list_tasks. A card must match all filters. An empty
// filter matches every card.
type ListRequest struct {
	Status   string   `json:"status,omitempty" schema:"enum=todo|active|done|archived"`          // todo, active, done or archived
	Assignee string   `json:"assignee,omitempty"`                                                // in any case
	Tags     []string `json:"tags,omitempty" jsonschema:"Any of these"`                          // any of them, without regard to case
	Priority string   `json:"priority,omitempty" schema:"enum=low|medium|high|critical"`         // in any case
	Created  string   `json:"created,omitempty" jsonschema:"Such as '2024-01-01', '<3d', '>2w'"` // see parseDateFilter
	Updated  string   `json:"updated,omitempty"`                                                 // the file's time if the card has none
}

// ListItem is one card of an answer. The specification has the first four fields.
type ListItem struct {
	ID       string   `json:"id"`
	Title    string   `json:"title"`
	Priority string   `json:"priority"`
	Assignee *string  `json:"assignee"`
	Status   string   `json:"status"`
	Tags     []string `json:"tags"`
}

// List implements list_tasks: the most urgent cards first, then by creation.
func (s *Store) List(r ListRequest) ([]ListItem, error) {
	cards, err := s.Find(r)
	if err != nil {
		return nil, err
	}
	list := make([]ListItem, len(cards))
	for i, c := range cards {
		list[i] = ListItem{c.ID, c.Title, c.Priority, orNull(c.Assignee), c.Status.CardWord(), orEmpty(c.Tags)}
	}
	return list, nil
}

// Find is like List but returns whole cards, which the caller must not change.
func (s *Store) Find(r ListRequest) ([]*Card, error) {
	match, err := s.filter(r)
	if err != nil {
		return nil, err
	}
	b, err := s.Board()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(b.ByUrgency(), func(c *Card) bool { return !match(c) }), nil
}

// ByUrgency returns the cards in the order of List. The caller must not change them.
func (b *Board) ByUrgency() []*Card {
	var byRank [5][]*Card
	for _, c := range b.Cards {
		n := rank(c.Priority)
		byRank[n] = append(byRank[n], c)
	}
	slices.Reverse(byRank[:])
	return slices.Concat(byRank[:]...)
}

func (s *Store) filter(r ListRequest) (func(*Card) bool, error) {
	if r.Status != "" {
		if !slices.Contains(Statuses, r.Status) {
			return nil, invalid("status %q, want {%s}", r.Status, strings.Join(Statuses, ","))
		}
	}
	if r.Priority != "" && rank(r.Priority) == 0 {
		return nil, invalid("priority %q, want {%s}", r.Priority, strings.Join(Priorities, ","))
	}
	var created, updated *dateFilter
	for _, d := range []struct {
		text string
		f    **dateFilter
	}{{r.Created, &created}, {r.Updated, &updated}} {
		if d.text == "" {
			continue
		}
		f, err := parseDateFilter(d.text, s.now())
		if err != nil {
			return nil, &Error{Code: CodeInvalidParams, Message: err.Error()}
		}
		*d.f = &f
	}
	return func(c *Card) bool {
		switch {
		case r.Status != "" && c.Status.CardWord() != r.Status,
			r.Assignee != "" && !strings.EqualFold(c.Assignee, r.Assignee),
			r.Priority != "" && !strings.EqualFold(c.Priority, r.Priority),
			created != nil && !created.match(c.Created),
			len(r.Tags) > 0 && !anyTag(c.Tags, r.Tags):
			return false
		}
		if updated == nil {
			return true
		}
		if c.UpdatedText == "" {
			return updated.match(c.ModTime)
		}
		return updated.match(c.Updated)
	}, nil
}

func anyTag(have, want []string) bool {
	return slices.ContainsFunc(want, func(w string) bool {
		return slices.ContainsFunc(have, func(h string) bool { return strings.EqualFold(h, w) })
	})
}
