package models

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// readLayout reads the pooling, the longest input and the prefixes from the files of
// sentence-transformers in a model's folder. It fails for settings that cairn does not
// support.
func (d *Description) readLayout(dir string) error {
	pooling, err := poolingFolder(dir)
	if err != nil {
		return err
	}
	var pooled map[string]any
	if found, err := readJSON(dir, filepath.Join(pooling, "config.json"), &pooled, false); err != nil {
		return err
	} else if found && pooling != "" {
		if d.Pooling, err = poolingOf(pooled); err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(pooling, "config.json"), err)
		}
	}
	var sentence struct {
		Longest int `json:"max_seq_length"`
	}
	if _, err := readJSON(dir, "sentence_bert_config.json", &sentence, false); err != nil {
		return err
	}
	d.MaxTokens = sentence.Longest
	const general = "config_sentence_transformers.json"
	var settings struct {
		Prompts    map[string]string `json:"prompts"`
		Default    *string           `json:"default_prompt_name"`
		Similarity *string           `json:"similarity_fn_name"`
	}
	if _, err := readJSON(dir, general, &settings, false); err != nil {
		return err
	}
	if s := settings.Similarity; s != nil && *s != "cosine" && *s != "dot" {
		return fmt.Errorf("%s: similarity_fn_name %q, want cosine or dot", general, *s)
	}
	standard := ""
	if settings.Default != nil {
		var ok bool
		if standard, ok = settings.Prompts[*settings.Default]; !ok {
			return fmt.Errorf("%s: default_prompt_name %q is none of the prompts", general, *settings.Default)
		}
	}
	prompt := func(names ...string) string {
		for _, name := range names {
			if p, ok := settings.Prompts[name]; ok {
				return p
			}
		}
		return standard
	}
	d.QueryPrefix, d.DocumentPrefix = prompt("query"), prompt("document", "passage", "corpus")
	return nil
}

// poolingFolder returns the folder of the pooling module, or "" if there is none.
func poolingFolder(dir string) (string, error) {
	var modules []struct {
		Path string `json:"path"`
		Type string `json:"type"`
	}
	found, err := readJSON(dir, "modules.json", &modules, false)
	if err != nil {
		return "", err
	}
	if !found {
		if _, err := os.Stat(filepath.Join(dir, "1_Pooling", "config.json")); err == nil {
			return "1_Pooling", nil
		}
		return "", nil
	}
	folder := ""
	for _, m := range modules {
		switch kind := m.Type[strings.LastIndexByte(m.Type, '.')+1:]; kind {
		case "Transformer", "Normalize":
		case "Pooling":
			if !filepath.IsLocal(m.Path) {
				return "", fmt.Errorf("modules.json: the path %q leaves the folder", m.Path)
			}
			folder = m.Path
		default:
			return "", fmt.Errorf("modules.json: a module %q, want Transformer, Pooling and Normalize", kind)
		}
	}
	return folder, nil
}

// poolingOf returns the kind of pooling in a pooling module's configuration.
func poolingOf(config map[string]any) (string, error) {
	// mean_sqrt_len_tokens has the direction of the mean; only its length differs.
	kinds := map[string]string{"cls_token": "cls", "mean_tokens": "mean", "mean_sqrt_len_tokens": "mean"}
	var on []string
	for _, key := range slices.Sorted(maps.Keys(config)) {
		if name, ok := strings.CutPrefix(key, "pooling_mode_"); ok && config[key] == true {
			on = append(on, name)
		}
	}
	if len(on) == 1 && kinds[on[0]] != "" {
		return kinds[on[0]], nil
	}
	return "", fmt.Errorf("pooling by %q is not supported, want one of mean_tokens, mean_sqrt_len_tokens and cls_token", on)
}

// readJSON decodes a file in a model's folder. found is false if there is no such file. If
// strict is set, an unknown field is an error.
func readJSON(dir, name string, v any, strict bool) (found bool, err error) {
	path := filepath.Join(dir, name)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil && info.Size() > maxDescription {
		err = fmt.Errorf("%d bytes, want at most %d", info.Size(), maxDescription)
	}
	var b []byte
	if err == nil {
		b, err = os.ReadFile(path)
	}
	if err == nil {
		dec := json.NewDecoder(bytes.NewReader(b))
		if strict {
			dec.DisallowUnknownFields()
		}
		err = dec.Decode(v)
	}
	if err != nil {
		return false, fmt.Errorf("reading model description %s: %w", path, err)
	}
	return true, nil
}
