package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// whole is an integer argument. JSON Schema counts 5.0 as an integer, and some
// clients send it that way. decode sets the default of its schema tag and checks
// the bounds.
type whole int

// UnmarshalJSON implements json.Unmarshaler.
func (w *whole) UnmarshalJSON(text []byte) error {
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
	*w = whole(f)
	return nil
}

// marshal is json.Marshal without the escapes that HTML would need: answers
// are full of code, and each escape costs its reader tokens.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// decode reads a tool's arguments into args, a pointer to a struct. Absent
// arguments are an empty object. Unknown names, wrong types and whole numbers
// out of their bounds are failures.
func decode(raw json.RawMessage, args any) error {
	v := reflect.ValueOf(args).Elem()
	for i := range v.NumField() {
		if w, ok := v.Field(i).Addr().Interface().(*whole); ok {
			if text, ok := constraint(v.Type().Field(i), "default"); ok {
				n, _ := strconv.Atoi(text)
				*w = whole(n)
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
		where := bad.Field
		if where == "" {
			where = "an argument"
		}
		return invalid("%s: got %s, want %s", where, bad.Value, typeName(bad.Type))
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return unknown(strings.Trim(name, `"`), raw, v.Type())
	}
	return invalid("%s", err)
}

// checkBounds refuses a whole number outside the bounds of its schema tag.
func checkBounds(v reflect.Value) error {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		w := v.Field(i)
		if w.Kind() == reflect.Pointer {
			w = w.Elem() // invalid when the argument is absent
		}
		if !w.IsValid() || w.Type() != reflect.TypeFor[whole]() {
			continue
		}
		low, hasLow := constraint(field, "min")
		high, hasHigh := constraint(field, "max")
		least, _ := strconv.Atoi(low)
		most, _ := strconv.Atoi(high)
		switch n := int(w.Int()); {
		case hasHigh && (n < least || n > most):
			return invalid("%s: %d, want %d to %d", argumentName(field), n, least, most)
		case hasLow && n < least:
			return invalid("%s: %d, want at least %d", argumentName(field), n, least)
		}
	}
	return nil
}

// constraint is the value of a key in a field's schema tag.
func constraint(f reflect.StructField, key string) (value string, ok bool) {
	for pair := range strings.SplitSeq(f.Tag.Get("schema"), ",") {
		if value, ok = strings.CutPrefix(pair, key+"="); ok {
			return value, true
		}
	}
	return "", false
}

// unknown is the failure of a name that t does not know, with the names of the
// object that holds it: the arguments, or an object among them.
func unknown(name string, raw json.RawMessage, t reflect.Type) error {
	var given map[string]json.RawMessage
	if json.Unmarshal(raw, &given) == nil && given[name] == nil {
		for i := range t.NumField() {
			inner := t.Field(i).Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			outer := argumentName(t.Field(i))
			var below map[string]json.RawMessage
			if inner.Kind() == reflect.Struct && json.Unmarshal(given[outer], &below) == nil && below[name] != nil {
				return invalid("%s: unknown argument %q, want {%s}", outer, name, strings.Join(fieldNames(inner), ","))
			}
		}
	}
	return invalid("unknown argument %q, want {%s}", name, strings.Join(fieldNames(t), ","))
}

// typeName is a Go type in the words of JSON Schema.
func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return typeName(t.Elem())
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Float64:
		return "number"
	case reflect.Bool:
		return "boolean"
	case reflect.Slice:
		return "array"
	case reflect.Struct, reflect.Map:
		return "object"
	}
	return t.Kind().String()
}

// fieldNames lists the arguments of an object in the order of the struct.
func fieldNames(t reflect.Type) []string {
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		if !f.Anonymous {
			names = append(names, argumentName(f))
		}
	}
	return names
}
