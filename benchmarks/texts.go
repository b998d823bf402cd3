package benchmarks

import (
	"encoding/json"
	"fmt"
)

// ReadTexts reads a file with one JSON string per line. It skips blank lines.
func ReadTexts(file string) ([]string, error) {
	var texts []string
	err := readLines(file, func(line []byte) error {
		var text string
		if err := json.Unmarshal(line, &text); err != nil {
			return fmt.Errorf("want a JSON string: %w", err)
		}
		texts = append(texts, text)
		return nil
	})
	return texts, err
}
