package support

import (
	"regexp"
	"slices"
	"strings"

	"cairn/internal/store/keyword"
)

// quantity is a number with its unit.
type quantity struct{ number, unit string }

// measured matches a number and the word after it, as in "90 days", "90-day" and "5 MB".
var measured = regexp.MustCompile(`(\d[\d,]*(?:\.\d+)*)[ -]?([A-Za-z]+|%)`)

// units maps the spellings of units to one each.
var units = func() map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(`ms millisecond milliseconds
s sec secs second seconds
min mins minute minutes
h hour hours
day days
week weeks
month months
year years
byte bytes
kb kilobyte kilobytes kib
mb megabyte megabytes mib
gb gigabyte gigabytes gib
tb terabyte terabytes tib
% percent
m meter meters metre metres
km kilometer kilometers kilometre kilometres
euro euros eur
dollar dollars usd`) {
		spellings := strings.Fields(line)
		for _, s := range spellings {
			m[s] = spellings[len(spellings)-1]
		}
	}
	return m
}()

// quantitiesOf returns the numbers of a text that have a unit.
func quantitiesOf(s string) (found []quantity) {
	for _, m := range measured.FindAllStringSubmatch(s, -1) {
		if unit := units[strings.ToLower(m[2])]; unit != "" {
			for n := range numbersOf(m[1]) {
				found = append(found, quantity{n, unit})
			}
		}
	}
	return found
}

// otherUnit returns the unit that the text gives to the number of q, if each time it gives
// another one than q does.
func (t *text) otherUnit(q quantity) string {
	other := ""
	for i := range t.sentences {
		for _, have := range quantitiesOf(t.sentences[i].text) {
			switch {
			case have == q:
				return ""
			case have.number == q.number:
				other = have.unit
			}
		}
	}
	return other
}

// opposites are pairs of terms that exclude each other in two statements about the same
// thing.
var opposites = func() (pairs [][2]string) {
	for line := range strings.Lines(`morning night
morning evening
day night
minimum maximum
enabled disabled
increases decreases
required optional
accepted rejected
allowed forbidden
public private
succeeds fails
oldest newest
slower faster`) {
		terms := keyword.Analyze(line)
		if terms = slices.Compact(terms); len(terms) == 2 {
			pairs = append(pairs, [2]string{terms[0], terms[1]})
		}
	}
	return pairs
}()
