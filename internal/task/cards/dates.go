package cards

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// parseTime parses a date of a card. exact is true for RFC 3339 and false for other common
// forms, such as a date without a time. An invalid text gives the zero time.
func parseTime(text string) (at time.Time, exact bool) {
	for i, layout := range []string{time.RFC3339, time.DateOnly, "2006-01-02T15:04:05", time.DateTime, "2006-01-02 15:04", "2006/01/02", "2006/01/02 15:04:05"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), i == 0
		}
	}
	return time.Time{}, false
}

// dateFilter matches the days before, in or after the range [first, last]. Days are counted
// from 1970.
type dateFilter struct {
	op          byte // '<', '>' or '='
	first, last int64
}

const secondsPerDay = 24 * 60 * 60

func dayOf(t time.Time) int64 { return int64(math.Floor(float64(t.Unix()) / secondsPerDay)) }

func (f dateFilter) match(t time.Time) bool {
	if t.IsZero() {
		return false
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

// dateError reports an invalid filter, with the text of the specification.
type dateError struct{ text string }

func (e *dateError) Error() string {
	return fmt.Sprintf("Invalid date format: '%s'. Expected: YYYY-MM-DD, YYYY-MM, YYYY, or relative (7d, 2w, 3m, 1y)", e.text)
}

// maxUnits is the maximum number in a relative date.
const maxUnits = 100_000

// parseDateFilter parses a filter for dates. All dates are in UTC:
//
//	2024-03-05, 2024-03, 2024   that day, month or year
//	>2024-03, <2024             after its last day, before its first
//	7d, 2w, 3m, 1y              within the last 7 days and so on, including both ends;
//	                            a month has 30 days, a year 365
//	>2w, <2w                    after, before the day 2 weeks ago
//	today, yesterday, this week, last week
//	                            also with > and <; a week begins on Monday
func parseDateFilter(text string, now time.Time) (dateFilter, error) {
	f := dateFilter{op: '='}
	rest := strings.TrimSpace(text)
	if rest != "" && (rest[0] == '<' || rest[0] == '>') {
		f.op, rest = rest[0], strings.TrimSpace(rest[1:])
	}
	refuse := &dateError{text}
	today := dayOf(now)
	monday := today - (today+3)%7 // day 0 was a Thursday
	switch strings.ToLower(rest) {
	case "today":
		f.first, f.last = today, today
		return f, nil
	case "yesterday":
		f.first, f.last = today-1, today-1
		return f, nil
	case "this week":
		f.first, f.last = monday, monday+6
		return f, nil
	case "last week":
		f.first, f.last = monday-7, monday-1
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
