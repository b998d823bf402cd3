package cards

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"cairn/internal/task"
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
	Ordinal  *float64 `json:"ordinal,omitempty"` // of a card that a person placed by hand, smallest first
}

// List implements list_tasks: the most urgent cards first, then by creation. It also returns
// the files that are not cards.
func (s *Store) List(r ListRequest) (list []ListItem, unusable []task.Problem, err error) {
	match, err := s.filter(r)
	if err != nil {
		return nil, nil, err
	}
	b, err := s.Board()
	if err != nil {
		return nil, nil, err
	}
	list = []ListItem{}
	for _, c := range b.ByUrgency() {
		if match(c) {
			list = append(list, ListItem{c.ID, c.Title, c.Priority, orNull(c.Assignee), c.Status.CardWord(), append([]string{}, c.Tags...), nil})
			if !math.IsInf(c.Ordinal, 0) {
				list[len(list)-1].Ordinal = &c.Ordinal
			}
		}
	}
	return list, b.Unusable, nil
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
	if r.Status != "" && !slices.Contains(Statuses, r.Status) {
		return nil, task.Invalid("status %q, want {%s}", r.Status, strings.Join(Statuses, ","))
	}
	if r.Priority != "" && rank(r.Priority) == 0 {
		return nil, task.Invalid("priority %q, want {%s}", r.Priority, strings.Join(Priorities, ","))
	}
	created, err := parseDateFilter(r.Created, s.o.Now)
	updated, err2 := parseDateFilter(r.Updated, s.o.Now)
	if err = cmp.Or(err, err2); err != nil {
		return nil, err
	}
	return func(c *Card) bool {
		switch {
		case r.Status != "" && c.Status.CardWord() != r.Status,
			r.Assignee != "" && !strings.EqualFold(c.Assignee, r.Assignee),
			r.Priority != "" && !strings.EqualFold(c.Priority, r.Priority),
			!created.match(c.Created),
			len(r.Tags) > 0 && !slices.ContainsFunc(r.Tags, func(want string) bool {
				return slices.ContainsFunc(c.Tags, func(tag string) bool { return strings.EqualFold(tag, want) })
			}):
			return false
		}
		if c.UpdatedText == "" {
			return updated.match(c.ModTime)
		}
		return updated.match(c.Updated)
	}, nil
}

// parseTime parses a date of a card. exact is true for RFC 3339 and false for other common
// forms, such as a date without a time or seconds since 1970. An invalid text gives the zero
// time.
func parseTime(text string) (at time.Time, exact bool) {
	for i, layout := range []string{time.RFC3339, time.DateOnly, "2006-01-02T15:04:05", time.DateTime, "2006-01-02 15:04", "2006/01/02", "2006/01/02 15:04:05"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), i == 0
		}
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 100_000_000 && n < 1<<35 {
		return time.Unix(n, 0).UTC(), false
	}
	return time.Time{}, false
}

// dateFilter matches the days before, in or after the range [first, last]. Days are counted
// from 1970. The zero value matches every time.
type dateFilter struct {
	op          byte // '<', '>' or '='
	first, last int64
}

const secondsPerDay = 24 * 60 * 60

func dayOf(t time.Time) int64 { return int64(math.Floor(float64(t.Unix()) / secondsPerDay)) }

func (f dateFilter) match(t time.Time) bool {
	if f.op == 0 || t.IsZero() {
		return f.op == 0
	}
	switch day := dayOf(t); f.op {
	case '<':
		return day < f.first
	case '>':
		return day > f.last
	default:
		return f.first <= day && day <= f.last
	}
}

// maxUnits is the maximum number in a relative date.
const maxUnits = 100_000

// parseDateFilter parses a filter for dates, "" for none. All dates are in UTC:
//
//	2024-03-05, 2024-03, 2024   that day, month or year
//	>2024-03, <2024             after its last day, before its first
//	7d, 2w, 3m, 1y              within the last 7 days and so on, including both ends;
//	                            a month has 30 days, a year 365
//	>2w, <2w                    after, before the day 2 weeks ago
//	today, yesterday, this week, last week
//	                            also with > and <; a week begins on Monday
func parseDateFilter(text string, now func() time.Time) (dateFilter, error) {
	if text == "" {
		return dateFilter{}, nil
	}
	f := dateFilter{op: '='}
	rest := strings.TrimSpace(text)
	if rest != "" && (rest[0] == '<' || rest[0] == '>') {
		f.op, rest = rest[0], strings.TrimSpace(rest[1:])
	}
	// The message is from the specification.
	refuse := &task.Error{Number: task.CodeInvalidParams, Message: "Invalid date format: '" + text + "'. Expected: YYYY-MM-DD, YYYY-MM, YYYY, or relative (7d, 2w, 3m, 1y)"}
	today := dayOf(now())
	monday := today - (today+3)%7 // day 0 was a Thursday
	words := map[string][2]int64{"today": {today, today}, "yesterday": {today - 1, today - 1}, "this week": {monday, monday + 6}, "last week": {monday - 7, monday - 1}}
	if days, ok := words[strings.ToLower(rest)]; ok {
		f.first, f.last = days[0], days[1]
		return f, nil
	}
	if n := len(rest); n >= 2 {
		if days, ok := map[byte]int64{'d': 1, 'w': 7, 'm': 30, 'y': 365}[rest[n-1]]; ok {
			units, err := strconv.ParseUint(rest[:n-1], 10, 32)
			if err != nil || units > maxUnits {
				return f, refuse
			}
			f.first = today - int64(units)*days
			if f.last = f.first; f.op == '=' {
				f.last = today
			}
			return f, nil
		}
	}
	for _, l := range []struct {
		layout              string
		years, months, days int
	}{{time.DateOnly, 0, 0, 1}, {"2006-01", 0, 1, 0}, {"2006", 1, 0, 0}} {
		if t, err := time.Parse(l.layout, rest); err == nil {
			f.first, f.last = dayOf(t), dayOf(t.AddDate(l.years, l.months, l.days))-1
			return f, nil
		}
	}
	return f, refuse
}
