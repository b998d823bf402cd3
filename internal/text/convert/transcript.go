package convert

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

var errNoTranscript = &Error{"not a transcript of an agent"}

// maxTitle is the maximum size of a turn's heading in bytes.
const maxTitle = 80

// record is a line of a transcript. Claude Code stores the message in Message, Codex in
// Payload or in the record itself.
type record struct {
	turn
	Message turn `json:"message"`
	Payload turn `json:"payload"`
	Meta    bool `json:"isMeta"`
}

type turn struct {
	Type    string  `json:"type"`
	Role    string  `json:"role"`
	Content content `json:"content"`
}

// content is a list of parts, or a single text.
type content []contentPart

type contentPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
	Name string `json:"name"` // of a tool
}

func (c *content) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		*c = content{{Type: "text"}}
		return json.Unmarshal(data, &(*c)[0].Text)
	}
	return eachOf(data, func(d *json.Decoder) error {
		var part contentPart
		err := d.Decode(&part)
		if part.Text != "" || part.Name != "" {
			*c = append(*c, part)
		}
		return err
	})
}

// Transcript converts the conversation with an agent, one JSON object per line. The
// user's turn n becomes a section with the anchor turn-n, followed by the answers. The
// tools that were called are listed without arguments and results.
func Transcript(w *writer, data []byte) error {
	number, speaker := 0, ""
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		w.spend(1000 + 32*len(line))
		var r record
		if json.Unmarshal(line, &r) != nil || r.Meta {
			continue
		}
		t := r.Message
		if t.Role == "" {
			t = r.Payload
		}
		if t.Role == "" {
			t = r.turn
		}
		text, tools := t.Content.text()
		switch {
		case t.Role == "user" && text != "":
			number++
			w.heading(2, cut(strings.Join(strings.Fields(text), " "), maxTitle), "turn-"+strconv.Itoa(number))
			w.markdown(text)
		case t.Role == "assistant" && number > 0 && text+tools != "":
			if speaker != t.Role {
				w.text("Answer:")
			}
			if text != "" {
				w.markdown(text)
			}
			if tools != "" {
				w.text("Tools: " + tools)
			}
		default:
			continue
		}
		speaker = t.Role
	}
	if number == 0 {
		return errNoTranscript
	}
	return nil
}

// text returns the text of the parts and the names of the tools called.
func (c content) text() (text, tools string) {
	var texts, names []string
	for _, part := range c {
		switch part.Type {
		case "text", "input_text", "output_text":
			if t := strings.TrimSpace(part.Text); t != "" && !strings.HasPrefix(t, "<environment_context>") {
				texts = append(texts, t)
			}
		case "tool_use":
			names = append(names, part.Name)
		}
	}
	return strings.Join(texts, "\n\n"), strings.Join(names, ", ")
}
