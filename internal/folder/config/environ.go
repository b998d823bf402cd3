package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// dagVariables maps the environment variables of the task graph in other programs to the
// settings.
var dagVariables = map[string]string{
	"TASK_DAG_ENABLED": "enabled", "DAG_ENFORCE_ON_STATUS_CHANGE": "enforce_on_status_change",
	"DAG_DEFAULT_READY_TASKS_LIMIT": "default_ready_tasks_limit", "DAG_MAX_READY_TASKS_LIMIT": "max_ready_tasks_limit",
	"DAG_MAX_IN_DEGREE_WARNING": "max_in_degree_warning", "DAG_MAX_OUT_DEGREE_WARNING": "max_out_degree_warning",
	"DAG_MAX_CHAIN_LENGTH_WARNING": "max_chain_length_warning", "REFERENCE_EXTRACTION_DEPTH": "reference_depth",
}

// override applies dagVariables that are not empty, then CUEDECK_ and then CAIRN_ variables
// of the form PREFIX_TABLE__KEY=value. Variables without "__" have other purposes and are
// ignored.
func (c *Config) override(environ []string) error {
	weights := c.Search
	for _, prefix := range []string{"", "CUEDECK_", "CAIRN_"} {
		for _, pair := range environ {
			name, value, _ := strings.Cut(pair, "=")
			rest, ok := strings.CutPrefix(name, prefix)
			table, key, long := strings.Cut(strings.ToLower(rest), "__")
			if prefix == "" {
				table, key, long = "dag", dagVariables[name], dagVariables[name] != "" && value != ""
			}
			if ok && long {
				if err := c.assign(name, table+"."+key, value); err != nil {
					return err
				}
			}
		}
	}
	given := func(key string) bool { return slices.Contains(c.FromEnvironment, key) }
	if err := c.checkWeights(); err != nil && (given("search.semantic_weight") || given("search.keyword_weight")) {
		c.Search.SemanticWeight, c.Search.KeywordWeight = weights.SemanticWeight, weights.KeywordWeight
		c.Warnings = append(c.Warnings, Warning{"environment", fmt.Sprintf("%v; %g and %g are used", err, weights.SemanticWeight, weights.KeywordWeight)})
	}
	return nil
}

// withholding lists the settings that keep data out of the index, the answers or the
// records. An invalid value for one of them in the environment is an error, because cairn
// would otherwise show or store data that the user wants withheld.
var withholding = []string{"parser.ignore_patterns", "security.mask", "security.secret_patterns", "security.extra_patterns", "usage.record"}

// assign sets a setting to the value of an environment variable. An invalid value changes
// nothing and is a warning, so that a command does not fail because of a variable that it
// does not use; for withholding settings it is an error.
func (c *Config) assign(variable, key, value string) error {
	field := c.field(key)
	if !field.IsValid() {
		c.Warnings = append(c.Warnings, Warning{variable, fmt.Sprintf("unknown key %q", key)})
		return nil
	}
	before := reflect.ValueOf(field.Interface())
	err := setField(field, value)
	if n := c.DAG.ReferenceDepth; err == nil && key == "dag.reference_depth" {
		if c.DAG.ReferenceDepth = min(max(n, 1), 5); c.DAG.ReferenceDepth != n {
			c.Warnings = append(c.Warnings, Warning{variable, fmt.Sprintf("%d is outside 1 to 5; %d is used", n, c.DAG.ReferenceDepth)})
		}
	}
	if err == nil {
		err = c.checkSetting(key)
	}
	switch {
	case err == nil:
		c.FromEnvironment = append(c.FromEnvironment, key)
	case slices.Contains(withholding, key):
		return fmt.Errorf("environment variable %s=%q: %w", variable, value, err)
	default:
		field.Set(before)
		c.Warnings = append(c.Warnings, Warning{variable, fmt.Sprintf("%q: %v; %v is used", value, err, before)})
	}
	return nil
}

// field returns the setting with a key, such as core.token_limit, the zero Value if there is
// none.
func (c *Config) field(key string) reflect.Value {
	table, name, _ := strings.Cut(key, ".")
	return byTag(byTag(reflect.ValueOf(c).Elem(), table), name)
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
		parts := listOf(value)
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

// listOf parses a list: an array of strings in TOML or JSON, or parts separated by commas.
func listOf(value string) []string {
	if value == "" {
		return []string{}
	}
	var array struct{ List []string }
	if text := strings.TrimSpace(value); strings.HasPrefix(text, "[") && !strings.Contains(text, "\n") && toml.Unmarshal([]byte("list = "+text), &array) == nil {
		return append([]string{}, array.List...)
	}
	return strings.Split(value, ",")
}
