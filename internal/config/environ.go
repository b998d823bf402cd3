package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// dagVariables are the names the settings of the task graph are known by elsewhere.
var dagVariables = map[string]string{
	"TASK_DAG_ENABLED": "enabled", "DAG_ENFORCE_ON_STATUS_CHANGE": "enforce_on_status_change",
	"DAG_DEFAULT_READY_TASKS_LIMIT": "default_ready_tasks_limit", "DAG_MAX_READY_TASKS_LIMIT": "max_ready_tasks_limit",
	"DAG_MAX_IN_DEGREE_WARNING": "max_in_degree_warning", "DAG_MAX_OUT_DEGREE_WARNING": "max_out_degree_warning",
	"DAG_MAX_CHAIN_LENGTH_WARNING": "max_chain_length_warning", "REFERENCE_EXTRACTION_DEPTH": "reference_depth",
}

// overrideDAG applies dagVariables; empty ones count as not set.
func (c *Config) overrideDAG(environ []string) error {
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		key, ok := dagVariables[name]
		if !ok || value == "" {
			continue
		}
		if err := setField(c.field("dag", key), value); err != nil {
			return fmt.Errorf("environment variable %s=%q: %w", name, value, err)
		}
	}
	return nil
}

// override applies dagVariables, then CUEDECK_ and then CAIRN_ variables of the form
// PREFIX_TABLE__KEY=value; lists are separated by commas. Variables without
// "__" belong to other purposes and are left alone.
func (c *Config) override(environ []string) error {
	if err := c.overrideDAG(environ); err != nil {
		return err
	}
	for _, prefix := range []string{"CUEDECK_", "CAIRN_"} {
		for _, pair := range environ {
			name, value, _ := strings.Cut(pair, "=")
			rest, ok := strings.CutPrefix(name, prefix)
			if !ok {
				continue
			}
			table, key, ok := strings.Cut(strings.ToLower(rest), "__")
			if !ok {
				continue
			}
			field := c.field(table, key)
			if !field.IsValid() {
				c.Warnings = append(c.Warnings, Warning{name, fmt.Sprintf("unknown key %q", table+"."+key)})
				continue
			}
			if err := setField(field, value); err != nil {
				return fmt.Errorf("environment variable %s=%q: %w", name, value, err)
			}
		}
	}
	return nil
}

// field finds the setting table.key; the zero Value when there is none.
func (c *Config) field(table, key string) reflect.Value {
	return byTag(byTag(reflect.ValueOf(c).Elem(), table), key)
}

func byTag(v reflect.Value, tag string) reflect.Value {
	if !v.IsValid() || v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("toml") == tag && tag != "-" {
			return v.Field(i)
		}
	}
	return reflect.Value{}
}

// setField parses value as the field's type.
func setField(field reflect.Value, value string) error {
	switch field.Kind() {
	case reflect.String:
		field.SetString(value)
	case reflect.Bool:
		b, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("want true or false")
		}
		field.SetBool(b)
	case reflect.Int:
		n, err := strconv.Atoi(value)
		if err != nil {
			return fmt.Errorf("want a whole number")
		}
		field.SetInt(int64(n))
	case reflect.Float64:
		f, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return fmt.Errorf("want a number")
		}
		field.SetFloat(f)
	case reflect.Slice:
		parts := []string{}
		if value != "" {
			parts = strings.Split(value, ",")
		}
		list := reflect.MakeSlice(field.Type(), len(parts), len(parts))
		for i, part := range parts {
			if err := setField(list.Index(i), strings.TrimSpace(part)); err != nil {
				return err
			}
		}
		field.Set(list)
	default:
		return fmt.Errorf("a table cannot be set")
	}
	return nil
}
