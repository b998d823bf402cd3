package benchmarks

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/toolbox/toolsearch"
)

// TestParts: the share of invented intents that are split into the parts that their author marked.
func TestParts(t *testing.T) {
	x := toolsearch.New(nil, toolsearch.Options{Reader: toolReader})
	for name, least := range map[string]float64{"invented-dev.txt.gz": .85} {
		list, err := readMarked(filepath.Join("testdata", name))
		if err != nil || len(list) < 500 {
			t.Fatalf("%d intents, %v", len(list), err)
		}
		right := 0
		for i := range list {
			var found [][2]int
			parts, probability, err := x.Parts(t.Context(), list[i].text)
			if err != nil || probability <= 0 || probability > 1 {
				t.Fatalf("%q: probability %v, %v", list[i].text, probability, err)
			}
			for _, p := range parts {
				if !p.Statement {
					found = append(found, [2]int{p.Start, p.End})
				}
			}
			if list[i].splitRight(found) {
				right++
			}
		}
		share := float64(right) / float64(len(list))
		t.Logf("%s: %d intents, %.3f split right", name, len(list), share)
		if share < least {
			t.Errorf("%s: %.3f of the intents are split right, want %.3f", name, share, least)
		}
	}
}

// markedRequest is a request with the places of its parts, as byte offsets.
type markedRequest struct {
	text  string
	parts [][2]int
}

// readMarked reads the requests of a file.
func readMarked(name string) (list []markedRequest, err error) {
	err = readLines(name, func(line []byte) error {
		if !bytes.Contains(line, []byte("[[")) {
			return nil
		}
		text := string(line[bytes.LastIndexByte(line, '\t')+1:])
		if before, after, ok := strings.Cut(text, "|"); ok && !strings.Contains(before, "[[") {
			text = after
		}
		list = append(list, marked(strings.TrimSpace(text)))
		return nil
	})
	return list, err
}

// marked reads a request with its parts in double brackets.
func marked(text string) (m markedRequest) {
	for {
		before, rest, ok := strings.Cut(text, "[[")
		m.text += before
		if !ok {
			return m
		}
		part, after, _ := strings.Cut(rest, "]]")
		m.add(part)
		text = after
	}
}

func (m *markedRequest) add(part string) {
	m.parts = append(m.parts, [2]int{len(m.text), len(m.text) + len(part)})
	m.text += part
}

// splitRight reports whether each part of a request has one of the ranges for itself, which covers
// most of it, and no range is left.
func (m *markedRequest) splitRight(found [][2]int) bool {
	if len(found) != len(m.parts) {
		return false
	}
	for i, p := range m.parts {
		if common := min(p[1], found[i][1]) - max(p[0], found[i][0]); 10*common < 6*(p[1]-p[0]) {
			return false
		}
	}
	return true
}

// TestMarked: requests are read with their parts.
func TestMarked(t *testing.T) {
	m := marked("so [[star the repo]], and [[close 5]].")
	if want := (markedRequest{"so star the repo, and close 5.", [][2]int{{3, 16}, {22, 29}}}); m.text != want.text || !slices.Equal(m.parts, want.parts) {
		t.Errorf("%+v, want %+v", m, want)
	}
	if !m.splitRight([][2]int{{0, 16}, {22, 30}}) || m.splitRight([][2]int{{0, 30}}) || m.splitRight([][2]int{{3, 16}, {27, 30}}) {
		t.Error("splitRight is wrong")
	}
}
