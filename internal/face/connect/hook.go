package connect

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"cairn/internal/text/jsonedit"
)

// sessionStart is the event of a client at the start of a session. The client adds what a command
// prints then to the context of its model.
const sessionStart = "SessionStart"

// briefArgs are the arguments of the command that Hook makes a client run. The client sets the
// variable.
const briefArgs = ` status --brief -C "$CLAUDE_PROJECT_DIR"`

// hooks edits the hooks in the settings of a client.
var hooks = Client{section: "hooks"}

// Hook plans the change that makes the client run program with briefArgs at the start of a
// session, in place of another program with them, nil if the client has no such hook. Without a program it removes the hook: if nothing
// else has changed the settings since, they become what they were, byte for byte.
func (c Client) Hook(at File, program string) (*Change, error) {
	if c.hooks == "" {
		return nil, nil
	}
	return plan(at.Root, filepath.Join(at.Root, filepath.FromSlash(c.hooks)), func(f *Change) (err error) {
		if f.record, err = openRecord(at.Copies, f.Path); err != nil {
			return err
		}
		if f.removes = program == ""; f.removes && f.Old != nil && sumOf(f.Old) == f.record.Wrote {
			f.New = f.record.before
			return nil
		}
		if f.New, err = setHook(f.Path, f.Old, program); err == nil && !f.removes {
			if sumOf(f.Old) != f.record.Wrote {
				f.record.before, err = setHook(f.Path, f.Old, "")
			}
			f.record.Wrote = sumOf(f.New)
		}
		return err
	})
}

// setHook returns settings with the hook that runs program, or without it if program is "".
func setHook(path string, old []byte, program string) ([]byte, error) {
	all, err := hooks.parse(path, old)
	if err != nil {
		return nil, err
	}
	have := "" // the command of the hook
	own := func(hook any) bool {
		values, _ := hook.(map[string]any)
		command, _ := values["command"].(string)
		have = command
		return strings.HasSuffix(command, briefArgs)
	}
	groups, isList := under(all, hooks.section, sessionStart).([]any)
	if !isList && under(all, hooks.section, sessionStart) != nil {
		return nil, &UnsuitableError{path, sessionStart + " in it is not a list"}
	}
	found := slices.IndexFunc(groups, func(group any) bool {
		values, _ := group.(map[string]any)
		list, _ := values["hooks"].([]any)
		return len(list) == 1 && own(list[0])
	})
	command := program + briefArgs
	if program != "cairn" { // a path
		command = `"` + filepath.ToSlash(program) + `"` + briefArgs
	}
	switch {
	case found < 0 && program == "" || found >= 0 && have == command:
		return old, nil
	case found >= 0 && program != "":
		if old, err = setHook(path, old, ""); err != nil {
			return nil, err
		}
		return setHook(path, old, program)
	}
	unit := jsonedit.Indent(old)
	text := hooks.entryText(old, sessionStart)
	if program == "" && len(groups) == 1 {
		if text, err = hooks.set(path, old, sessionStart, nil); err != nil {
			return nil, err
		}
		return hooks.withoutEmpty(path, text)
	}
	group := map[string]any{"hooks": []any{map[string]string{"type": "command", "command": command}}}
	if len(groups) == 0 {
		return hooks.set(path, old, sessionStart, marshal([]any{group}, unit+unit, unit))
	}
	list, _ := hujson.Parse(bytes.Clone(text)) // never fails: it is in the file
	array := list.Value.(*hujson.Array)
	if program == "" {
		if last := len(array.Elements) - 1; found == last && found > 0 && array.Elements[last].AfterExtra == nil {
			array.Elements[last-1].AfterExtra = nil // no comma at the end
		}
		array.Elements = slices.Delete(array.Elements, found, found+1) // with the comments before it
	} else {
		element, _ := hujson.Parse(marshal(group, unit+unit+unit, unit)) // never fails: it is JSON
		element.BeforeExtra = hujson.Extra("\n" + unit + unit + unit)
		if array.Elements[len(array.Elements)-1].AfterExtra != nil { // a comma at the end of the list stays there
			element.AfterExtra = hujson.Extra{}
		}
		array.Elements = append(array.Elements, element)
	}
	return hooks.set(path, old, sessionStart, list.Pack())
}

// marshal is json.MarshalIndent without escapes for HTML.
func marshal(v any, prefix, indent string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent(prefix, indent)
	_ = enc.Encode(v) // never fails: strings marshal
	return bytes.TrimSpace(b.Bytes())
}
