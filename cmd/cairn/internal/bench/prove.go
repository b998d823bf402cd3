package bench

import (
	"context"
	"path/filepath"

	"cairn/benchmarks"
	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/base/home"
	"cairn/internal/face/term"
	"cairn/internal/folder/index"
	"cairn/models"
	"cairn/models/bpe"
)

func (a *app) proveCommand() *cli.Command {
	var o benchmarks.ProveOptions
	cmd := cli.NewCommand("prove", "Compare searches of this folder with ripgrep, whole files and words alone", a.Command(func(ctx context.Context, _ []string) (err error) {
		if o.Selection, o.Config, err = a.Choose(); err != nil {
			return err
		}
		place, err := home.Of(o.Selection.Root)
		if err != nil {
			return err
		}
		o.Vectors = filepath.Join(place.Index, index.Cache)
		proof, err := withModel(a, a.Model.Open, func(model models.Embedder, bar *term.Progress) (*benchmarks.Proof, error) {
			o.Embedder, o.Budget, o.Progress = model, &bpe.Counter{}, bar.Show
			return benchmarks.Prove(ctx, o)
		})
		if err != nil {
			return err
		}
		return a.Out.Line(proof, "%s", proof)
	}))
	fs := cmd.Flags()
	fs.StringVar(&o.Questions, "queries", "", "file of your own questions with the places of their answers (default: questions from the folder)")
	cli.IntVar(fs, &o.Sample, "sample", 60, 1, 1000, "largest number of questions of each kind")
	cli.IntVar(fs, &o.Tokens, "tokens", 4000, 100, 100_000, "budget of each answer")
	fs.Uint64Var(&o.Seed, "seed", 1, "seed of the random choice of questions")
	a.AddModel(cmd)
	return cmd
}
