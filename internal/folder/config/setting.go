package config

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"cairn/internal/base/atomicfile"
	"cairn/internal/base/home"
)

// Keys returns the names of all settings, such as "core.token_limit", in the order of the
// file.
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

// UnknownKeyError reports a setting that does not exist.
type UnknownKeyError struct{ Key string }

func (e *UnknownKeyError) Error() string {
	return fmt.Sprintf("unknown setting %q; `cairn config` shows all", e.Key)
}

// Setting returns the value of a setting.
func (c Config) Setting(key string) (any, error) {
	f := c.field(key)
	if !f.IsValid() {
		return nil, &UnknownKeyError{key}
	}
	return f.Interface(), nil
}

// Apply sets each of settings, "table.key=value", in c.
func (c *Config) Apply(settings ...string) error {
	for _, s := range settings {
		key, value, _ := strings.Cut(s, "=")
		field := c.field(key)
		if !field.IsValid() {
			return &UnknownKeyError{key}
		}
		if err := setField(field, value); err != nil {
			return fmt.Errorf("%s: %w, not %q", key, err, value)
		}
	}
	return c.check()
}

// Change is the result of Set.
type Change struct {
	Path string // of the file
	// Other and OtherValue are a second key that Set has changed and its value, "" for
	// none.
	Other, OtherValue string
}

// Set changes one setting in the configuration of the folder root: .cairn/config.toml, or
// .cuedeck/config.toml if only that folder exists. It creates a missing file. A list is
// separated by commas, or an array in TOML. The weight of one leg of the search also sets
// that of the other, because they add up to 1. Set keeps the rest of the file, including
// comments. A trusted configuration stays trusted. After an error nothing has changed.
func Set(root, key, value string) (*Change, error) {
	marker, source, err := find(root, markers...)
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
	_, trusted := home.Trusts(root, source)
	if err := writeFile(root, marker, text, true); err != nil || !trusted {
		return change, err
	}
	return change, home.Trust(root, text)
}

// otherWeight returns the key and the value of the other leg for a weight of one leg, ""
// for other keys and for invalid values.
func otherWeight(key, value string) (other, weight string) {
	other = map[string]string{"search.semantic_weight": "search.keyword_weight", "search.keyword_weight": "search.semantic_weight"}[key]
	w, err := strconv.ParseFloat(value, 64)
	if other == "" || err != nil || !(w >= 0 && w <= 1) {
		return "", ""
	}
	return other, strconv.FormatFloat(math.Round((1-w)*1e9)/1e9, 'f', -1, 64)
}

// setIn returns source with settings, "table.key=value", changed. name is the file in
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
		line, err := toml.Marshal(map[string]any{setting: want.field(key).Interface()})
		if err != nil {
			return nil, err
		}
		text = setLine(text, table, setting, bytes.TrimSpace(line))
	}
	text = atomicfile.LineEnds(source, text)
	// Compare the results, because setLine does not handle values over several lines and
	// other ways to write a table.
	have := Default()
	err := have.decode(name, text)
	have.Warnings, want.Warnings = nil, nil
	if err != nil || !reflect.DeepEqual(have, want) {
		return nil, fmt.Errorf("%s has a format that cairn cannot change: set %s by hand", name, strings.Join(settings, " and "))
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
			lines[i] = slices.Concat(line, commentOf(l), []byte("\n"))
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

// commentOf returns the comment at the end of a line with a setting, with the blanks before it.
func commentOf(line []byte) []byte {
	for i, c := range line {
		if before := line[:i]; c == '#' && toml.Unmarshal(before, &map[string]any{}) == nil { // not in a string
			return line[len(bytes.TrimRight(before, " \t")):]
		}
	}
	return nil
}
