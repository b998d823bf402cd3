package tools

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/stage"
)

// integer is an argument of the JSON Schema type integer, which includes 5.0: some
// clients send integers that way. decode sets the default of the schema tag and checks
// its bounds.
type integer int

// choice is an argument that decode compares with the enum of the schema tag. "" is an absent one.
type choice string

// given returns an argument, 0 if it is absent.
func (w *integer) given() int {
	if w == nil {
		return 0
	}
	return int(*w)
}

// UnmarshalJSON implements json.Unmarshaler.
func (w *integer) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	var f float64
	if err := json.Unmarshal(text, &f); err != nil {
		if bad, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			bad.Type = reflect.TypeFor[int]()
		}
		return err
	}
	if f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return &json.UnmarshalTypeError{Value: "number " + string(text), Type: reflect.TypeFor[int]()}
	}
	*w = integer(f)
	return nil
}

// marshal is json.Marshal without the escapes for HTML: answers contain much code, and
// each escape costs tokens.
func marshal(v any) ([]byte, error) { return stage.Encode(v) }

// decode reads a tool's arguments into args, a pointer to a struct. Absent arguments are
// an empty object. Unknown names, wrong types and integers out of bounds are failures.
func decode(raw json.RawMessage, args any) error {
	v := reflect.ValueOf(args).Elem()
	for i := range v.NumField() {
		if w, ok := v.Field(i).Addr().Interface().(*integer); ok {
			if text, ok := constraint(v.Type().Field(i), "default"); ok {
				n, _ := strconv.Atoi(text)
				*w = integer(n)
			}
		}
	}
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	if raw[0] != '{' {
		return invalid("arguments must be an object")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	err := dec.Decode(args)
	if err == nil {
		if _, err := dec.Token(); !errors.Is(err, io.EOF) {
			return invalid("trailing data after the arguments")
		}
		return checkBounds(v)
	}
	if bad, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		where := cmp.Or(regexp.MustCompile(`^([A-Z]\w*\.)+`).ReplaceAllString(bad.Field, ""), "an argument") // without embedded types
		return invalid("%s: got %s, want %s", where, bad.Value, typeName(bad.Type))
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return unknown(strings.Trim(name, `"`), raw, v.Type())
	}
	return invalid("%s", err)
}

// checkBounds returns a failure if an integer is outside the bounds of its schema tag, a list of
// texts is longer than its bound, or a choice is none of its enum.
func checkBounds(v reflect.Value) error {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		w := v.Field(i)
		if w.Kind() == reflect.Pointer {
			w = w.Elem() // invalid when the argument is absent
		}
		if w.Kind() == reflect.Struct {
			if err := checkBounds(w); err != nil {
				return err
			}
		}
		if enum, _ := constraint(field, "enum"); w.IsValid() && w.Type() == reflect.TypeFor[choice]() &&
			(w.Len() > 0 || field.Type != w.Type()) && !slices.Contains(strings.Split(enum, "|"), w.String()) {
			return invalid("%[1]s: unknown %[1]s %[2]q, want {%[3]s} or no %[1]s", argumentName(field), w.String(), strings.ReplaceAll(enum, "|", ","))
		}
		low, hasLow := constraint(field, "min")
		high, hasHigh := constraint(field, "max")
		least, _ := strconv.Atoi(low)
		most, _ := strconv.Atoi(high)
		if w.Kind() == reflect.Slice && w.Type().Elem().Kind() == reflect.String && hasHigh && w.Len() > most {
			return invalid("%s: %d, want at most %d", argumentName(field), w.Len(), most)
		}
		if !w.IsValid() || w.Type() != reflect.TypeFor[integer]() {
			continue
		}
		switch n := int(w.Int()); {
		case hasHigh && (n < least || n > most):
			return invalid("%s: %d, want %d to %d", argumentName(field), n, least, most)
		case hasLow && n < least:
			return invalid("%s: %d, want at least %d", argumentName(field), n, least)
		}
	}
	return nil
}

// objectOf returns an argument that is an object. Some models send the text of the object.
func objectOf(raw json.RawMessage) json.RawMessage {
	if text := ""; json.Unmarshal(raw, &text) == nil {
		return json.RawMessage(text)
	}
	return raw
}

// constraint returns the value of a key in a field's schema tag.
func constraint(f reflect.StructField, key string) (value string, ok bool) {
	for pair := range strings.SplitSeq(f.Tag.Get("schema"), ",") {
		if value, ok = strings.CutPrefix(pair, key+"="); ok {
			return value, true
		}
	}
	return "", false
}

// unknown returns the failure for an argument that t does not have. It lists the names
// that are valid in the same object: the arguments, or an object among them.
func unknown(name string, raw json.RawMessage, t reflect.Type) error {
	var sent map[string]json.RawMessage
	if json.Unmarshal(raw, &sent) == nil && sent[name] == nil {
		for i := range t.NumField() {
			inner := t.Field(i).Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			outer := argumentName(t.Field(i))
			var nested map[string]json.RawMessage
			if inner.Kind() == reflect.Struct && json.Unmarshal(sent[outer], &nested) == nil && nested[name] != nil {
				return invalid("%s: unknown argument %q, want {%s}", outer, name, strings.Join(fieldNames(inner), ","))
			}
		}
	}
	return invalid("unknown argument %q, want {%s}", name, strings.Join(fieldNames(t), ","))
}

// typeNames has the names of kinds in JSON Schema that differ from those in Go.
var typeNames = map[reflect.Kind]string{
	reflect.Int: "integer", reflect.Int64: "integer", reflect.Float64: "number", reflect.Bool: "boolean",
	reflect.Slice: "array", reflect.Struct: "object", reflect.Map: "object",
}

// typeName returns the name of a Go type in JSON Schema.
func typeName(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return cmp.Or(typeNames[t.Kind()], t.Kind().String())
}

// fieldNames returns the names of the fields of t in JSON, in their order.
func fieldNames(t reflect.Type) []string {
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		if !f.Anonymous {
			names = append(names, argumentName(f))
		}
	}
	return names
}
