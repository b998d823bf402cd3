package web

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/task"
	"cairn/internal/text/markdown"
)

var (
	// stepMark matches a step in the text of a card, and shownStep in its HTML.
	stepMark  = regexp.MustCompile(`(?m)^(\s*(?:[-*+]|\d{1,9}[.)])\s+\[)[ xX](\]\s)`)
	shownStep = regexp.MustCompile(`disabled="" type="checkbox"`)
)

// bodyHash identifies a version of the text of a card.
func bodyHash(body string) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(body)))
	return hex.EncodeToString(sum[:8])
}

// withSteps makes the boxes of the steps of a card changeable.
func withSteps(html template.HTML) template.HTML {
	n := -1
	return template.HTML(shownStep.ReplaceAllStringFunc(string(html), func(string) string {
		n++
		return fmt.Sprintf(`data-step="%d" type="checkbox"`, n)
	}))
}

// edited returns the text of a card after a form: with a new text, or with one step done or to
// do. A form for an earlier version changes nothing.
func edited(form url.Values) func(body string) (string, error) {
	return func(body string) (string, error) {
		if form.Get("was") != bodyHash(body) {
			return "", &task.Error{Number: task.CodeValidation, Message: "The text of the card has changed meanwhile", Data: map[string]any{"suggestion": "Load the page again"}}
		}
		if form.Has("body") {
			return "\n" + strings.TrimSpace(strings.ReplaceAll(form.Get("body"), "\r\n", "\n")) + "\n", nil
		}
		mark := " "
		if form.Get("done") == "true" {
			mark = "x"
		}
		fences := markdown.Fences([]byte(body))
		n := -1
		for _, m := range stepMark.FindAllStringSubmatchIndex(body, -1) {
			if slices.ContainsFunc(fences, func(f markdown.Fence) bool { return f.Start <= m[0] && m[0] < f.End }) {
				continue
			}
			if n++; strconv.Itoa(n) == form.Get("step") {
				return body[:m[3]] + mark + body[m[4]:], nil
			}
		}
		return body, nil
	}
}
