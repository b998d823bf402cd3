package benchmarks

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// maxText bounds a line of texts in bytes; a model reads far less of it.
const maxText = 16 << 20

// ReadTexts reads a file of JSON strings, one a line; blank lines are passed over.
func ReadTexts(file string) ([]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var texts []string
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 64<<10), maxText)
	for n := 1; lines.Scan(); n++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		var text string
		if err := json.Unmarshal(lines.Bytes(), &text); err != nil {
			return nil, fmt.Errorf("%s:%d: want a JSON string: %w", file, n, err)
		}
		texts = append(texts, text)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return texts, nil
}
