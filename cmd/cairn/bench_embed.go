package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"cairn/benchmarks"
)

func (a *app) benchEmbedCommand() *cobra.Command {
	var texts string
	var o benchmarks.EmbedOptions
	cmd := &cobra.Command{
		Use:   "embed --texts FILE",
		Short: "Measure how many texts a second the model embeds",
		RunE:  a.command(func(ctx context.Context, _ []string) error { return a.benchEmbed(ctx, texts, o) }),
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := cobra.NoArgs(cmd, args); err != nil {
			return err
		}
		return inRange(cmd, bounds{"rounds", 1, noBound})
	}
	cmd.Flags().StringVar(&texts, "texts", "", "file with one JSON string a line")
	cmd.Flags().IntVar(&o.Rounds, "rounds", 3, "how often all texts are embedded; the fastest counts")
	_ = cmd.MarkFlagRequired("texts")
	a.model.add(cmd)
	return cmd
}

func (a *app) benchEmbed(ctx context.Context, file string, o benchmarks.EmbedOptions) error {
	texts, err := benchmarks.ReadTexts(file)
	if err != nil {
		return err
	}
	model, err := a.model.open()
	if err != nil {
		return err
	}
	defer model.Close()
	r, err := benchmarks.Embed(ctx, model, texts, &o)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(r)
	}
	_, err = fmt.Fprintf(a.stdout, "%d texts of %d tokens: %.1f texts/s, %.0f tokens/s; a query of %d tokens: p50 %.2f ms; %d threads, kernel %s\n",
		r.Texts, r.Tokens, r.TextsPerSecond, r.TokensPerSecond, r.QueryTokens, r.QueryP50, r.Threads, r.Kernel)
	return err
}
