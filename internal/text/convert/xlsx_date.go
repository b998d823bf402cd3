package convert

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// dateStyle is the part of a serial date that a number format shows.
type dateStyle uint8

const (
	noDate dateStyle = iota
	date
	dateTime
	timeOfDay
)

// dates formats the dates of a workbook.
type dates struct {
	styles   []dateStyle
	from1904 bool
}

// value returns a number as a date if the cell format with that index is a date format,
// and otherwise unchanged.
func (d *dates) value(number, format string) string {
	n, err := strconv.Atoi(format)
	if err != nil || n < 0 || n >= len(d.styles) || d.styles[n] == noDate {
		return number
	}
	return cmp.Or(dateOf(number, d.styles[n], d.from1904), number)
}

// dateStyles returns the date style of each cell format of a workbook, by the index that
// cells use.
func (a *archive) dateStyles() []dateStyle {
	custom := map[string]dateStyle{}
	var styles []dateStyle
	inCells := false
	for x := a.xml("xl/styles.xml"); x.next(); {
		switch {
		case x.start == "numFmt":
			custom[x.attr("numFmtId")] = styleOf(x.attr("formatCode"))
		case x.start == "cellXfs":
			inCells = true
		case x.end == "cellXfs":
			inCells = false
		case x.start == "xf" && inCells:
			id := x.attr("numFmtId")
			style, ok := custom[id]
			if !ok {
				style = builtInStyle(id)
			}
			styles = append(styles, style)
		}
	}
	return styles
}

// builtInStyle returns the style of a built-in number format: ECMA-376, part 1, section
// 18.8.30.
func builtInStyle(id string) dateStyle {
	switch n, _ := strconv.Atoi(id); {
	case n >= 14 && n <= 17, n >= 27 && n <= 31, n == 36, n >= 50 && n <= 58:
		return date
	case n == 22:
		return dateTime
	case n >= 18 && n <= 21, n >= 32 && n <= 35, n >= 45 && n <= 47:
		return timeOfDay
	}
	return noDate
}

// styleOf returns the style of a number format such as "yyyy\-mm\-dd hh:mm".
func styleOf(code string) dateStyle {
	code, _, _ = strings.Cut(strings.ToLower(code), ";") // of positive numbers
	code = literals.ReplaceAllStringFunc(code, func(s string) string {
		if s[0] == '[' && strings.Trim(s[1:len(s)-1], "hms") == "" {
			return "h" // the hours of a duration
		}
		return ""
	})
	hours := strings.IndexAny(code, "hs")
	days := strings.ContainsAny(code, "yd")
	digits := strings.IndexAny(code, "0#?")
	switch {
	case digits >= 0 && (hours < 0 || digits < hours), // not the fraction of a second
		strings.ContainsAny(code, `g["`): // General, or broken
		return noDate
	case days && hours >= 0:
		return dateTime
	case hours >= 0:
		return timeOfDay
	case days, strings.Contains(code, "m"):
		return date
	}
	return noDate
}

// literals matches the parts of a number format that are not of the number.
var literals = regexp.MustCompile(`[\\_*](?s:.)?|"[^"]*"|\[[^\]]*\]`)

// dateOf formats a serial date in the order of ISO 8601, "" for a number that is not a
// date. Days count from the end of 1899, or of 1903 in old Macintosh files.
func dateOf(serial string, style dateStyle, from1904 bool) string {
	const last = 2958466 // the day after 9999-12-31
	days, err := strconv.ParseFloat(serial, 64)
	if err != nil || !(days >= 0 && days < last) {
		return ""
	}
	if style == timeOfDay && days >= 1 { // a duration
		seconds := int64(math.Round(days * 24 * 60 * 60))
		return fmt.Sprintf("%d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
	}
	epoch := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	switch {
	case from1904:
		epoch = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	case days < 60: // Excel has a 29 February 1900
		epoch = epoch.AddDate(0, 0, 1)
	}
	whole := math.Floor(days)
	t := epoch.AddDate(0, 0, int(whole)).Add(time.Duration(math.Round((days-whole)*24*60*60)) * time.Second)
	switch {
	case style == timeOfDay:
		return t.Format(time.TimeOnly)
	case style == date || whole == days:
		return t.Format(time.DateOnly)
	}
	return t.Format(time.DateTime)
}
