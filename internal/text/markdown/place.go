package markdown

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// linesSuffix matches a path with the suffix ":from-to".
var linesSuffix = regexp.MustCompile(`^(.+):([0-9]{1,9})(?:-([0-9]{1,9}))?$`)

// SplitPlace splits a place in a document: path#anchor, or path:from-to or path:from with
// lines from 1. Without lines from and to are 0, without an anchor anchor is "". It fails if
// the lines are no range.
func SplitPlace(place string) (path, anchor string, from, to int, err error) {
	if i := strings.LastIndexByte(place, '#'); i > 0 {
		return place[:i], place[i+1:], 0, 0, nil
	}
	m := linesSuffix.FindStringSubmatch(place)
	if m == nil {
		return place, "", 0, 0, nil
	}
	from, _ = strconv.Atoi(m[2]) // the pattern matches digits only
	if to = from; m[3] != "" {
		to, _ = strconv.Atoi(m[3])
	}
	if from < 1 || to < from {
		err = fmt.Errorf("lines %d-%d, want FROM-TO with 1 <= FROM <= TO", from, to)
	}
	return m[1], "", from, to, err
}
