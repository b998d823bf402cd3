package agents

import (
	"context"
	"time"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/face/server"
	"cairn/internal/face/term"
	"cairn/internal/face/token"
)

func (a *app) tokenCommand() *cli.Command {
	var file string
	list := cli.NewCommand("list", "List the tokens, without their secrets", a.Command(func(context.Context, []string) error {
		store, err := cli.TokenStore(file)
		if err != nil {
			return err
		}
		all, err := store.List()
		rows := []term.Token{}
		for _, t := range all {
			rows = append(rows, term.NewToken(t))
		}
		return term.Show(a.Out, (*term.Output).Tokens)(rows, err)
	}))
	revoke := cli.NewCommand("revoke ID|NAME", "Revoke a token immediately", a.Command(func(ctx context.Context, args []string) error {
		store, err := cli.TokenStore(file)
		if err != nil {
			return err
		}
		t, err := store.Revoke(ctx, args[0])
		if err != nil {
			return err
		}
		return a.Out.Line(term.NewToken(t), "revoked %s (%s)", t.ID, t.Name)
	}))
	cmd := cli.Group("token", "Create, list and revoke the tokens of `cairn serve`", a.tokenNewCommand(&file), list, revoke)
	cmd.PersistentFlags().StringVar(&file, "tokens", "", "file of the tokens (also CAIRN_TOKENS)")
	return cmd
}

func (a *app) tokenNewCommand(file *string) *cli.Command {
	var scope string
	var workspaces []string
	var expires time.Duration
	cmd := cli.NewCommand("new NAME", "Create a token and print it, once", a.Command(func(ctx context.Context, args []string) error {
		sc, err := token.ParseScope(scope)
		if err != nil {
			return cli.BadUsage("--scope: %w", err)
		}
		for _, w := range workspaces {
			if _, err := server.ParseName(w); err != nil {
				return cli.BadUsage("--for: %w", err)
			}
		}
		if expires < 0 {
			return cli.BadUsage("--expires is %s, want more than 0", expires)
		}
		store, err := cli.TokenStore(*file)
		if err != nil {
			return err
		}
		secret, t, err := store.New(ctx, args[0], sc, workspaces, expires)
		if err != nil {
			return err
		}
		report := struct {
			Secret string `json:"token"`
			term.Token
		}{secret, term.NewToken(t)}
		return a.Out.Print(report, func() {
			a.Out.Printf("%s\n", secret)
			a.Out.Notes.Printf("the token is not shown again; clients send it as Authorization: Bearer TOKEN\n")
		})
	}))
	cmd.Flags().StringVar(&scope, "scope", "read", "permissions: read; write, which includes read; or admin, which can also rebuild the index")
	cmd.Flags().StringSliceVar(&workspaces, "for", nil, "workspaces that the token permits (default: all)")
	cmd.Flags().DurationVar(&expires, "expires", 0, "time until the token expires, such as 720h (default: never)")
	return cmd
}
