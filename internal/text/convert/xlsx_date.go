package convert

import (
	"cmp"
	"fmt"
	"math"
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
	days, hours, month := false, false, false
	for i := 0; i < len(code); i++ {
		switch code[i] {
		case '\\', '_', '*': // the next character is a literal
			i++
		case '"', '[':
			closing := map[byte]string{'"': `"`, '[': "]"}[code[i]]
			n := strings.Index(code[i+1:], closing)
			if n < 0 {
				return noDate
			}
			if inner := code[i+1 : i+1+n]; code[i] == '[' && strings.Trim(inner, "hms") == "" {
				hours = true
			}
			i += n + 1
		case 'y', 'd':
			days = true
		case 'h', 's':
			hours = true
		case 'm':
			month = true
		case '0', '#', '?':
			if !hours { // not the fraction of a second
				return noDate
			}
		case 'g': // General
			return noDate
		}
	}
	switch {
	case days && hours:
		return dateTime
	case hours:
		return timeOfDay
	case days, month:
		return date
	}
	return noDate
}

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
