package config

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// Keys are the names of all settings, such as "core.token_limit", in the order
// of the file.
func (c Config) Keys() []string {
	var keys []string
	v := reflect.ValueOf(c)
	for i := range v.NumField() {
		table := v.Type().Field(i).Tag.Get("toml")
		if table == "-" || v.Field(i).Kind() != reflect.Struct {
			continue
		}
		for j := range v.Field(i).NumField() {
			keys = append(keys, table+"."+v.Field(i).Type().Field(j).Tag.Get("toml"))
		}
	}
	return keys
}

// UnknownKeyError says that there is no such setting.
type UnknownKeyError struct{ Key string }

func (e *UnknownKeyError) Error() string {
	return fmt.Sprintf("unknown setting %q; `cairn config` shows all", e.Key)
}

// Setting returns the value of a setting.
func (c Config) Setting(key string) (any, error) {
	table, name, _ := strings.Cut(key, ".")
	f := c.field(table, name)
	if !f.IsValid() {
		return nil, &UnknownKeyError{key}
	}
	return f.Interface(), nil
}

// Apply sets each of settings, "table.key=value", in c.
func (c *Config) Apply(settings ...string) error {
	for _, s := range settings {
		key, value, _ := strings.Cut(s, "=")
		table, name, _ := strings.Cut(key, ".")
		field := c.field(table, name)
		if !field.IsValid() {
			return &UnknownKeyError{key}
		}
		if err := setField(field, value); err != nil {
			return fmt.Errorf("%s: %w, not %q", key, err, value)
		}
	}
	return c.check()
}

// Change is what Set changed.
type Change struct {
	Path string // of the file
	// Other is the key that had to change too, and its value; "" for none.
	Other, OtherValue string
}

// Set changes one setting in the configuration of the folder root, which is
// made if there is none: .cairn/config.toml, or .cuedeck/config.toml if only
// that is there. A list is separated by commas, or an array as in TOML. The weight of
// one leg of the search sets that of the other, since they add up to 1. Everything
// else in the file stays, comments too. A value that does not fit changes nothing.
func Set(root, key, value string) (*Change, error) {
	marker, source, err := find(root)
	if err != nil {
		return nil, err
	}
	marker = cmp.Or(marker, markers[0])
	change := &Change{Path: filepath.Join(root, marker, "config.toml")}
	settings := []string{key + "=" + value}
	if change.Other, change.OtherValue = otherWeight(key, value); change.Other != "" {
		settings = append(settings, change.Other+"="+change.OtherValue)
	}
	text, err := setIn(marker+"/config.toml", source, settings...)
	if err != nil {
		return nil, err
	}
	return change, writeFile(root, marker, text, true)
}

// otherWeight returns the weight that goes with a weight of the search; "" for any
// other key, and for a value that is none.
func otherWeight(key, value string) (other, weight string) {
	other = map[string]string{"search.semantic_weight": "search.keyword_weight", "search.keyword_weight": "search.semantic_weight"}[key]
	w, err := strconv.ParseFloat(value, 64)
	if other == "" || err != nil || !(w >= 0 && w <= 1) {
		return "", ""
	}
	return other, strconv.FormatFloat(math.Round((1-w)*1e9)/1e9, 'f', -1, 64)
}

// setIn returns source with settings, "table.key=value", changed. name stands in
// messages.
func setIn(name string, source []byte, settings ...string) ([]byte, error) {
	want := Default()
	if err := want.decode(name, source); err != nil {
		return nil, err
	}
	if err := want.Apply(settings...); err != nil {
		return nil, err
	}
	text := source
	for _, s := range settings {
		key, _, _ := strings.Cut(s, "=")
		table, setting, _ := strings.Cut(key, ".")
		line, err := toml.Marshal(map[string]any{setting: want.field(table, setting).Interface()})
		if err != nil {
			return nil, err
		}
		text = setLine(text, table, setting, bytes.TrimSpace(line))
	}
	// A value over several lines, or a table written in another way, is seen by
	// what the file means now.
	have := Default()
	err := have.decode(name, text)
	have.Warnings, want.Warnings = nil, nil
	if err != nil || !reflect.DeepEqual(have, want) {
		return nil, fmt.Errorf("%s is written in a way that only a person can change: set %s by hand", name, strings.Join(settings, " and "))
	}
	return text, nil
}

// setLine replaces the line of a key in its table, or adds it.
func setLine(source []byte, table, key string, line []byte) []byte {
	header := regexp.MustCompile(`^\s*\[\s*` + regexp.QuoteMeta(table) + `\s*\]\s*(#.*)?$`)
	other := regexp.MustCompile(`^\s*\[`)
	entry := regexp.MustCompile(`^\s*` + regexp.QuoteMeta(key) + `\s*=`)
	lines := bytes.SplitAfter(source, []byte("\n"))
	in, after := false, -1
	for i, l := range lines {
		l = bytes.TrimRight(l, "\r\n")
		switch {
		case header.Match(l):
			in, after = true, i
		case other.Match(l):
			in = false
		case in && entry.Match(l):
			lines[i] = append(bytes.Clone(line), '\n')
			return bytes.Join(lines, nil)
		case in && len(bytes.TrimSpace(l)) > 0:
			after = i
		}
	}
	added := append(bytes.Clone(line), '\n')
	if after < 0 {
		out := bytes.TrimRight(source, "\n")
		if len(out) > 0 {
			out = append(bytes.Clone(out), "\n\n"...)
		}
		return append(append(bytes.Clone(out), "["+table+"]\n"...), added...)
	}
	if !bytes.HasSuffix(lines[after], []byte("\n")) {
		lines[after] = append(bytes.Clone(lines[after]), '\n')
	}
	head := bytes.Join(lines[:after+1], nil)
	return append(append(head, added...), bytes.Join(lines[after+1:], nil)...)
}
