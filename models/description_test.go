package models

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadDescription(t *testing.T) {
	for name, c := range map[string]struct {
		file string // "" is no file
		want Description
		err  string
	}{
		"absent":   {"", Description{Name: "my-model"}, ""},
		"complete": {`{"name":"n","dimension":3,"max_tokens":4,"pooling":"cls","query_prefix":"q","document_prefix":"d","min_similarity":0.5}`, Description{Name: "n", Dimension: 3, MaxTokens: 4, Pooling: "cls", QueryPrefix: "q", DocumentPrefix: "d", MinSimilarity: .5}, ""},
		"nameless": {`{"pooling":"cls"}`, Description{Name: "my-model", Pooling: "cls"}, ""},
		"misspelt": {`{"poling":"cls"}`, Description{}, `"poling"`},
		"broken":   {`{"name":`, Description{}, "unexpected EOF"},
		"large":    {`{"name":"` + strings.Repeat("x", maxDescription) + `"}`, Description{}, "want at most"},
	} {
		dir := filepath.Join(t.TempDir(), "my-model")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if c.file != "" {
			if err := os.WriteFile(filepath.Join(dir, "cairn.json"), []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := ReadDescription(dir)
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: ReadDescription() error %v, want %q", name, err, c.err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: ReadDescription() (-want +got)\n%s", name, diff)
		}
	}
	unreadable := t.TempDir()
	if err := os.Mkdir(filepath.Join(unreadable, "cairn.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadDescription(unreadable); err == nil {
		t.Error("ReadDescription of a folder in place of the file gave no error")
	}
}

// TestReadLayout reads the files that sentence-transformers writes; cairn.json wins.
func TestReadLayout(t *testing.T) {
	const modules = `[{"idx":0,"name":"0","path":"","type":"sentence_transformers.models.Transformer"},
		{"idx":1,"name":"1","path":"1_Pooling","type":"sentence_transformers.models.Pooling"},
		{"idx":2,"name":"2","path":"2_Normalize","type":"sentence_transformers.models.Normalize"}]`
	const cls = `{"word_embedding_dimension":384,"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":false}`
	type files = map[string]string
	for name, c := range map[string]struct {
		files files
		want  Description
		err   string
	}{
		"pooling alone": {files{"1_Pooling/config.json": cls}, Description{Pooling: "cls"}, ""},
		"all": {files{"modules.json": modules, "1_Pooling/config.json": `{"pooling_mode_mean_tokens":true}`, "sentence_bert_config.json": `{"max_seq_length":384}`,
			"config_sentence_transformers.json": `{"prompts":{"query":"query: ","passage":"passage: "},"default_prompt_name":null,"similarity_fn_name":"cosine"}`},
			Description{Pooling: "mean", MaxTokens: 384, QueryPrefix: "query: ", DocumentPrefix: "passage: "}, ""},
		"default prompt": {files{"1_Pooling/config.json": cls, "config_sentence_transformers.json": `{"prompts":{"query":"q: ","sts":"s: "},"default_prompt_name":"sts"}`},
			Description{Pooling: "cls", QueryPrefix: "q: ", DocumentPrefix: "s: "}, ""},
		"cairn.json wins": {files{"1_Pooling/config.json": cls, "cairn.json": `{"pooling":"mean","unrelated":0.25}`}, Description{Pooling: "mean", Unrelated: .25}, ""},
		"max":             {files{"1_Pooling/config.json": `{"pooling_mode_max_tokens":true}`}, Description{}, `["max_tokens"]`},
		"two kinds":       {files{"1_Pooling/config.json": `{"pooling_mode_mean_tokens":true,"pooling_mode_cls_token":true}`}, Description{}, "not supported"},
		"dense":           {files{"modules.json": `[{"path":"2_Dense","type":"sentence_transformers.models.Dense"}]`}, Description{}, `"Dense"`},
		"outside":         {files{"modules.json": `[{"path":"../x","type":"sentence_transformers.models.Pooling"}]`}, Description{}, "leaves the folder"},
		"euclidean":       {files{"config_sentence_transformers.json": `{"similarity_fn_name":"euclidean"}`}, Description{}, "euclidean"},
		"unknown prompt":  {files{"config_sentence_transformers.json": `{"prompts":{},"default_prompt_name":"x"}`}, Description{}, "none of the prompts"},
		"broken":          {files{"modules.json": `{`}, Description{}, "modules.json"},
	} {
		dir := filepath.Join(t.TempDir(), "m")
		for file, text := range c.files {
			path := filepath.Join(dir, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := ReadDescription(dir)
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: error %v, want %q", name, err, c.err)
		}
		if c.err == "" {
			c.want.Name = "m"
		}
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
