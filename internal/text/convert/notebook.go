package convert

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The maximum size of a cell's output.
const (
	maxOutputLines = 20
	maxOutputBytes = 2000
)

// notebook is a Jupyter notebook of version 3 or later. Its cells are decoded one at a time.
type notebook struct {
	Cells      json.RawMessage `json:"cells"`
	Worksheets []struct {
		Cells json.RawMessage `json:"cells"`
	} `json:"worksheets"`
	Metadata struct {
		Kernel struct {
			Language string `json:"language"`
		} `json:"kernelspec"`
		Language struct {
			Name string `json:"name"`
		} `json:"language_info"`
	} `json:"metadata"`
}

type cell struct {
	Type    string      `json:"cell_type"`
	Source  joined      `json:"source"`
	Input   joined      `json:"input"` // version 3
	Level   int         `json:"level"` // of a heading in version 3
	Outputs []cellPrint `json:"outputs"`
	About   struct {
		Mime string `json:"raw_mimetype"`
	} `json:"metadata"`
}

type cellPrint struct {
	Type string `json:"output_type"`
	Text joined `json:"text"`
	Data struct {
		Plain joined `json:"text/plain"`
	} `json:"data"`
	Name  string `json:"ename"`
	Value string `json:"evalue"`
}

// joined is a string, written in JSON as a string or as the list of its lines.
type joined string

func (j *joined) UnmarshalJSON(data []byte) error {
	if data[0] == '[' {
		var lines []string
		if err := json.Unmarshal(data, &lines); err != nil {
			return err
		}
		*j = joined(strings.Join(lines, ""))
		return nil
	}
	return json.Unmarshal(data, (*string)(j))
}

// Notebook converts a Jupyter notebook. It copies Markdown, and writes code and the
// first lines of its output as fenced code blocks. Cell n has the anchor cell-n.
func Notebook(w *writer, data []byte) error {
	var n notebook
	if err := json.Unmarshal(data, &n); err != nil {
		return errBroken
	}
	lists := []json.RawMessage{n.Cells}
	for _, sheet := range n.Worksheets {
		lists = append(lists, sheet.Cells)
	}
	language := cmp.Or(n.Metadata.Kernel.Language, n.Metadata.Language.Name)
	if strings.Trim(strings.ToLower(language), "abcdefghijklmnopqrstuvwxyz0123456789+#-") != "" {
		language = ""
	}
	number := 0
	for _, list := range lists {
		err := eachOf(list, func(d *json.Decoder) error {
			w.spend(500)
			var c cell
			if err := d.Decode(&c); err != nil {
				return err
			}
			number++
			w.cell(number, &c, language)
			return nil
		})
		if err != nil {
			return errBroken
		}
	}
	return nil
}

// eachOf calls do for each element of a JSON array, which do decodes. Anything else has no
// elements.
func eachOf(list json.RawMessage, do func(*json.Decoder) error) error {
	if len(list) == 0 || list[0] != '[' {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(list))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		if err := do(d); err != nil {
			return err
		}
	}
	return nil
}

// cell writes cell n of a notebook.
func (w *writer) cell(n int, c *cell, language string) {
	source := string(c.Source + c.Input)
	if strings.TrimSpace(source) == "" && len(c.Outputs) == 0 {
		return
	}
	w.mark("cell-" + strconv.Itoa(n))
	switch c.Type {
	case "markdown":
		w.markdown(source)
	case "raw": // input of a documentation generator, often reStructuredText
		if strings.HasSuffix(c.About.Mime, "html") || strings.HasSuffix(c.About.Mime, "latex") {
			w.code("", source)
		} else {
			w.markdown(source)
		}
	case "heading":
		w.heading(c.Level, source, "")
	case "code":
		w.code(language, source)
		for _, o := range c.Outputs {
			w.code("text", o.String())
		}
	default:
		w.code("", source)
	}
}

// String returns the first lines of an output as text, "" for an image.
func (o *cellPrint) String() string {
	text := string(o.Text + o.Data.Plain)
	if o.Name != "" {
		text += o.Name + ": " + o.Value
	}
	lines := strings.SplitAfterN(cut(text, maxOutputBytes), "\n", maxOutputLines+1)
	if len(lines) > maxOutputLines {
		return strings.Join(lines[:maxOutputLines], "") + "…"
	}
	return strings.Join(lines, "")
}

// cut shortens a text to at most limit bytes and an ellipsis.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}
