package catalog

import (
	"bytes"
	"encoding/json"
	"iter"
	"strconv"
)

// members yields the members of a JSON object by key, or the elements of an array by index,
// in order; other values have none. text must be valid JSON. The values are parts of text,
// so that a large document is not in memory twice.
func members(text []byte) iter.Seq2[string, json.RawMessage] {
	return func(yield func(key string, value json.RawMessage) bool) {
		at := skipSpace(text, 0)
		if at == len(text) || text[at] != '{' && text[at] != '[' {
			return
		}
		object := text[at] == '{'
		at = skipSpace(text, at+1)
		for n := 0; at < len(text) && text[at] != '}' && text[at] != ']'; n++ {
			key := strconv.Itoa(n)
			if object {
				end := valueEnd(text, at)
				_ = json.Unmarshal(text[at:end], &key) // text is valid
				at = skipSpace(text, skipSpace(text, end)+1)
			}
			end := valueEnd(text, at)
			if !yield(key, json.RawMessage(text[at:end:end])) {
				return
			}
			if at = skipSpace(text, end); at < len(text) && text[at] == ',' {
				at = skipSpace(text, at+1)
			}
		}
	}
}

// member returns a member of a JSON object, nil if it is missing or null. If several have
// the key, it returns the last.
func member(object []byte, key string) (found json.RawMessage) {
	for k, value := range members(object) {
		if k == key {
			found = value
		}
	}
	return present(found)
}

// present returns value, or nil for the JSON value null.
func present(value json.RawMessage) json.RawMessage {
	if bytes.Equal(value, []byte("null")) {
		return nil
	}
	return value
}

func skipSpace(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r') {
		at++
	}
	return at
}

// valueEnd returns the end offset of the JSON value that begins at an offset.
func valueEnd(text []byte, at int) int {
	depth := 0
	for i := at; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return min(i+1, len(text))
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // the end of a number or a literal
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
		}
	}
	return len(text)
}
