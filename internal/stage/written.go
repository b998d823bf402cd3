package stage

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// citationInText matches the citations in a text: the number of a passage or an id.
var citationInText = regexp.MustCompile(`\[(\d{1,2})\]|\[?(doc:[^\s\]()]+)\]?`)

// ReadAnswer parses an answer that a person has written, and adds it to a. The answer is a
// text that cites the passages of b by number or id, or a JSON object with the fields of
// Answered.
func (b *Brief) ReadAnswer(text string, a Answered) (*Answered, error) {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "{") {
		citations := a.Citations
		a.Citations = nil // Decode would write into the slice of the caller
		dec := json.NewDecoder(strings.NewReader(text))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&a); err != nil {
			return nil, fmt.Errorf(`the answer begins like JSON but is not {"answer", "citations", "not_found"}: %w`, err)
		}
		a.Citations = append(a.Citations, citations...)
		return &a, nil
	}
	a.Answer = text
	for _, m := range citationInText.FindAllStringSubmatch(text, -1) {
		id := strings.TrimRight(m[2], ".,;:!?")
		if m[1] != "" {
			n, _ := strconv.Atoi(m[1]) // at most two digits
			if n < 1 || n > len(b.Passages) {
				return nil, fmt.Errorf("the answer cites [%d], want [1] to [%d]", n, len(b.Passages))
			}
			id = b.Passages[n-1].ID
		}
		a.Citations = append(a.Citations, id)
	}
	return &a, nil
}
