package connect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"

	"cairn/internal/base/atomicfile"
	"cairn/internal/text/jsonedit"
)

// Merge returns a configuration with the entry added. old is the content of the file, blank
// for a new file; path is for messages. The result equals old if the entry exists already.
// Another entry of that name is an error unless force is set. What else an entry of cairn has,
// such as an environment, stays. A file that cannot be changed safely is an *UnsuitableError.
func (c Client) Merge(path string, old []byte, name string, e Entry, force bool) ([]byte, error) {
	all, err := c.parse(path, old)
	if err != nil {
		return nil, err
	}
	have := under(all, c.section, name)
	switch {
	case have != nil && sameEntry(have, e):
		return old, nil
	case have != nil && !force:
		return nil, fmt.Errorf("%s has another server named %q; choose one with --name, or replace it with --force", path, name)
	}
	var further map[string]any // what an entry of cairn has besides the values of e
	if had, ok := entryOf(have); ok && had.isCairn() {
		further = have.(map[string]any)
	}
	if c.format == tables {
		return c.set(path, old, name, tomlEntry(name, e, further))
	}
	unit := jsonedit.Indent(old)
	text, _ := json.MarshalIndent(e, unit+unit, unit) // never fails: strings marshal
	if further != nil {
		var values map[string]any
		_ = json.Unmarshal(text, &values) // never fails: it is JSON
		text = c.entryText(old, name)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if text, err = jsonedit.Set(text, key, values[key]); err != nil {
				return nil, &UnsuitableError{path, err.Error()}
			}
		}
	}
	return c.set(path, old, name, text)
}

// starts reports whether the server of a name in a configuration starts cairn on root.
func (c Client) starts(text []byte, name, root string) bool {
	e, ok := entryOf(c.servers(text)[name])
	return ok && e.starts(root)
}

// Remove returns a configuration without the entry of that name, which must start cairn on
// root. The result equals old if there is none. The entry of another server or folder is a
// *ForeignEntryError. A file that cannot be changed safely is an *UnsuitableError.
func (c Client) Remove(path string, old []byte, name, root string) ([]byte, error) {
	all, err := c.parse(path, old)
	if err != nil {
		return nil, err
	}
	have := under(all, c.section, name)
	if have == nil {
		return old, nil
	}
	if e, ok := entryOf(have); !ok || !e.starts(root) {
		return nil, &ForeignEntryError{name, path}
	}
	return c.set(path, old, name, nil)
}

// parse returns the values in a configuration.
func (c Client) parse(path string, text []byte) (all map[string]any, err error) {
	if c.format == tables {
		if err := toml.Unmarshal(text, &all); err != nil {
			return nil, &UnsuitableError{path, "it is not TOML: " + strings.TrimPrefix(err.Error(), "toml: ")}
		}
		return all, nil
	}
	doc, err := jsonedit.Parse(bytes.Clone(text))
	if err != nil {
		return nil, &UnsuitableError{path, "it is not JSON: " + strings.TrimPrefix(err.Error(), "hujson: ")}
	}
	doc.Standardize()
	if json.Unmarshal(doc.Pack(), &all) != nil || all == nil {
		return nil, &UnsuitableError{path, "it is not a JSON object"}
	}
	return all, nil
}

// servers returns the servers in a configuration by name, nil if it is invalid.
func (c Client) servers(text []byte) map[string]any {
	all, _ := c.parse("", text)
	servers, _ := all[c.section].(map[string]any)
	return servers
}

// entryText returns the text of a server in a configuration, nil if there is none.
func (c Client) entryText(text []byte, name string) []byte {
	if c.format == tables {
		own, _ := tablesOf(text, name)
		return own
	}
	doc, err := jsonedit.Parse(text)
	if err != nil {
		return nil
	}
	have := doc.Find("/" + pointer.Replace(c.section) + "/" + pointer.Replace(name))
	if have == nil {
		return nil
	}
	return (&hujson.Value{Value: have.Value}).Pack()
}

// pointer escapes a name for a JSON pointer.
var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// set returns a configuration in which the server of a name has the text of an entry; nil
// removes it. Comments, order and layout of the rest stay.
func (c Client) set(path string, old []byte, name string, entry []byte) (out []byte, err error) {
	if c.format == tables {
		if _, out = tablesOf(old, name); entry != nil { // a table that is replaced is appended
			if len(out) > 0 {
				out = append(bytes.TrimSuffix(out, []byte("\n")), "\n\n"...)
			}
			out = append(out, entry...)
		}
	} else if out, err = c.setJSON(path, old, name, entry); err != nil {
		return nil, err
	}
	var value any // of the entry, nil without one
	if c.format == tables {
		all, _ := c.parse("", entry)
		value = under(all, c.section, name)
	} else if doc, err := hujson.Parse(bytes.Clone(entry)); err == nil {
		doc.Standardize()
		_ = json.Unmarshal(doc.Pack(), &value) // it is JSON now
	}
	return c.checked(path, old, out, name, value)
}

// under returns doc[section][name], nil if it does not exist.
func under(doc map[string]any, section, name string) any {
	servers, _ := doc[section].(map[string]any)
	return servers[name]
}

// checked returns out with the line ends of old, or an *UnsuitableError if it differs from old in anything but the
// server of a name, or if its value is not want.
func (c Client) checked(path string, old, out []byte, name string, want any) ([]byte, error) {
	out = atomicfile.LineEnds(old, out)
	before, err := c.parse(path, old)
	if err != nil {
		return nil, err
	}
	without := func(doc map[string]any) map[string]any {
		all, servers := map[string]any{}, map[string]any{}
		maps.Copy(all, doc)
		had, _ := doc[c.section].(map[string]any)
		maps.Copy(servers, had)
		delete(servers, name)
		all[c.section] = servers
		return all
	}
	after, err := c.parse(path, out)
	if err != nil || !reflect.DeepEqual(without(before), without(after)) || !reflect.DeepEqual(under(after, c.section, name), want) {
		reason := "its layout is not supported (a key may occur twice)"
		if c.format == tables {
			reason = c.section + " in it does not consist of tables"
		}
		return nil, &UnsuitableError{path, reason}
	}
	return out, nil
}
