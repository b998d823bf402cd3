package task

import (
	"encoding/json"
	"strings"
)

// Slugs is a list of slugs. In JSON it is a string, an array of strings, or such an array
// encoded as a string.
type Slugs []string

// UnmarshalJSON implements json.Unmarshaler.
func (s *Slugs) UnmarshalJSON(text []byte) error {
	var one string
	if err := json.Unmarshal(text, &one); err != nil {
		var many []string
		if err := json.Unmarshal(text, &many); err != nil {
			return err
		}
		*s = append(Slugs{}, many...)
		return nil
	}
	if strings.HasPrefix(strings.TrimSpace(one), "[") {
		var many []string
		if json.Unmarshal([]byte(one), &many) == nil {
			*s = append(Slugs{}, many...)
			return nil
		}
	}
	*s = Slugs{one}
	return nil
}
